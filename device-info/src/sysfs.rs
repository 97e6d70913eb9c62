//! Reads sysfs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) use attribute::count;
pub use attribute::{AttributeError, MAX_ATTRIBUTE};
pub(crate) use entry::Entry;
pub use order::natural_order;

mod attribute;
mod class;
mod entry;
mod order;
pub(crate) mod path;

/// The maximum number of remarks on unreadable attributes, to bound the memory use on a broken
/// machine.
const MAX_REMARKS: usize = 256;

/// A sysfs mount, and the directory of the device nodes.
///
/// The path of the mount is a parameter, because a container may mount the host's sysfs at a
/// different path, and a test uses an ordinary directory. A clone refers to the same sysfs.
///
/// Methods that read a value return an `Option`. `None` means "missing or not known". Which values
/// are missing depends on the hardware, the driver and the namespaces. If an attribute exists but
/// cannot be used (`EIO`, more than 4 KiB, invalid text), the method also adds a remark with path,
/// value and remedy. Get the remarks with [`Sysfs::take_remarks`].
///
/// ```
/// use device_info::Sysfs;
///
/// let sysfs = Sysfs::host();
/// for function in sysfs.pci_functions() {
///     println!("{} {:?} NUMA {:?}", function.address(), function.driver(), function.numa_node());
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Sysfs(Arc<Mount>);

#[derive(Debug)]
struct Mount {
    root: PathBuf,
    dev: PathBuf,
    remarks: Mutex<Vec<AttributeError>>,
}

impl Sysfs {
    /// This machine's sysfs: `/sys` and `/dev`.
    #[must_use]
    pub fn host() -> Self {
        Self::at("/sys", "/dev")
    }

    /// The sysfs mounted at `root`, with the device nodes below `dev`.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>, dev: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Mount {
            root: root.into(),
            dev: dev.into(),
            remarks: Mutex::default(),
        }))
    }

    /// Returns the path of the mount.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    /// Returns the path of the device nodes.
    #[must_use]
    pub fn dev(&self) -> &Path {
        &self.0.dev
    }

    /// Returns the remarks since the last call, oldest first, at most 256.
    #[must_use]
    pub fn take_remarks(&self) -> Vec<AttributeError> {
        std::mem::take(
            &mut *self
                .0
                .remarks
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    pub(crate) fn remark(&self, error: AttributeError) {
        let mut remarks = self
            .0
            .remarks
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if remarks.len() < MAX_REMARKS && !remarks.contains(&error) {
            remarks.push(error);
        }
    }

    /// Returns the value, or `None` on a failure. Adds a remark for the failure, but not for an
    /// absent attribute.
    pub(crate) fn known<T>(&self, read: Result<T, AttributeError>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(error) => {
                if !error.is_absence() {
                    self.remark(error);
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;

/// Counts this thread's system calls, so that tests can enforce a bound.
#[cfg(test)]
pub(crate) mod cost {
    use std::cell::Cell;

    thread_local!(static CALLS: Cell<usize> = const { Cell::new(0) });

    pub(crate) fn add(calls: usize) {
        CALLS.with(|count| count.set(count.get() + calls));
    }

    pub(crate) fn of<T>(work: impl FnOnce() -> T) -> (T, usize) {
        let before = CALLS.with(Cell::get);
        let value = work();
        (value, CALLS.with(Cell::get) - before)
    }
}
