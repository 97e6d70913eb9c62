//! Power loss: the node boots again, and its disk lacks the last writes.
//!
//! A file system with a journal commits names in order, but not the contents of files. Jackfield
//! writes a record before the delegates take their leases. So after a power loss, a node that has a
//! lease also has the record's name, but perhaps not the record's last bytes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::table::faults::Loss;

/// The files of a directory with their contents.
#[derive(Debug)]
pub(crate) struct Snapshot {
    dir: PathBuf,
    files: BTreeMap<PathBuf, Content>,
}

/// What a name in a directory stands for.
#[derive(Debug)]
enum Content {
    File(Vec<u8>),
    /// A symlink, which may lead nowhere.
    Link(PathBuf),
}

impl Snapshot {
    /// Reads every file below `dir`.
    pub(crate) fn of(dir: &Path) -> Snapshot {
        let mut files = BTreeMap::new();
        read(dir, &mut files);
        Snapshot {
            dir: dir.to_owned(),
            files,
        }
    }

    /// Makes the directory hold these files and no others.
    pub(crate) fn restore(&self) {
        for path in Snapshot::of(&self.dir).files.keys() {
            fs::remove_file(path).unwrap();
        }
        for (path, content) in &self.files {
            match content {
                Content::File(bytes) => fs::write(path, bytes).unwrap(),
                Content::Link(target) => symlink(target, path).unwrap(),
            }
        }
    }
}

fn read(dir: &Path, files: &mut BTreeMap<PathBuf, Content>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            read(&path, files);
        } else if kind.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            files.insert(path, Content::Link(target));
        } else {
            let bytes = fs::read(&path).unwrap();
            files.insert(path, Content::File(bytes));
        }
    }
}

impl Loss {
    /// Damages the record at `path`, if it exists. The cell's `number` decides where. A change
    /// replaces the whole record, and file systems commit the content of such a file with its name:
    /// then the damage `keeps_header`.
    ///
    /// Returns whether the record's first line, its header, is lost.
    pub(crate) fn damage(self, path: &Path, number: usize, keeps_header: bool) -> bool {
        let Ok(mut content) = fs::read(path) else {
            return false;
        };
        let whole = content.len();
        let lines = ends_of_lines(&content);
        let header = lines.first().copied().unwrap_or(whole);
        let kept = match self {
            // The process was killed while it wrote the header.
            _ if lines.is_empty() => return true,
            Loss::Nothing | Loss::Call => return false,
            // Without the last line, without the last two, and so on, but with the header.
            Loss::LaterWrites => lines[number % lines.len()],
            // A stride that has nothing in common with most lengths reaches all parts. Half of the
            // cells lose steps only.
            Loss::Tail | Loss::Zeroes if keeps_header || number.is_multiple_of(2) => {
                header + (number * 7919) % (whole - header + 1)
            }
            Loss::Tail | Loss::Zeroes => (number * 7919) % whole,
        };
        content.truncate(kept);
        if self == Loss::Zeroes {
            content.resize(whole, 0);
        }
        fs::write(path, content).unwrap();
        kept < header
    }
}

/// Where each whole line of a record ends. A line begins with the length of its JSON, which may
/// contain line breaks.
fn ends_of_lines(content: &[u8]) -> Vec<usize> {
    const FRONT: usize = "01234567 01234567 ".len();
    let mut ends = Vec::new();
    let mut at = 0;
    while let Some(digits) = content.get(at..at + 8) {
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        let Ok(length) = usize::from_str_radix(digits, 16) else {
            break;
        };
        at += FRONT + length + 1;
        if at > content.len() {
            break;
        }
        ends.push(at);
    }
    ends
}
