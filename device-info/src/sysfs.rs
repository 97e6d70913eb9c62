//! The seam to the kernel's view of the machine.

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

/// How many remarks on unreadable attributes are kept, so that a broken machine costs no memory.
const MAX_REMARKS: usize = 256;

/// A sysfs, by the directory where it is mounted, and the device nodes that belong to it.
///
/// The root is given and nowhere assumed: a container has the host's sysfs elsewhere, and a test
/// has a directory. A clone is another handle on the same one and costs no copy.
///
/// Readers answer `Option`: `None` is "not there or not known", which hardware, drivers and
/// namespaces make the usual case. Where the kernel has an answer and it could not be had
/// (`EIO`, more than 4 KiB, text that makes no sense), there is a remark besides, with path,
/// value and remedy: [`Sysfs::take_remarks`].
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
pub struct Sysfs(Arc<Place>);

#[derive(Debug)]
struct Place {
    root: PathBuf,
    dev: PathBuf,
    remarks: Mutex<Vec<AttributeError>>,
}

impl Sysfs {
    /// This machine's: `/sys` and `/dev`.
    #[must_use]
    pub fn host() -> Self {
        Self::at("/sys", "/dev")
    }

    /// The one mounted at `root`, with the device nodes below `dev`.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>, dev: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Place {
            root: root.into(),
            dev: dev.into(),
            remarks: Mutex::default(),
        }))
    }

    /// Where it is mounted.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    /// Where its device nodes are.
    #[must_use]
    pub fn dev(&self) -> &Path {
        &self.0.dev
    }

    /// What could not be read since the last call, oldest first, 256 at most.
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

    /// The value, or `None` and, where the failure is more than an absence, a remark.
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

/// How many system calls the readers of this thread have made: tests hold it to a bound.
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
