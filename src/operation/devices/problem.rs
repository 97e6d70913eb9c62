//! Everything that can be wrong with a device before the first delegate runs.

use std::path::{Path, PathBuf};

use device_info::PciAddress;

use crate::allocation::AllocatedDevice;
use crate::baseline::PodIdentity;
use crate::cni::PluginType;
use crate::diagnostic::SharedError;
use crate::kernel::{KernelError, PlacedDevice};
use crate::operation::Failure;
use crate::plan::Reason;

/// Why a device cannot be used, and the remedy. Where a variant has `sysfsRoot`, the words show where
/// to look.
#[derive(Debug, thiserror::Error)]
pub(in crate::operation) enum DeviceProblem {
    /// The node does not have the device.
    #[error(
        "{} is missing: {}/bus/pci/devices has no {}, because its PF was reset or the device was \
         removed; restart the device plugin and recreate the pod",
        named(.0), .1.display(), .0.id
    )]
    Missing(AllocatedDevice, PathBuf),
    /// The device is bound to no driver.
    #[error(
        "{} is bound to no driver: {}/bus/pci/devices/{} has no link driver; bind it to the driver \
         that its device plugin expects and recreate the pod",
        named(.0), .1.display(), .0.id
    )]
    Unbound(AllocatedDevice, PathBuf),
    /// The device is bound to another driver than its `driver_override`, which is `wanted`.
    #[error(
        "{} is bound to driver {driver}, but its driver_override is {wanted} \
         ({}/bus/pci/devices/{}/driver_override); bind it to {wanted} and recreate the pod",
        named(.device), .sysfs.display(), .device.id
    )]
    OtherDriver {
        device: AllocatedDevice,
        driver: String,
        wanted: String,
        sysfs: PathBuf,
    },
    /// A definition takes the interface of the default route as a whole, since it lacks this key.
    #[error(
        "mode is passthru and key {0} is missing, so the plugin takes the interface of the default \
         route; name another interface"
    )]
    DefaultRoute(String),
    /// A definition's value may match several devices.
    #[error(
        "key {} is {:?}, which may lead to another device; write the address or the name of one \
         device",
        .0.key, .0.value
    )]
    Pattern(NamedInterface),
    /// A definition names an interface by which the node is reached, since it carries this.
    #[error(
        "key {key} names {value}, which carries {1}: a pod that has it cuts the node off; name \
         another interface",
        key = .0.key, value = .0.value
    )]
    Uplink(NamedInterface, String),
    /// The kernel does not say whether the node is reached by an interface that a definition names.
    #[error(
        "key {key} names {value}, and whether it is an uplink of this node is not known: {1}; try \
         again",
        key = .0.key, value = .0.value
    )]
    UnknownUplink(NamedInterface, #[source] KernelError),
    /// A definition names more interfaces of the host than this limit.
    #[error("the configuration names more than {0} interfaces of the host; name fewer")]
    TooManyInterfaces(usize),
    /// A plugin that attaches virtual functions gets another device.
    #[error(
        "device {device} is {}, and plugin {plugin} attaches virtual functions; restrict the device \
         plugin's selectors to these, or attach the device by host-device",
        not_virtual(.device, *.is_physical, .sysfs)
    )]
    NotVirtual {
        device: PciAddress,
        is_physical: bool,
        plugin: PluginType,
        sysfs: PathBuf,
    },
    /// The interface of a device is in no network namespace that can be found.
    #[error(
        "{device} is bound to driver {driver}, and its interface is in no network namespace that \
         jackfield can find; end the process that keeps it, or rebind it through \
         /sys/bus/pci/drivers/{driver}/unbind and bind"
    )]
    LostInterface { device: String, driver: String },
    /// The interface of a device is in a network namespace of no pod on record.
    #[error(
        "{0}: its interface {interface} is in network namespace {netns}, and no pod on record has \
         it; move it back from there with ip link set {interface} netns 1, or end the process that \
         keeps the namespace",
        interface = .1.interface, netns = .1.netns.display()
    )]
    Elsewhere(String, PlacedDevice),
    /// The node is reached by the device, since it carries this.
    #[error(
        "{device} carries {1}: a pod that has it cuts the node off; exclude it from the device \
         plugin's selectors",
        device = named(.0)
    )]
    CutsNodeOff(AllocatedDevice, String),
    /// Another function of the device's IOMMU group is bound to a driver of the kernel.
    #[error(
        "{shared}, which is bound to driver {2} ({directory}); bind the whole group to vfio-pci, or \
         use a slot that isolates its functions (ACS)",
        shared = shared(.0, .1), directory = .1.directory
    )]
    GroupInUse(AllocatedDevice, GroupMember, String),
    /// A pod has another function of the device's IOMMU group.
    #[error(
        "{shared}, which {2} has ({directory}): only one program can open the group; use a slot \
         that isolates its functions (ACS)",
        shared = shared(.0, .1), directory = .1.directory
    )]
    GroupHeld(AllocatedDevice, GroupMember, String),
    /// A plugin moves RDMA devices, which the node shares among all network namespaces: the file
    /// has this mode.
    #[error(
        "plugin {plugin} moves an RDMA device into the pod, and this node shares them among all \
         network namespaces ({} is {mode}); set the mode while no pod runs (rdma system set netns \
         exclusive), and for good with options ib_core netns_mode=0 in /etc/modprobe.d",
        .file.display()
    )]
    SharedRdma {
        plugin: PluginType,
        file: PathBuf,
        mode: String,
    },
    /// An earlier sandbox has the device and cannot be detached.
    #[error("{0} still belongs to an earlier sandbox, which cannot be detached: {1}")]
    EarlierSandbox(String, #[source] Box<Failure>),
    /// Another pod has the device.
    #[error(
        "{device} is in use by {holder}; wait until that pod is deleted, or find out with jackfield \
         doctor why it stays"
    )]
    InUse { device: String, holder: String },
    /// The device still has an identity of the previous pod: what is left of it, and why.
    #[error(
        "{device} still has the {} of its previous pod: {line}; rebind it through \
         /sys/bus/pci/drivers/{}/unbind and bind, or {}",
        words(*.identity).0, .driver.as_deref().unwrap_or("DRIVER"), words(*.identity).1
    )]
    PreviousIdentity {
        device: String,
        identity: PodIdentity,
        line: String,
        driver: Option<String>,
    },
    /// Another pod on the segment, if that is known, has the MAC or GUID.
    #[error(
        "{address} is already in use by {holder} on {}; request another",
        .segment.as_deref().unwrap_or("this node")
    )]
    AddressUsed {
        address: String,
        holder: String,
        segment: Option<String>,
    },
}

/// A key of a definition, and the interface of the host that it names.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::operation) struct NamedInterface {
    pub(in crate::operation) key: String,
    pub(in crate::operation) value: String,
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

fn named(device: &AllocatedDevice) -> String {
    format!("device {} of resource {}", device.id, device.resource)
}

fn shared(device: &AllocatedDevice, group: &GroupMember) -> String {
    let (device, number, other) = (named(device), group.number, group.address);
    format!("{device} shares IOMMU group {number} with {other}")
}

fn not_virtual(device: &PciAddress, is_physical: bool, sysfs: &Path) -> String {
    if is_physical {
        return "a physical function".to_owned();
    }
    let devices = sysfs.join("bus/pci/devices");
    let devices = devices.display();
    format!("no virtual function ({devices}/{device} has no physfn)")
}

/// What the identity is called, and how a pod or its definition sets it anew.
fn words(identity: PodIdentity) -> (&'static str, &'static str) {
    match identity {
        PodIdentity::Mac => ("hardware address", "request a MAC"),
        PodIdentity::Guid => ("GUID", "request an infiniband-guid"),
        PodIdentity::Vlan => ("VLAN", "set vlan in the definition"),
    }
}

impl From<DeviceProblem> for Reason {
    fn from(problem: DeviceProblem) -> Reason {
        let reason = match problem {
            DeviceProblem::AddressUsed { .. } => Reason::AddressUsed,
            _ => Reason::UnusableDevice,
        };
        reason(SharedError::new(problem))
    }
}

#[cfg(test)]
mod tests;
