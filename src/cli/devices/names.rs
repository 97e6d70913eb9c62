//! Reads the node's table of PCI vendor and device names.

use std::io;
use std::path::PathBuf;

use crate::regular_file::{self, found};

/// The paths of the table in several distributions, in the order in which Jackfield tries them.
const PLACES: [&str; 3] = [
    "/usr/share/misc/pci.ids",
    "/usr/share/hwdata/pci.ids",
    "/usr/share/pci.ids",
];
/// The size limit of the table, in bytes. The table of 2025 has a tenth of this size.
const LARGEST: u64 = 16 << 20;

/// The table cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {cause}; vendors and devices are shown by their numbers", path.display())]
pub(super) struct UnreadableTable {
    path: PathBuf,
    #[source]
    cause: io::Error,
}

/// Reads the node's table. Returns an empty table if the node has none.
pub(super) fn table() -> Result<Vec<u8>, UnreadableTable> {
    first(&PLACES.map(PathBuf::from))
}

fn first(places: &[PathBuf]) -> Result<Vec<u8>, UnreadableTable> {
    for path in places {
        let unreadable = |cause| UnreadableTable {
            path: path.clone(),
            cause,
        };
        if let Some(table) = found(regular_file::read(path, LARGEST)).map_err(unreadable)? {
            return Ok(table);
        }
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_first_table_that_exists_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let places = ["a", "b", "c"].map(|name| dir.path().join(name));
        assert_eq!(first(&places).unwrap(), b"");
        fs::write(&places[2], "names").unwrap();
        symlink("c", &places[1]).unwrap();
        assert_eq!(first(&places).unwrap(), b"names");
    }

    #[test]
    fn the_error_for_an_unusable_table_contains_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let large = dir.path().join("large");
        File::create(&large).unwrap().set_len(LARGEST + 1).unwrap();
        let problem = first(std::slice::from_ref(&large)).unwrap_err();
        let words = format!(
            "{}: larger than 16777216 bytes; vendors and devices are shown by their numbers",
            large.display()
        );
        assert_eq!(problem.to_string(), words);
        let problem = first(&[dir.path().to_owned()]).unwrap_err();
        assert_eq!(problem.path, dir.path());
        assert_eq!(problem.cause.to_string(), "not a regular file");
    }
}
