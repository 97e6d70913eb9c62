//! The problems of devices, host interfaces, MACs and GUIDs that Jackfield detects before the first
//! delegate runs.

use std::path::{Path, PathBuf};

use device_info::PciAddress;

use crate::allocation::AllocatedDevice;
use crate::baseline::PodIdentity;
use crate::cni::PluginType;
use crate::diagnostic::SharedError;
use crate::kernel::{KernelError, PlacedDevice};
use crate::operation::Failure;
use crate::plan::Reason;

/// Why an attachment cannot use a device, a host interface, a MAC or a GUID. Every message contains
/// the remedy, except the message of `EarlierSandbox`. "The configuration" means the network's
/// configuration and everything that the pod and Jackfield add to it. An uplink of the node is an
/// interface that has a default route or an address of the node. An interface below an uplink, such
/// as a member of a bond, is an uplink too.
#[derive(Debug, thiserror::Error)]
pub(in crate::operation) enum DeviceProblem {
    /// The node does not have the device.
    #[error(
        "{} is missing: {}/bus/pci/devices has no {}, because the device was removed or its PF was \
         reset; restart the device plugin and recreate the pod",
        named(.0), .1.display(), .0.id
    )]
    Missing(AllocatedDevice, PathBuf),
    /// The device is bound to no driver.
    #[error(
        "{} is bound to no driver: {}/bus/pci/devices/{} has no link named driver; bind the \
         device to the driver that its device plugin expects, and recreate the pod",
        named(.0), .1.display(), .0.id
    )]
    Unbound(AllocatedDevice, PathBuf),
    /// The device's `driver_override` is `wanted`, but the device is bound to another driver.
    #[error(
        "{} is bound to driver {driver}, but its driver_override is {wanted} \
         ({}/bus/pci/devices/{}/driver_override); bind the device to {wanted} and \
         recreate the pod",
        named(.device), .sysfs.display(), .device.id
    )]
    OtherDriver {
        device: AllocatedDevice,
        driver: String,
        wanted: String,
        sysfs: PathBuf,
    },
    /// The configuration lacks this key (`master`), so the plugin `macvlan` in mode `passthru`
    /// would take over the interface of the default route.
    #[error(
        "mode is passthru and key {0} is missing, so the plugin takes the interface of the default \
         route; set key {0} to a different interface"
    )]
    DefaultRoute(String),
    /// A value in the configuration appears to name one device, but a plugin may select another
    /// device for this value.
    #[error(
        "key {} is {:?}, which a plugin may read as a pattern or a path: the plugin may take a \
         device that jackfield has not checked; write the address or the name of one device",
        .0.key, .0.value
    )]
    Pattern(NamedInterface),
    /// The configuration names an uplink of the node. The second field names what the node would
    /// lose: a default route or an address.
    #[error(
        "the value of key {key} is {value}, which carries {1}: a pod that takes this interface \
         cuts the node off from the network; name another interface",
        key = .0.key, value = .0.value
    )]
    Uplink(NamedInterface, String),
    /// Jackfield cannot tell whether an interface in the configuration is an uplink of the node,
    /// because the kernel refused a request or did not answer.
    #[error(
        "the value of key {key} is {value}, but jackfield cannot tell whether {value} is an uplink \
         of this node: {1}; try again",
        key = .0.key, value = .0.value
    )]
    UnknownUplink(NamedInterface, #[source] KernelError),
    /// An attachment names more interfaces of the host than this limit allows.
    #[error("the configuration names more than {0} interfaces of the host; name fewer")]
    TooManyInterfaces(usize),
    /// A plugin that attaches virtual functions would get a device that is not a virtual function.
    #[error(
        "device {device} is {}, but CNI plugin {plugin} attaches virtual functions; restrict the \
         device plugin's selectors to virtual functions, or attach the device with CNI plugin \
         host-device",
        not_virtual(.device, *.is_physical, .sysfs)
    )]
    NotVirtual {
        device: PciAddress,
        is_physical: bool,
        plugin: PluginType,
        sysfs: PathBuf,
    },
    /// The interface of a device is in no network namespace that Jackfield can find.
    #[error(
        "{device} is bound to driver {driver}, and its interface is in no network namespace that \
         jackfield can find; end the process that keeps the interface's namespace open, or rebind \
         the device: write its PCI address to /sys/bus/pci/drivers/{driver}/unbind, then to \
         /sys/bus/pci/drivers/{driver}/bind"
    )]
    LostInterface { device: String, driver: String },
    /// The interface of a device is in a network namespace other than the host's, although no
    /// recorded pod has the device. The command in the message does not contain the interface's
    /// name, because a pod can give its interface a name that a shell would execute.
    #[error(
        "{0}: its interface {interface} is in network namespace {netns}, and no pod on record has \
         the device; move the interface back with `nsenter --net={netns} ip link set INTERFACE \
         netns 1`, or end the process that keeps the namespace open",
        interface = .1.interface, netns = .1.netns.display()
    )]
    Elsewhere(String, PlacedDevice),
    /// The device is an uplink of the node. The second field names what the node would lose: a
    /// default route or an address.
    #[error(
        "{device} carries {1}: a pod that takes this device cuts the node off from the network; \
         exclude the device from the device plugin's selectors",
        device = named(.0)
    )]
    CutsNodeOff(AllocatedDevice, String),
    /// Another function of the device's IOMMU group is bound to a driver that is neither `pci-stub`
    /// nor a driver for user-space programs.
    #[error(
        "{shared} (see {directory}), and {other} is bound to driver {2}; bind the whole group to \
         vfio-pci, or move the card to a slot that isolates functions from each other (ACS)",
        shared = shared(.0, .1), directory = .1.directory, other = .1.address
    )]
    GroupInUse(AllocatedDevice, GroupMember, String),
    /// Another pod has a function of the device's IOMMU group.
    #[error(
        "{shared} (see {directory}), and {2} has {other}: only one program can open the group; \
         move the card to a slot that isolates functions from each other (ACS)",
        shared = shared(.0, .1), directory = .1.directory, other = .1.address
    )]
    GroupHeld(AllocatedDevice, GroupMember, String),
    /// A plugin would move an RDMA device into the pod. This is impossible while the node shares
    /// RDMA devices among all network namespaces. `file` is the sysfs file of this setting, and
    /// `mode` is its content.
    #[error(
        "plugin {plugin} moves an RDMA device into the pod, but this node shares RDMA devices \
         among all network namespaces ({} is {mode}); set exclusive mode while no pod runs (`rdma \
         system set netns exclusive`), and for the next boot put the line \"options ib_core \
         netns_mode=0\" into /etc/modprobe.d",
        .file.display()
    )]
    SharedRdma {
        plugin: PluginType,
        file: PathBuf,
        mode: String,
    },
    /// The device belongs to this pod, but an earlier sandbox still has the device. Jackfield could
    /// not detach the earlier sandbox. The earlier sandbox is from before a reboot, is another
    /// sandbox of this pod, or belongs to a pod from which kubelet has taken the device.
    #[error("{0} still belongs to an earlier sandbox, which cannot be detached: {1}")]
    EarlierSandbox(String, #[source] Box<Failure>),
    /// Another pod has the device.
    #[error(
        "{device} is in use by {holder}; wait until that pod is deleted, or run `jackfield doctor` \
         to find out why the device is still in use"
    )]
    InUse { device: String, holder: String },
    /// The device still has the MAC, GUID or VLAN of the previous pod. `line` says why Jackfield
    /// could not remove it.
    #[error(
        "{device} still has the {} of its previous pod: {line}; {}, or rebind the device: write \
         its PCI address to /sys/bus/pci/drivers/{name}/unbind, then to \
         /sys/bus/pci/drivers/{name}/bind",
        words(*.identity).0, words(*.identity).1,
        name = .driver.as_deref().unwrap_or("DRIVER")
    )]
    PreviousIdentity {
        device: String,
        identity: PodIdentity,
        line: String,
        driver: Option<String>,
    },
    /// Another pod on the same layer-2 network (`segment`) has the MAC or GUID. If `segment` is
    /// `None`, the message names the node instead.
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

/// A key of the configuration that names an interface or a device of the host, and its value.
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
    /// The address of the member.
    pub(in crate::operation) address: PciAddress,
    /// The sysfs directory that lists the members of the group.
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
    format!("not a virtual function ({devices}/{device} has no physfn)")
}

/// Returns two parts of the message of [`DeviceProblem::PreviousIdentity`]: the name of the value
/// that the device still has, and how a pod or a definition can replace that value.
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
