//! Tests which devices Jackfield refuses before any delegate runs, on sysfs trees from `fixtures`.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use device_info::{Capture, fixtures};

use super::*;
use crate::allocation::AllocatedDevice;
use crate::journal::{Header, Turn};
use crate::kernel::fake::FakeDevices;
use crate::kernel::{DeviceLinks, Link};
use crate::operation::devices::hardware::tests::node;

const PF: &str = "0000:01:00.0";
const VF: &str = "0000:01:10.0";
const SIBLING: &str = "0000:01:10.2";

struct Case<'a> {
    capture: Capture,
    device: &'a str,
    config: &'a str,
    kernel: FakeDevices,
    /// The other devices of the pod.
    more: &'a [&'a str],
    /// The devices of another pod.
    others: &'a [&'a str],
    /// A change to the tree before the check.
    change: &'a dyn Fn(&Path),
}

impl Default for Case<'_> {
    fn default() -> Self {
        Case {
            capture: fixtures::igb(),
            device: VF,
            config: r#"{"cniVersion":"1.0.0","name":"n","type":"sriov"}"#,
            kernel: FakeDevices::default(),
            more: &[],
            others: &[],
            change: &|_| (),
        }
    }
}

fn attachment(config: &str, id: &str) -> Attachment {
    Attachment {
        device: Some(AllocatedDevice {
            id: id.to_owned(),
            resource: "r".to_owned(),
            driver: None,
            origin: None,
            claim: None,
        }),
        ..Attachment::for_tests(config)
    }
}

fn key(container: &str) -> Key {
    Key {
        container: container.parse().unwrap(),
        ifname: "eth0".parse().unwrap(),
    }
}

impl Case<'_> {
    /// Returns the message of the refusal, or an empty string if the pod may have the device.
    fn line(self) -> String {
        let dir = tempfile::tempdir().unwrap();
        self.capture.build(dir.path()).unwrap();
        (self.change)(&dir.path().join("sys"));
        let journal = Journal::new(&dir.path().join("journal"));
        for other in self.others {
            let attachments = vec![attachment(self.config, other)];
            let header = Header::new(&key("other"), attachments);
            journal.begin(&header).unwrap();
            let turn = Turn::take(&dir.path().join("locks"), Instant::now()).unwrap();
            let device = Exclusive::Device(other.parse().unwrap());
            let taken = journal.take(&key("other"), &device, &turn);
            assert!(taken.unwrap().is_none());
        }
        let node = node(dir.path());
        let devices: Vec<PciAddress> = std::iter::once(&self.device)
            .chain(self.more)
            .map(|id| id.parse().unwrap())
            .collect();
        let claim = Claimant {
            journal: &journal,
            key: &key("ours"),
            pod: None,
            devices: &devices,
        };
        let links = Rc::new(RefCell::new(self.kernel));
        let open = || Ok(Box::new(links.clone()) as Box<dyn DeviceLinks>);
        let attachment = attachment(self.config, self.device);
        let given =
            Hardware::of(&node).can_be_given(&attachment, &claim, &mut HostLinks::new(&open));
        given
            .err()
            .map(|reason| reason.to_string())
            .unwrap_or_default()
    }
}

fn link(index: u32, name: &str) -> Link {
    Link {
        index,
        name: name.to_owned(),
        ..Link::default()
    }
}

/// Builds a host with an igb. `eth0` is the interface of the PF. `eth2` and `eth3` are the
/// interfaces of VFs. A link in `more` replaces the link of the same name. The interface `uplink`
/// has the default route.
fn kernel(uplink: &str, more: Vec<Link>) -> FakeDevices {
    let mut links = vec![link(2, "eth0"), link(4, "eth2"), link(5, "eth3")];
    links.retain(|known| more.iter().all(|new| new.name != known.name));
    links.extend(more);
    FakeDevices {
        links,
        uplinks: vec![uplink.to_owned()],
        ..FakeDevices::default()
    }
}

#[test]
fn a_function_that_carries_the_default_route_is_refused() {
    for (device, uplink) in [(PF, "eth0"), (VF, "eth2")] {
        let line = Case {
            device,
            kernel: kernel(uplink, vec![]),
            ..Case::default()
        }
        .line();
        let expected = format!(
            "device {device} of resource r carries this node's default route (interface {uplink})"
        );
        assert!(line.starts_with(&expected), "{line}");
    }
}

#[test]
fn a_vf_is_accepted_even_if_its_pf_carries_the_default_route() {
    let line = Case {
        kernel: kernel("eth0", vec![]),
        ..Case::default()
    }
    .line();
    assert_eq!(line, "");
}

#[test]
fn a_function_below_the_interface_of_the_default_route_is_refused() {
    let of_kind = |index, name: &str, kind: &str| Link {
        kind: Some(kind.to_owned()),
        ..link(index, name)
    };
    let member = |index, name: &str, master| Link {
        master: Some(master),
        ..link(index, name)
    };
    let vlan = Link {
        lower: Some(11),
        ..of_kind(10, "br0.7", "vlan")
    };
    let bridge = of_kind(11, "br0", "bridge");
    let bond = Link {
        master: Some(11),
        ..of_kind(12, "bond0", "bond")
    };
    let stack = vec![vlan, bridge, bond, member(4, "eth2", 12)];
    for uplink in ["br0.7", "br0", "bond0"] {
        let line = Case {
            kernel: kernel(uplink, stack.clone()),
            ..Case::default()
        }
        .line();
        assert!(line.contains(&format!("(interface {uplink})")), "{line}");
    }
    let other = Case {
        device: SIBLING,
        kernel: kernel("br0.7", stack),
        ..Case::default()
    };
    assert_eq!(other.line(), "");
}

#[test]
fn the_search_for_an_uplink_ends_at_a_cycle_of_links() {
    let round = |index, name: &str, lower| Link {
        lower: Some(lower),
        kind: Some("vlan".to_owned()),
        ..link(index, name)
    };
    let circle = vec![round(10, "a", 11), round(11, "b", 10)];
    let line = Case {
        kernel: kernel("a", circle),
        ..Case::default()
    }
    .line();
    assert_eq!(line, "");
}

/// Adds the function `member` to IOMMU group 11, the group of the VF that is bound to vfio-pci.
fn join_group(sys: &Path, member: &str) {
    let device = sys.join("bus/pci/devices").join(member);
    let target = device.canonicalize().unwrap();
    let link = sys.join("kernel/iommu_groups/11/devices").join(member);
    std::os::unix::fs::symlink(target, link).unwrap();
}

#[test]
fn an_iommu_group_that_a_kernel_driver_uses_is_refused() {
    let line = Case {
        capture: fixtures::igb_vfio(),
        change: &|sys| join_group(sys, SIBLING),
        ..Case::default()
    }
    .line();
    let start = "device 0000:01:10.0 of resource r shares IOMMU group 11 with 0000:01:10.2 (see ";
    assert!(line.starts_with(start), "{line}");
    let end = "/sys/kernel/iommu_groups/11/devices), and 0000:01:10.2 is bound to driver igbvf;";
    assert!(line.contains(end), "{line}");
}

#[test]
fn only_a_vfio_device_in_a_shared_iommu_group_is_checked() {
    let alone = Case {
        capture: fixtures::igb_vfio(),
        ..Case::default()
    };
    assert_eq!(alone.line(), "");
    let of_kernel = Case {
        capture: fixtures::igb_vfio(),
        device: SIBLING,
        ..Case::default()
    };
    assert_eq!(of_kernel.line(), "");
}

#[test]
fn an_iommu_group_that_only_the_pod_uses_is_accepted() {
    let unbound = Case {
        capture: fixtures::igb_vfio(),
        change: &|sys| {
            join_group(sys, SIBLING);
            std::fs::remove_file(sys.join("bus/pci/devices").join(SIBLING).join("driver")).unwrap();
        },
        ..Case::default()
    };
    assert_eq!(unbound.line(), "");
    let own = Case {
        capture: fixtures::igb_vfio(),
        change: &|sys| join_group(sys, SIBLING),
        more: &[SIBLING],
        ..Case::default()
    };
    assert_eq!(own.line(), "");
}

#[test]
fn an_iommu_group_that_another_pod_uses_is_refused() {
    let line = Case {
        capture: fixtures::igb_vfio(),
        change: &|sys| {
            join_group(sys, SIBLING);
            let driver = sys.join("bus/pci/devices").join(SIBLING).join("driver");
            std::fs::remove_file(&driver).unwrap();
            std::os::unix::fs::symlink("../../../../bus/pci/drivers/vfio-pci", driver).unwrap();
        },
        others: &[SIBLING],
        ..Case::default()
    }
    .line();
    assert!(line.contains("with 0000:01:10.2 ("), "{line}");
    assert!(
        line.contains("and container other has 0000:01:10.2: "),
        "{line}"
    );
}

#[test]
fn shared_rdma_mode_is_refused_for_plugins_that_move_rdma_devices() {
    let rdma = r#"{"cniVersion":"1.0.0","name":"n","plugins":[{"type":"sriov"},{"type":"rdma"}]}"#;
    let isolating = r#"{"cniVersion":"1.0.0","name":"n","type":"ib-sriov","rdmaIsolation":true}"#;
    let sriov = r#"{"cniVersion":"1.0.0","name":"n","type":"ib-sriov","rdmaIsolation":false}"#;
    let table = [
        (rdma, "Y\n", "plugin rdma moves"),
        (isolating, "Y\n", "plugin ib-sriov moves"),
        (isolating, "1", "plugin ib-sriov moves"),
        (rdma, "N\n", ""),
        (rdma, "", ""),
        (sriov, "Y\n", ""),
    ];
    for (config, mode, expected) in table {
        let line = Case {
            config,
            change: &|sys| {
                let file = sys.join(RDMA_MODE);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, mode).unwrap();
            },
            ..Case::default()
        }
        .line();
        assert_eq!(
            line.is_empty(),
            expected.is_empty(),
            "{config} {mode}: {line}"
        );
        assert!(line.starts_with(expected), "{line}");
        if !line.is_empty() {
            assert!(line.contains("rdma system set netns exclusive"), "{line}");
        }
    }
}
