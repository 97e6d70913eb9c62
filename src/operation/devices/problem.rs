//! Everything that can be wrong with a device before the first delegate runs.

mod words;

use std::path::PathBuf;

use device_info::PciAddress;

use crate::allocation::AllocatedDevice;
use crate::baseline::PodIdentity;
use crate::cni::PluginType;
use crate::diagnostic::SharedProblem;
use crate::kernel::{KernelError, PlacedDevice};
use crate::operation::Failure;
use crate::plan::Reason;

/// Why a device cannot be used.
#[derive(Debug)]
pub(in crate::operation) enum DeviceProblem {
    /// The node does not have the device.
    Missing {
        /// The device.
        device: AllocatedDevice,
        /// `sysfsRoot`.
        sysfs: PathBuf,
    },
    /// The device is bound to no driver.
    Unbound {
        /// The device.
        device: AllocatedDevice,
        /// `sysfsRoot`.
        sysfs: PathBuf,
    },
    /// The device is bound to another driver than its `driver_override`.
    OtherDriver {
        /// The device.
        device: AllocatedDevice,
        /// Its driver.
        driver: String,
        /// Its `driver_override`.
        wanted: String,
        /// `sysfsRoot`.
        sysfs: PathBuf,
    },
    /// A definition takes the interface of the default route as a whole.
    DefaultRoute {
        /// The missing key.
        key: String,
    },
    /// A definition's value may match several devices.
    Pattern {
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
    /// A definition names an interface by which the node is reached.
    Uplink {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What the interface carries.
        carried: String,
    },
    /// The kernel does not say whether the node is reached by an interface that a definition names.
    UnknownUplink {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// The kernel's error.
        error: KernelError,
    },
    /// A definition names too many interfaces of the host.
    TooManyInterfaces {
        /// The limit.
        limit: usize,
    },
    /// A plugin that attaches virtual functions gets another device.
    NotVirtual {
        /// The device.
        device: PciAddress,
        /// Whether it is a physical function.
        is_physical: bool,
        /// The plugin.
        plugin: PluginType,
        /// `sysfsRoot`.
        sysfs: PathBuf,
    },
    /// The interface of a device is in no network namespace that can be found.
    LostInterface {
        /// The device.
        device: String,
        /// Its driver.
        driver: String,
    },
    /// The interface of a device is in a network namespace of no pod on record.
    Elsewhere {
        /// The device.
        device: String,
        /// Its interface.
        placed: PlacedDevice,
    },
    /// The node is reached by the device.
    CutsNodeOff {
        /// The device.
        device: AllocatedDevice,
        /// What it carries.
        carried: String,
    },
    /// Another function of the device's IOMMU group is bound to a driver of the kernel.
    GroupInUse {
        /// The device.
        device: AllocatedDevice,
        /// The other function.
        group: GroupMember,
        /// Its driver.
        driver: String,
    },
    /// A pod has another function of the device's IOMMU group.
    GroupHeld {
        /// The device.
        device: AllocatedDevice,
        /// The other function.
        group: GroupMember,
        /// The pod.
        holder: String,
    },
    /// A plugin moves RDMA devices, which the node shares among all network namespaces.
    SharedRdma {
        /// The plugin.
        plugin: PluginType,
        /// The file with the mode.
        file: PathBuf,
        /// The mode.
        mode: String,
    },
    /// An earlier sandbox has the device and cannot be detached.
    EarlierSandbox {
        /// The device.
        device: String,
        /// Why.
        cause: Box<Failure>,
    },
    /// Another pod has the device.
    InUse {
        /// The device.
        device: String,
        /// The pod.
        holder: String,
    },
    /// The device still has an identity of the previous pod.
    PreviousIdentity {
        /// The device.
        device: String,
        /// The identity.
        identity: PodIdentity,
        /// What is left of it, and why.
        line: String,
        /// The device's driver.
        driver: Option<String>,
    },
    /// Another pod on the segment has the MAC or GUID.
    AddressUsed {
        /// The address.
        address: String,
        /// The pod.
        holder: String,
        /// The segment, if it is known.
        segment: Option<String>,
    },
}

/// A member of a device's IOMMU group.
#[derive(Debug)]
pub(in crate::operation) struct GroupMember {
    /// The number of the group.
    pub(in crate::operation) number: u32,
    /// The other function.
    pub(in crate::operation) address: PciAddress,
    /// The group's directory.
    pub(in crate::operation) directory: String,
}

impl From<DeviceProblem> for Reason {
    fn from(problem: DeviceProblem) -> Reason {
        let is_address = matches!(problem, DeviceProblem::AddressUsed { .. });
        let problem = SharedProblem::new(problem);
        if is_address {
            Reason::AddressUsed(problem)
        } else {
            Reason::UnusableDevice(problem)
        }
    }
}
