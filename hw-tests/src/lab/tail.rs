//! Reads the guest's report while it is written.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use crate::report::Event;

/// The lines of a report since the last read.
#[derive(Debug)]
pub(super) struct Tail {
    file: PathBuf,
    read: u64,
    /// The start of an incomplete line.
    rest: Vec<u8>,
}

impl Tail {
    pub(super) const fn of(file: PathBuf) -> Self {
        Self {
            file,
            read: 0,
            rest: Vec::new(),
        }
    }

    /// Returns the new events. A missing file has none. A line that is not an event is an error.
    pub(super) fn events(&mut self) -> io::Result<Vec<Event>> {
        let mut file = match File::open(&self.file) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(self.read))?;
        let read = file.read_to_end(&mut self.rest)?;
        self.read += u64::try_from(read).map_err(io::Error::other)?;
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            return Ok(Vec::new());
        };
        let whole: Vec<u8> = self.rest.drain(..=end).collect();
        whole
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).map_err(io::Error::other))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn complete_lines_are_returned_once_and_incomplete_ones_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report");
        let mut tail = Tail::of(path.clone());
        assert_eq!(tail.events().unwrap(), []);

        let mut file = File::create(&path).unwrap();
        let started = |case: &str| Event::Started {
            case: case.to_owned(),
        };
        let line = |case| serde_json::to_string(&started(case)).unwrap() + "\n";
        let (head, torn) = (line("a/1"), line("a/2"));
        let (first, second) = torn.split_at(10);
        write!(file, "{head}{first}").unwrap();
        assert_eq!(tail.events().unwrap(), [started("a/1")]);
        assert_eq!(tail.events().unwrap(), []);
        write!(file, "{second}").unwrap();
        assert_eq!(tail.events().unwrap(), [started("a/2")]);
    }

    #[test]
    fn a_line_that_is_not_an_event_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report");
        std::fs::write(&path, "kernel panic\n").unwrap();
        assert!(Tail::of(path).events().is_err());
    }
}
