//! Reads regular files, and refuses FIFOs, devices and files that are too large.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use thiserror::Error;

/// Reads a regular file of at most `limit` bytes from a directory to which only root can write.
///
/// # Errors
/// As [`open`]: for example, `NotFound` for a missing file. Also `InvalidData` if the file is
/// larger than `limit`.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_up_to(open(path)?, limit)
}

/// Reads a regular file of at most `limit` bytes, as UTF-8.
///
/// # Errors
/// As [`read`], and `InvalidData` if the file is not UTF-8.
pub(crate) fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    let bytes = read(path, limit)?;
    String::from_utf8(bytes).map_err(|_| Unsuitable::NotUtf8.into())
}

/// Reads a regular file of at most `limit` bytes from a directory to which users other than root
/// can write. Refuses a symlink in the last component of the path.
///
/// # Errors
/// As [`read`], and `InvalidData` for a symlink.
pub(crate) fn read_untrusted(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open_with(OpenOptions::new().read(true), path, OFlag::O_NOFOLLOW)?;
    read_up_to(file, limit)
}

fn read_up_to(file: File, limit: u64) -> io::Result<Vec<u8>> {
    // The file may grow after this call to `metadata`, so the read needs its own limit.
    let size = file.metadata()?.len().min(limit);
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(Unsuitable::TooLarge { limit }.into());
    }
    Ok(bytes)
}

/// Opens a regular file for reading. Does not wait for the writer of a FIFO, or for the end of a
/// file lease.
///
/// # Errors
/// `InvalidData` if the file is not regular, or if the path contains a loop of symlinks. Also the
/// errors of the file system.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path, OFlag::empty())
}

/// Opens a regular file like [`open`], but with the given `options` and the additional `flags`.
///
/// # Errors
/// As [`open`], and `InvalidData` for a symlink if `flags` contains `O_NOFOLLOW`.
pub(crate) fn open_with(options: &mut OpenOptions, path: &Path, flags: OFlag) -> io::Result<File> {
    let flags = flags | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let opened = options.custom_flags(flags.bits()).open(path);
    let file = opened.map_err(|error| match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ELOOP) => Unsuitable::Symlink.into(),
        // The path leads to a socket or to a device node without a device.
        Some(Errno::ENXIO | Errno::ENODEV) => Unsuitable::NotRegular.into(),
        _ => error,
    })?;
    if !file.metadata()?.is_file() {
        return Err(Unsuitable::NotRegular.into());
    }
    Ok(file)
}

/// Converts the error `NotFound` to [`None`].
///
/// # Errors
/// Every error except `NotFound`.
pub(crate) fn found<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// Why a file cannot be used.
#[derive(Debug, Error)]
enum Unsuitable {
    #[error("not a regular file")]
    NotRegular,
    #[error("a symbolic link")]
    Symlink,
    #[error("larger than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("not UTF-8")]
    NotUtf8,
}

impl From<Unsuitable> for io::Error {
    fn from(reason: Unsuitable) -> Self {
        Self::new(io::ErrorKind::InvalidData, reason)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    /// Calls [`read_untrusted`] for the file that `make` creates. The limit is 8 bytes. Returns the
    /// text of the error.
    fn refusal(make: impl FnOnce(&Path)) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        make(&path);
        let error = read_untrusted(&path, 8).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
        error.to_string()
    }

    #[test]
    fn a_regular_file_is_read_up_to_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "12345678").unwrap();
        assert_eq!(read(&path, 8).unwrap(), b"12345678");
        let error = read(&path, 7).unwrap_err();
        assert_eq!(error.to_string(), "larger than 7 bytes");
        assert_eq!(read(&path, u64::MAX).unwrap(), b"12345678");
    }

    #[test]
    fn a_missing_file_is_not_found() {
        let error = read(Path::new("/nonexistent/file"), 8).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn read_follows_a_link_only_to_a_regular_file() {
        let dir = tempfile::tempdir().unwrap();
        let link = |name: &str, to: &Path| {
            let path = dir.path().join(name);
            symlink(to, &path).unwrap();
            path
        };
        std::fs::write(dir.path().join("file"), "text").unwrap();
        let file = link("a", &dir.path().join("file"));
        assert_eq!(read_text(&file, 8).unwrap(), "text");
        let fifo = dir.path().join("fifo");
        mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        for endless in [link("b", Path::new("/dev/zero")), link("c", &fifo)] {
            let error = read(&endless, 8).unwrap_err();
            assert_eq!(error.to_string(), "not a regular file");
        }
    }

    #[test]
    fn a_link_in_an_untrusted_directory_is_not_followed() {
        let link = |path: &Path| symlink("/proc/self/cmdline", path).unwrap();
        assert_eq!(refusal(link), "a symbolic link");
        let dangling = |path: &Path| symlink("/nonexistent", path).unwrap();
        assert_eq!(refusal(dangling), "a symbolic link");
    }

    #[test]
    fn a_fifo_without_a_writer_is_refused_at_once() {
        let fifo = |path: &Path| mkfifo(path, Mode::S_IRWXU).unwrap();
        assert_eq!(refusal(fifo), "not a regular file");
    }

    #[test]
    fn sockets_directories_and_devices_are_refused() {
        let socket = |path: &Path| drop(UnixListener::bind(path).unwrap());
        assert_eq!(refusal(socket), "not a regular file");
        let directory = |path: &Path| std::fs::create_dir(path).unwrap();
        assert_eq!(refusal(directory), "not a regular file");
        let error = read(Path::new("/dev/zero"), 8).unwrap_err();
        assert_eq!(error.to_string(), "not a regular file");
    }

    /// `/proc` reports size 0 for its files.
    #[test]
    fn the_limit_holds_for_a_file_that_reports_a_smaller_size() {
        let error = read(Path::new("/proc/self/status"), 8).unwrap_err();
        assert_eq!(error.to_string(), "larger than 8 bytes");
    }
}
