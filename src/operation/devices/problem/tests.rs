use std::path::PathBuf;

use device_info::PciAddress;

use super::*;
use crate::kernel::PlacedDevice;

const ID: &str = "0000:01:10.2";

fn address() -> PciAddress {
    ID.parse().unwrap()
}

fn device() -> AllocatedDevice {
    AllocatedDevice {
        id: ID.to_owned(),
        resource: "r".to_owned(),
        driver: None,
        origin: None,
        claim: None,
    }
}

fn sysfs() -> PathBuf {
    PathBuf::from("/sys")
}

fn group() -> GroupMember {
    GroupMember {
        number: 7,
        address: "0000:01:10.3".parse().unwrap(),
        directory: "/sys/kernel/iommu_groups/7/devices".to_owned(),
    }
}

#[test]
fn each_problem_of_an_allocated_device_has_its_own_message() {
    for (problem, words) in [
        (
            DeviceProblem::Missing(device(), sysfs()),
            "device 0000:01:10.2 of resource r is missing: /sys/bus/pci/devices has no \
             0000:01:10.2, because the device was removed or its PF was reset; restart the device \
              plugin and recreate the pod",
        ),
        (
            DeviceProblem::Unbound(device(), sysfs()),
            "device 0000:01:10.2 of resource r is bound to no driver: \
             /sys/bus/pci/devices/0000:01:10.2 has no link named driver; bind the device to the \
             driver that its device plugin expects, and recreate the pod",
        ),
        (
            DeviceProblem::OtherDriver {
                device: device(),
                driver: "igbvf".to_owned(),
                wanted: "vfio-pci".to_owned(),
                sysfs: sysfs(),
            },
            "device 0000:01:10.2 of resource r is bound to driver igbvf, but its driver_override \
             is vfio-pci (/sys/bus/pci/devices/0000:01:10.2/driver_override); bind the device to \
             vfio-pci and recreate the pod",
        ),
        (
            DeviceProblem::CutsNodeOff(
                device(),
                "this node's default route (interface eth0)".to_owned(),
            ),
            "device 0000:01:10.2 of resource r carries this node's default route (interface \
             eth0): a pod that takes this device cuts the node off from the network; exclude the \
             device from the device plugin's selectors",
        ),
        (
            DeviceProblem::GroupInUse(device(), group(), "igbvf".to_owned()),
            "device 0000:01:10.2 of resource r shares IOMMU group 7 with 0000:01:10.3 \
             (see /sys/kernel/iommu_groups/7/devices), and 0000:01:10.3 is bound to driver igbvf; \
             bind the whole group to vfio-pci, or move the card to a slot that isolates functions \
             from each other (ACS)",
        ),
        (
            DeviceProblem::GroupHeld(device(), group(), "pod demo/web".to_owned()),
            "device 0000:01:10.2 of resource r shares IOMMU group 7 with 0000:01:10.3 \
             (see /sys/kernel/iommu_groups/7/devices), and pod demo/web has 0000:01:10.3: only one \
             program can open the group; move the card to a slot that isolates functions from each \
             other (ACS)",
        ),
        (
            DeviceProblem::InUse {
                device: "device 0000:01:10.2".to_owned(),
                holder: "pod demo/web".to_owned(),
            },
            "device 0000:01:10.2 is in use by pod demo/web; wait until that pod is deleted, or \
             run `jackfield doctor` to find out why the device is still in use",
        ),
        (
            DeviceProblem::PreviousIdentity {
                device: "device 0000:01:10.2".to_owned(),
                identity: PodIdentity::Guid,
                line: "x".to_owned(),
                driver: None,
            },
            "device 0000:01:10.2 still has the GUID of its previous pod: x; request an \
             infiniband-guid, or rebind the device: write its PCI address to \
             /sys/bus/pci/drivers/DRIVER/unbind, then to /sys/bus/pci/drivers/DRIVER/bind",
        ),
        (
            DeviceProblem::AddressUsed {
                address: "MAC 02:00:00:00:00:09".to_owned(),
                holder: "pod demo/web".to_owned(),
                segment: Some("bridge br0".to_owned()),
            },
            "MAC 02:00:00:00:00:09 is already in use by pod demo/web on bridge br0; request \
             another",
        ),
    ] {
        assert_eq!(problem.to_string(), words);
    }
}

#[test]
fn each_problem_in_a_definition_has_its_own_message() {
    let (key, value) = (|| "master".to_owned(), || "eth0".to_owned());
    for (problem, words) in [
        (
            DeviceProblem::DefaultRoute(key()),
            "mode is passthru and key master is missing, so the plugin takes the interface of the \
              default route; set key master to a different interface",
        ),
        (
            DeviceProblem::Pattern(NamedInterface {
                key: key(),
                value: "eth*".to_owned(),
            }),
            "key master is \"eth*\", which a plugin may read as a pattern or a path: the plugin may \
             take a device that jackfield has not checked; write the address or the name of one \
             device",
        ),
        (
            DeviceProblem::Uplink(
                NamedInterface {
                    key: key(),
                    value: value(),
                },
                "an address of this node (interface eth0)".to_owned(),
            ),
            "the value of key master is eth0, which carries an address of this node (interface \
             eth0): a pod that takes this interface cuts the node off from the network; name \
             another interface",
        ),
        (
            DeviceProblem::TooManyInterfaces(64),
            "the configuration names more than 64 interfaces of the host; name fewer",
        ),
        (
            DeviceProblem::NotVirtual {
                device: address(),
                is_physical: true,
                plugin: "sriov".parse().unwrap(),
                sysfs: sysfs(),
            },
            "device 0000:01:10.2 is a physical function, but CNI plugin sriov attaches virtual \
             functions; restrict the device plugin's selectors to virtual functions, or attach the \
             device with CNI plugin host-device",
        ),
        (
            DeviceProblem::NotVirtual {
                device: address(),
                is_physical: false,
                plugin: "sriov".parse().unwrap(),
                sysfs: sysfs(),
            },
            "device 0000:01:10.2 is not a virtual function (/sys/bus/pci/devices/0000:01:10.2 has \
             no physfn), but CNI plugin sriov attaches virtual functions; restrict the device \
             plugin's selectors to virtual functions, or attach the device with CNI plugin \
             host-device",
        ),
        (
            DeviceProblem::LostInterface {
                device: "device d".to_owned(),
                driver: "igbvf".to_owned(),
            },
            "device d is bound to driver igbvf, and its interface is in no network namespace that \
             jackfield can find; end the process that keeps the interface's namespace open, or \
             rebind the device: write its PCI address to /sys/bus/pci/drivers/igbvf/unbind, then \
             to /sys/bus/pci/drivers/igbvf/bind",
        ),
        (
            DeviceProblem::Elsewhere(
                "device d".to_owned(),
                PlacedDevice {
                    device: "d".to_owned(),
                    interface: "eth7".to_owned(),
                    netns: PathBuf::from("/run/netns/n"),
                },
            ),
            "device d: its interface eth7 is in network namespace /run/netns/n, and no pod on \
             record has the device; move the interface back with `nsenter --net=/run/netns/n ip \
             link set INTERFACE netns 1`, or end the process that keeps the namespace open",
        ),
        (
            DeviceProblem::SharedRdma {
                plugin: "rdma".parse().unwrap(),
                file: PathBuf::from("/m"),
                mode: "Y".to_owned(),
            },
            "plugin rdma moves an RDMA device into the pod, but this node shares RDMA devices \
             among all network namespaces (/m is Y); set exclusive mode while no pod runs (`rdma \
             system set netns exclusive`), and for the next boot put the line \"options ib_core \
             netns_mode=0\" into /etc/modprobe.d",
        ),
    ] {
        assert_eq!(problem.to_string(), words);
    }
}
