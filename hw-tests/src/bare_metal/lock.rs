//! Locks each function, so that only one run uses it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use device_info::PciAddress;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

/// A function's lock, held until dropped.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held for its drop")] Flock<File>);

impl Lock {
    pub(crate) fn of(function: PciAddress) -> Result<Self, LockError> {
        Self::at(
            &Path::new("/run/lock").join(format!("jackfield-hw-tests-{function}")),
            function,
        )
    }

    fn at(file: &Path, function: PciAddress) -> Result<Self, LockError> {
        let io = |source| LockError::File {
            file: file.to_owned(),
            source,
        };
        let mut open = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(file)
            .map_err(io)?;
        match Flock::lock(
            open.try_clone().map_err(io)?,
            FlockArg::LockExclusiveNonblock,
        ) {
            Ok(locked) => {
                open.set_len(0).map_err(io)?;
                write!(open, "process {}", std::process::id()).map_err(io)?;
                Ok(Self(locked))
            }
            Err((_, Errno::EWOULDBLOCK)) => {
                let mut holder = String::new();
                open.read_to_string(&mut holder).map_err(io)?;
                Err(LockError::Held {
                    function,
                    holder,
                    file: file.to_owned(),
                })
            }
            Err((_, errno)) => Err(io(errno.into())),
        }
    }
}

/// Why a function cannot be locked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    #[error("{function}: another run uses it ({holder}, lock {}); wait until it ends", file.display())]
    Held {
        function: PciAddress,
        holder: String,
        file: PathBuf,
    },
    #[error("lock {}: {source}", file.display())]
    File { file: PathBuf, source: io::Error },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_locked_once_and_free_again_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lock");
        let function: PciAddress = "0000:01:00.0".parse().unwrap();
        let first = Lock::at(&file, function).unwrap();
        let error = Lock::at(&file, function).unwrap_err().to_string();
        let ours = format!("process {}", std::process::id());
        assert!(
            error.contains("0000:01:00.0") && error.contains(&ours),
            "{error}"
        );
        drop(first);
        Lock::at(&file, function).unwrap();
    }
}
