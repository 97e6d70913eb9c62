//! Network configurations on disk: `confDir` (NPWG 1.3 §3.4.1) and what `clusterNetwork` names.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cni::RawObject;

/// Endings in the order in which they are looked through: lists first (NPWG 1.3 §3.4.1).
const LISTS: [&str; 2] = ["conflist", "configlist"];
const SINGLES: [&str; 3] = ["conf", "config", "json"];
/// The largest configuration that is read, in bytes.
const MAX_FILE: u64 = 2 << 20;

/// A configuration found on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnDisk {
    /// The file.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

/// The configuration whose `name` is `name`: lists before single configurations, files in the
/// order of their names. A file that is broken and is not the one wanted never matters.
///
/// # Errors
/// When the directory exists and cannot be read.
pub fn by_name(dir: &Path, name: &str) -> Result<Option<OnDisk>, ConfDirError> {
    let files = match files(dir) {
        Ok(files) => files,
        Err(ConfDirError::Missing { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    for endings in [&LISTS[..], &SINGLES[..]] {
        for path in files.iter().filter(|path| has_ending(path, endings)) {
            let Ok(found) = read(path) else { continue };
            let named = RawObject::parse(found.text.as_bytes())
                .ok()
                .and_then(|object| object.read::<String>("name").ok().flatten());
            if named.as_deref() == Some(name) {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}

/// The first configuration of a directory, in the order of the files' names.
///
/// # Errors
/// When there is none, or it cannot be read.
pub fn first(dir: &Path) -> Result<OnDisk, ConfDirError> {
    let endings: Vec<&str> = LISTS.iter().chain(&SINGLES).copied().collect();
    match files(dir)?.iter().find(|path| has_ending(path, &endings)) {
        Some(path) => read(path),
        None => Err(ConfDirError::Empty {
            dir: dir.display().to_string(),
        }),
    }
}

/// One file.
///
/// # Errors
/// When it cannot be read or is larger than 2 MiB.
pub fn read(path: &Path) -> Result<OnDisk, ConfDirError> {
    let unreadable = |cause: std::io::Error| match cause.kind() {
        std::io::ErrorKind::NotFound => ConfDirError::Missing {
            path: path.display().to_string(),
        },
        _ => ConfDirError::Unreadable {
            path: path.display().to_string(),
            cause: cause.to_string(),
        },
    };
    let size = fs::metadata(path).map_err(unreadable)?.len();
    if size > MAX_FILE {
        return Err(unreadable(std::io::Error::other(format!(
            "{size} bytes, at most {MAX_FILE} are read"
        ))));
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    Ok(OnDisk {
        path: path.to_owned(),
        text,
    })
}

fn files(dir: &Path) -> Result<Vec<PathBuf>, ConfDirError> {
    let failed = |cause: std::io::Error| match cause.kind() {
        std::io::ErrorKind::NotFound => ConfDirError::Missing {
            path: dir.display().to_string(),
        },
        _ => ConfDirError::Unreadable {
            path: dir.display().to_string(),
            cause: cause.to_string(),
        },
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    path.extension()
        .and_then(|end| end.to_str())
        .is_some_and(|end| endings.contains(&end))
}

/// Why a configuration on disk could not be had.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfDirError {
    /// It is not there.
    #[error("{path} does not exist; correct the path or wait for the network to be installed")]
    Missing {
        /// The path.
        path: String,
    },
    /// The directory has no configuration.
    #[error("{dir} has no .conflist, .configlist, .conf, .config or .json; put one there")]
    Empty {
        /// The directory.
        dir: String,
    },
    /// It is there and cannot be read.
    #[error("{path}: {cause}; make it a readable configuration")]
    Unreadable {
        /// The path.
        path: String,
        /// Why.
        cause: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        dir
    }

    // clause: NPWG-1.3 §3.4.1 a list on disk comes before a single configuration
    #[test]
    fn lists_come_before_single_configurations() {
        let dir = dir(&[
            ("00-a.conf", r#"{"name":"a"}"#),
            ("99-a.configlist", r#"{"name":"a"}"#),
        ]);
        let found = by_name(dir.path(), "a").unwrap().unwrap();
        assert!(found.path.ends_with("99-a.configlist"));
    }

    // clause: NPWG-1.3 §3.4.1 the configuration's own name decides, not the file's
    #[test]
    fn a_broken_unrelated_file_never_matters() {
        let dir = dir(&[("00-broken.conflist", "{"), ("b.conf", r#"{"name":"a"}"#)]);
        assert!(
            by_name(dir.path(), "a")
                .unwrap()
                .unwrap()
                .path
                .ends_with("b.conf")
        );
        assert_eq!(by_name(dir.path(), "b").unwrap(), None);
        assert_eq!(by_name(&dir.path().join("absent"), "b").unwrap(), None);
    }

    #[test]
    fn the_first_file_of_a_directory_is_taken() {
        let dir = dir(&[
            ("10-b.conf", "{}"),
            ("05-readme.txt", ""),
            ("06-a.conflist", "{}"),
        ]);
        assert!(first(dir.path()).unwrap().path.ends_with("06-a.conflist"));
        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(
            first(empty.path()),
            Err(ConfDirError::Empty { .. })
        ));
    }
}
