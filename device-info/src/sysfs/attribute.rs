//! Reads sysfs attributes. Refuses an attribute larger than [`MAX_ATTRIBUTE`].

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag};
use nix::sys::stat::Mode;

use crate::quoted::Quoted;

/// The maximum size of an attribute, in bytes. sysfs gives each file one page.
pub const MAX_ATTRIBUTE: usize = 4096;

/// Reads one attribute, trimmed.
///
/// Does not block on a FIFO. A directory that only imitates sysfs may contain a FIFO.
pub(super) fn read(path: &Path) -> Result<String, AttributeError> {
    let mut buffer = [0; MAX_ATTRIBUTE + 1];
    match read_at(AT_FDCWD, path, &mut buffer) {
        Ok(text) => Ok(text.to_owned()),
        Err(cause) => Err(AttributeError::new(path, cause)),
    }
}

/// Reads one attribute of every entry of a directory, in an unspecified order. Calls `each` with
/// the entry's name and its trimmed text or error.
///
/// The directory may have hundreds of entries, for example one for each port of a switch. To save
/// time, this function opens each attribute relative to the directory, and uses the same buffer for
/// all attributes.
pub(super) fn read_each(
    directory: &Path,
    attribute: &str,
    most: usize,
    each: &mut dyn FnMut(&str, Result<&str, AttributeError>),
) -> Result<(), AttributeError> {
    let fail = |errno: Errno| AttributeError::new(directory, Cause::of(&errno.into()));
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    count(1);
    let handle = nix::fcntl::open(directory, flags, Mode::empty()).map_err(fail)?;
    count(1);
    let mut below = PathBuf::new();
    let mut buffer = [0; MAX_ATTRIBUTE + 1];
    for name in unsorted_names(directory, most)? {
        below.clear();
        below.push(&name);
        below.push(attribute);
        let text = read_at(&handle, &below, &mut buffer)
            .map_err(|cause| AttributeError::new(&directory.join(&below), cause));
        each(&name, text);
    }
    Ok(())
}

/// Reads an attribute. The buffer has one byte more than the maximum. If the read fills the buffer,
/// the attribute is too long.
fn read_at<'a>(
    from: impl AsFd,
    name: &Path,
    buffer: &'a mut [u8; MAX_ATTRIBUTE + 1],
) -> Result<&'a str, Cause> {
    count(1);
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let opened = loop {
        match nix::fcntl::openat(&from, name, flags, Mode::empty()) {
            Err(Errno::EINTR) => {}
            opened => break opened.map_err(|errno| Cause::of(&errno.into()))?,
        }
    };
    let mut file = File::from(opened);
    // Two system calls: the read below, and the close at the end of this function.
    count(2);
    // One read is enough, because sysfs returns an attribute whole or not at all.
    let length = loop {
        match file.read(buffer) {
            Ok(length) => break length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Cause::of(&error)),
        }
    };
    if length > MAX_ATTRIBUTE {
        return Err(Cause::Huge);
    }
    match std::str::from_utf8(buffer.get(..length).unwrap_or_default()).map(str::trim) {
        Ok("") => Err(Cause::Absent),
        Ok(text) => Ok(text),
        Err(_) => Err(Cause::NoText),
    }
}

/// Returns the text of a symbolic link, with one `readlink`. Does not follow the link.
pub(super) fn link(path: &Path) -> Result<PathBuf, AttributeError> {
    count(1);
    std::fs::read_link(path).map_err(|error| AttributeError::new(path, Cause::of(&error)))
}

/// Returns at most `most` names in a directory, in natural order.
pub(super) fn names(path: &Path, most: usize) -> Result<Vec<String>, AttributeError> {
    let mut names = unsorted_names(path, most)?;
    names.sort_by(|left, right| super::natural_order(left, right));
    Ok(names)
}

fn unsorted_names(path: &Path, most: usize) -> Result<Vec<String>, AttributeError> {
    count(1);
    let mut names = Vec::new();
    let entries =
        std::fs::read_dir(path).map_err(|error| AttributeError::new(path, Cause::of(&error)))?;
    // Four system calls: an fstat of the directory, two reads of up to 32 KiB, and a close.
    count(4);
    for entry in entries.take(most) {
        let entry = entry.map_err(|error| AttributeError::new(path, Cause::of(&error)))?;
        if let Ok(name) = entry.file_name().into_string() {
            names.push(name);
        }
    }
    Ok(names)
}

/// Counts system calls, so that tests can limit their number.
#[cfg(test)]
pub(crate) fn count(calls: usize) {
    super::cost::add(calls);
}

#[cfg(not(test))]
pub(crate) const fn count(_calls: usize) {}

/// Why an attribute of sysfs gave no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {cause}", path.display())]
pub struct AttributeError {
    path: PathBuf,
    cause: Cause,
}

impl AttributeError {
    pub(crate) fn new(path: &Path, cause: Cause) -> Self {
        Self {
            path: path.to_path_buf(),
            cause,
        }
    }

    /// Returns the path of the attribute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the kernel has no value for the attribute: the file is missing or empty, or
    /// the driver does not support the attribute. A missing value is not a fault.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        self.cause == Cause::Absent
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Cause {
    #[error("there is no value")]
    Absent,
    #[error(
        "is larger than {MAX_ATTRIBUTE} bytes, the most that device-info reads; check that sysfs is mounted there"
    )]
    Huge,
    #[error("is not text; check that sysfs is mounted there")]
    NoText,
    #[error("{0} is not a {1}; check the mount of sysfs and the driver's version")]
    Value(Quoted, &'static str),
    #[error("cannot be read: {0}; check the kernel's log for the device")]
    Io(&'static str),
}

impl Cause {
    /// Converts a system call's error. Some error numbers mean that there is no value. These become
    /// [`Cause::Absent`].
    pub(super) fn of(error: &io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw) {
            Some(
                Errno::ENOENT
                | Errno::ENODEV
                | Errno::ENXIO
                | Errno::ENOTDIR
                | Errno::EOPNOTSUPP
                | Errno::EINVAL
                | Errno::ENODATA,
            ) => Self::Absent,
            Some(errno) => Self::Io(errno.desc()),
            None => Self::Io("the system gave no reason"),
        }
    }
}
