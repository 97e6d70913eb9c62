//! The words of problems of devices.

use super::{DeviceProblem, GroupMember};
use crate::allocation::AllocatedDevice;
use crate::baseline::PodIdentity;
use crate::diagnostic::Problem;

impl Problem for DeviceProblem {
    fn words(&self) -> String {
        match self {
            Self::Missing { device, sysfs } => format!(
                "{} is missing: {}/bus/pci/devices has no {}, because its PF was reset or the \
                 device was removed",
                named(device),
                sysfs.display(),
                device.id
            ),
            Self::Unbound { device, sysfs } => format!(
                "{} is bound to no driver: {}/bus/pci/devices/{} has no link driver",
                named(device),
                sysfs.display(),
                device.id
            ),
            Self::OtherDriver {
                device,
                driver,
                wanted,
                sysfs,
            } => format!(
                "{} is bound to driver {driver}, but its driver_override is {wanted} \
                 ({}/bus/pci/devices/{}/driver_override)",
                named(device),
                sysfs.display(),
                device.id
            ),
            Self::DefaultRoute { key } => format!(
                "mode is passthru and key {key} is missing, so the plugin takes the interface of \
                 the default route"
            ),
            Self::Pattern { key, value } => {
                format!("key {key} is {value:?}, which may lead to another device")
            }
            Self::Uplink {
                key,
                value,
                carried,
            } => format!(
                "key {key} names {value}, which carries {carried}: a pod that has it cuts the node \
                 off"
            ),
            Self::UnknownUplink { key, value, error } => format!(
                "key {key} names {value}, and whether it is an uplink of this node is not known: \
                 {error}"
            ),
            Self::TooManyInterfaces { limit } => {
                format!("the configuration names more than {limit} interfaces of the host")
            }
            Self::NotVirtual {
                device,
                is_physical,
                plugin,
                sysfs,
            } => {
                let is = if *is_physical {
                    "a physical function".to_owned()
                } else {
                    let root = sysfs.display();
                    format!("no virtual function ({root}/bus/pci/devices/{device} has no physfn)")
                };
                format!("device {device} is {is}, and plugin {plugin} attaches virtual functions")
            }
            Self::LostInterface { device, driver } => format!(
                "{device} is bound to driver {driver}, and its interface is in no network \
                 namespace that jackfield can find"
            ),
            Self::Elsewhere { device, placed } => format!(
                "{device}: its interface {} is in network namespace {}, and no pod on record has it",
                placed.interface,
                placed.netns.display()
            ),
            Self::CutsNodeOff { device, carried } => format!(
                "{} carries {carried}: a pod that has it cuts the node off",
                named(device)
            ),
            Self::GroupInUse {
                device,
                group,
                driver,
            } => format!(
                "{}, which is bound to driver {driver} ({})",
                shared(device, group),
                group.directory
            ),
            Self::GroupHeld {
                device,
                group,
                holder,
            } => format!(
                "{}, which {holder} has ({}): only one program can open the group",
                shared(device, group),
                group.directory
            ),
            Self::SharedRdma { plugin, file, mode } => format!(
                "plugin {plugin} moves an RDMA device into the pod, and this node shares them \
                 among all network namespaces ({} is {mode})",
                file.display()
            ),
            Self::EarlierSandbox { device, cause } => format!(
                "{device} still belongs to an earlier sandbox, which cannot be detached: {cause}"
            ),
            Self::InUse { device, holder } => format!("{device} is in use by {holder}"),
            Self::PreviousIdentity {
                device,
                identity,
                line,
                ..
            } => {
                let what = match identity {
                    PodIdentity::Mac => "hardware address",
                    PodIdentity::Guid => "GUID",
                    PodIdentity::Vlan => "VLAN",
                };
                format!("{device} still has the {what} of its previous pod: {line}")
            }
            Self::AddressUsed {
                address,
                holder,
                segment,
            } => {
                let segment = segment.as_deref().unwrap_or("this node");
                format!("{address} is already in use by {holder} on {segment}")
            }
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::Missing { .. } => "restart the device plugin and recreate the pod",
            Self::Unbound { .. } => {
                "bind it to the driver that its device plugin expects and recreate the pod"
            }
            Self::OtherDriver { wanted, .. } => {
                return Some(format!("bind it to {wanted} and recreate the pod"));
            }
            Self::DefaultRoute { .. } | Self::Uplink { .. } => "name another interface",
            Self::Pattern { .. } => "write the address or the name of one device",
            Self::UnknownUplink { .. } => "try again",
            Self::TooManyInterfaces { .. } => "name fewer",
            Self::NotVirtual { .. } => {
                "restrict the device plugin's selectors to these, or attach the device by host-device"
            }
            Self::LostInterface { driver, .. } => {
                return Some(format!(
                    "end the process that keeps it, or rebind it through \
                     /sys/bus/pci/drivers/{driver}/unbind and bind"
                ));
            }
            Self::Elsewhere { placed, .. } => {
                return Some(format!(
                    "move it back from there with ip link set {} netns 1, or end the process that \
                     keeps the namespace",
                    placed.interface
                ));
            }
            Self::CutsNodeOff { .. } => "exclude it from the device plugin's selectors",
            Self::GroupInUse { .. } => {
                "bind the whole group to vfio-pci, or use a slot that isolates its functions (ACS)"
            }
            Self::GroupHeld { .. } => "use a slot that isolates its functions (ACS)",
            Self::SharedRdma { .. } => {
                "set the mode while no pod runs (rdma system set netns exclusive), and for good \
                 with options ib_core netns_mode=0 in /etc/modprobe.d"
            }
            Self::InUse { .. } => {
                "wait until that pod is deleted, or find out with jackfield doctor why it stays"
            }
            Self::PreviousIdentity {
                identity, driver, ..
            } => {
                let driver = driver.as_deref().unwrap_or("DRIVER");
                let remedy = match identity {
                    PodIdentity::Mac => "request a MAC",
                    PodIdentity::Guid => "request an infiniband-guid",
                    PodIdentity::Vlan => "set vlan in the definition",
                };
                return Some(format!(
                    "rebind it through /sys/bus/pci/drivers/{driver}/unbind and bind, or {remedy}"
                ));
            }
            Self::AddressUsed { .. } => "request another",
            Self::EarlierSandbox { .. } => return None,
        };
        Some(remedy.to_owned())
    }
}

fn named(device: &AllocatedDevice) -> String {
    format!("device {} of resource {}", device.id, device.resource)
}

fn shared(device: &AllocatedDevice, group: &GroupMember) -> String {
    format!(
        "{} shares IOMMU group {} with {}",
        named(device),
        group.number,
        group.address
    )
}

#[cfg(test)]
mod tests;
