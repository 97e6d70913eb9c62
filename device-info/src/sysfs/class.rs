//! Implements the trait `SysClass` of the crate `sysfs-class` for the device types of this crate.
//! The trait adds methods such as `read_file`, `parse_file`, `trim_file` and `all`.
//!
//! The trait's functions on directories (`dir`, `all`, `iter`, `new`) always use this machine's
//! `/sys`. They ignore the root of a [`Sysfs`]. All reads use the reader of this crate, which has a
//! size limit. The reader of `sysfs-class` has no limit.
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
