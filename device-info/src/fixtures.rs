//! Synthetic captures of machines for tests: sysfs trees and devlink answers. Each function builds
//! its capture in code; no capture comes from hardware.
//!
//! Fixtures without `unverified` in their names match the sysfs trees of Linux 6.12 in a virtual
//! machine. An `unverified_` fixture is made from data sheets and driver sources, because no
//! capture of the real hardware was available.
//!
//! ```
//! use device_info::fixtures;
//!
//! let directory = tempfile::tempdir()?;
//! let sysfs = fixtures::igb().build(directory.path())?;
//! let pf = sysfs.pci_function("0000:01:00.0".parse()?).ok_or("no PF")?;
//! assert_eq!(pf.vfs().len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use infiniband::{ipoib, rxe};
pub use intel::{
    igb, igb_noiommu, igb_vfio, unverified_e810, unverified_i350, unverified_vmd, unverified_x710,
};
pub use nvidia::{unverified_bluefield2, unverified_connectx6};
pub use software::{netdevsim, vdpasim, vduse, vp_vdpa_vhost, vp_vdpa_virtio};

mod infiniband;
mod intel;
mod nic;
mod nvidia;
mod software;
mod tree;
