//! Implements `SysClass` of the crate `sysfs-class`, so that its methods (`read_file`,
//! `parse_file`, `trim_file`, `all`) work on our devices.
//!
//! The directory functions of `sysfs-class` (`dir`, `all`, `iter`, `new`) use this machine's
//! `/sys`, even if our root is a different directory. All reads use our bounded reader, because the
//! reader of `sysfs-class` reads whole files.
#![expect(
    unsafe_code,
    reason = "the trait declares one of its functions unsafe; the bodies here do nothing unsafe"
)]

use std::io;
use std::path::{Path, PathBuf};

use sysfs_class::SysClass;

use super::{Entry, Sysfs};
use crate::pci_function::PciFunction;
use crate::rdma::RdmaDevice;
use crate::subfunction::Subfunction;
use crate::vdpa::VdpaDevice;

macro_rules! sys_class {
    ($type:ty, $base:literal, $class:literal) => {
        impl SysClass for $type {
            fn base() -> &'static str {
                $base
            }

            fn class() -> &'static str {
                $class
            }

            unsafe fn from_path_unchecked(path: PathBuf) -> Self {
                Self::from_entry(Entry::at(&Sysfs::host(), path))
            }

            fn path(&self) -> &Path {
                self.entry().path()
            }

            fn id(&self) -> &str {
                self.entry().name()
            }

            fn read_file<P: AsRef<Path>>(&self, name: P) -> io::Result<String> {
                self.entry().read(name.as_ref())
            }
        }
    };
}

sys_class!(PciFunction, "bus/pci", "devices");
sys_class!(VdpaDevice, "bus/vdpa", "devices");
sys_class!(Subfunction, "bus/auxiliary", "devices");
sys_class!(RdmaDevice, "class", "infiniband");
