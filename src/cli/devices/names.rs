//! The node's table of the names of PCI vendors and devices.

use std::io;
use std::path::PathBuf;

use crate::regular_file;

/// Where distributions keep it.
const PLACES: [&str; 3] = [
    "/usr/share/misc/pci.ids",
    "/usr/share/hwdata/pci.ids",
    "/usr/share/pci.ids",
];
/// The largest table that is read, in bytes: ten times that of 2025.
const LARGEST: u64 = 16 << 20;

/// The node's table; empty where it has none.
pub(super) fn table() -> Result<Vec<u8>, String> {
    first(&PLACES.map(PathBuf::from))
}

fn first(places: &[PathBuf]) -> Result<Vec<u8>, String> {
    for path in places {
        match regular_file::read(path, LARGEST) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) => {
                return Err(format!(
                    "{}: {cause}; vendors and devices are shown by their numbers",
                    path.display()
                ));
            }
            Ok(table) => return Ok(table),
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
    fn the_first_place_that_has_a_table_counts_and_none_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        let places = ["a", "b", "c"].map(|name| dir.path().join(name));
        assert_eq!(first(&places), Ok(Vec::new()));
        fs::write(&places[2], "names").unwrap();
        symlink("c", &places[1]).unwrap();
        assert_eq!(first(&places), Ok(b"names".to_vec()));
    }

    #[test]
    fn what_is_no_table_of_a_reasonable_size_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let large = dir.path().join("large");
        File::create(&large).unwrap().set_len(LARGEST + 1).unwrap();
        let error = first(std::slice::from_ref(&large)).unwrap_err();
        assert!(
            error.contains("large: larger than 16777216 bytes; "),
            "{error}"
        );
        let error = first(&[dir.path().to_owned()]).unwrap_err();
        assert!(error.contains("not a regular file; "), "{error}");
    }
}
