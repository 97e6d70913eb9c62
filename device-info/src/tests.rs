//! Tests of the readers on whole machines.

mod pci;
mod properties;
mod rdma;
mod speed;
mod switches;
mod vdpa;

use std::cell::RefCell;

use crate::{Capture, PciFunction, Sysfs};

/// A machine in a temporary directory. The directory stays until the test's thread ends, so that a
/// `PciFunction` of the machine can outlive this value.
pub(crate) struct Machine {
    pub(crate) sysfs: Sysfs,
}

thread_local!(static DIRECTORIES: RefCell<Vec<tempfile::TempDir>> = const { RefCell::new(Vec::new()) });

pub(crate) fn machine(capture: &Capture) -> Machine {
    let directory = tempfile::tempdir().unwrap();
    let sysfs = capture.build(directory.path()).unwrap();
    DIRECTORIES.with(|directories| directories.borrow_mut().push(directory));
    Machine { sysfs }
}

impl Machine {
    pub(crate) fn function(&self, address: &str) -> PciFunction {
        self.sysfs.pci_function(address.parse().unwrap()).unwrap()
    }
}
