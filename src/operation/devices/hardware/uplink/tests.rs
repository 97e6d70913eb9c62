//! Tests of the check for uplinks, with simulated hosts. An uplink is an interface that the node
//! itself needs. Jackfield refuses a key if a plugin would use it to move an uplink into a pod.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::*;
use crate::allocation::AllocatedDevice;
use crate::cni::{CapabilityArgs, RawObject};
use crate::kernel::NetlinkError;
use crate::kernel::fake::FakeDevices;
use crate::operation::devices::hardware::tests::node;

fn soon() -> Instant {
    Instant::now() + std::time::Duration::from_secs(60)
}

fn link(index: u32, name: &str) -> Link {
    Link {
        index,
        name: name.to_owned(),
        ..Link::default()
    }
}

fn of_kind(kind: &str, link: Link) -> Link {
    Link {
        kind: Some(kind.to_owned()),
        ..link
    }
}

fn member(master: u32, link: Link) -> Link {
    Link {
        master: Some(master),
        ..link
    }
}

/// Builds a host. `eth0` is a virtio function and carries the default route, `eth1` carries an
/// address, and `free0` carries nothing.
fn host() -> FakeDevices {
    let eth0 = Link {
        address: vec![2, 0, 0, 0, 0, 0xaa],
        parent_bus: Some("virtio".to_owned()),
        parent_name: Some("virtio3".to_owned()),
        ..link(2, "eth0")
    };
    let free0 = Link {
        address: vec![2, 0, 0, 0, 0, 0xbb],
        ..link(4, "free0")
    };
    FakeDevices {
        links: vec![link(1, "lo"), eth0, link(3, "eth1"), free0],
        uplinks: vec!["eth0".to_owned()],
        addressed: vec![3],
        ..FakeDevices::default()
    }
}

/// Checks an attachment. Returns the message of the refusal, or an empty string. Also returns how
/// often the check opened the links of the host.
fn look(kernel: FakeDevices, attachment: &Attachment) -> (String, u32) {
    let dir = tempfile::tempdir().unwrap();
    let function = dir.path().join("sys/devices/pci0000:00/0000:00:03.0");
    std::fs::create_dir_all(function.join("virtio3/net/eth0")).unwrap();
    for (bus, name, target) in [
        ("pci", "0000:00:03.0", "0000:00:03.0"),
        ("virtio", "virtio3", "0000:00:03.0/virtio3"),
    ] {
        let devices = dir.path().join("sys/bus").join(bus).join("devices");
        std::fs::create_dir_all(&devices).unwrap();
        let target = format!("../../../devices/pci0000:00/{target}");
        std::os::unix::fs::symlink(target, devices.join(name)).unwrap();
    }
    let links = Rc::new(RefCell::new(kernel));
    let opened = Cell::new(0);
    let open = || {
        opened.set(opened.get() + 1);
        Ok(Box::new(links.clone()) as Box<dyn DeviceLinks>)
    };
    let node = node(dir.path());
    let spared = Hardware::of(&node).spares_uplinks(attachment, &mut HostLinks::new(&open), soon());
    let line = spared.err().map(|reason| reason.to_string());
    (line.unwrap_or_default(), opened.get())
}

fn line(kernel: FakeDevices, config: &str) -> String {
    look(kernel, &Attachment::for_tests(config)).0
}

fn taking(keys: &str) -> String {
    format!(r#"{{"cniVersion":"1.0.0","name":"n","type":"host-device",{keys}}}"#)
}

#[test]
fn every_key_that_names_an_uplink_is_refused_at_any_depth() {
    let table = [
        r#""device":"eth0""#,
        r#""Device":"eth0""#,
        r#""d\u0065vice":"\u0065th0""#,
        r#""hwaddr":"02:00:00:00:00:AA""#,
        r#""hwaddr":"0200.0000.00aa""#,
        r#""hwaddr":"02-00-00-00-00-aa""#,
        r#""pciBusID":"0000:00:03.0""#,
        r#""deviceID":"0000:00:03.0""#,
        r#""deviceID":"virtio3""#,
        r#""deviceID":"eth0""#,
        r#""\u212Aernelpath":"/sys/devices/pci0000:00/0000:00:03.0""#,
        r#""kernelpath":"/sys/devices/pci0000:00/0000:00:03.0/virtio3""#,
        r#""runtimeConfig":{"deviceID":"0000:00:03.0"}"#,
        r#""args":{"cni":{"deviceID":"eth0"}}"#,
        r#""delegate":{"type":"host-device","device":"eth0"}"#,
        r#""links":[{"name":"free0"},{"name":"eth0"}]"#,
        r#""mode":"passthru","master":"eth0""#,
        r#""links":[null,{"name":"eth0"}]"#,
        r#""delegate":{"type":"macvlan","mode":"passthru","master":"eth0"}"#,
        r#""delegates":[{"type":"bond","lin\u212As":[{"Name":"eth0"}]}]"#,
        // Some JSON parsers reject this number. A plugin's parser may accept it, so Jackfield must
        // read the keys after the number.
        r#""x":1e400,"mode":"passthru","master":"eth0""#,
        r#""\u006dode":"pas\u0073thru","Master":"eth0""#,
    ];
    for keys in table {
        let line = line(host(), &taking(keys));
        assert!(
            line.contains("which carries this node's default route (interface eth0)"),
            "{keys}: {line}"
        );
    }
    let address = line(host(), &taking(r#""device":"eth1""#));
    assert!(
        address.starts_with(
            "the value of key device is eth1, which carries an address of this node \
             (interface eth1): "
        ),
        "{address}"
    );
    for keys in [
        r#""pciBusID":"../../../class/net/eth0/device""#,
        r#""kernelpath":"/sys/devices/x/../pci0000:00/0000:00:03.0""#,
        r#""deviceID":"0000:00:0[3].0""#,
        r#""pciBusID":"./0000:00:03.0""#,
        r#""pciBusID":"/0000:00:03.0""#,
        r#""pciBusID":"0000:00:03.0/""#,
        r#""pciBusID":"0000:00:10.0/physfn""#,
    ] {
        let line = line(host(), &taking(keys));
        assert!(
            line.contains("may take a device that jackfield has not checked"),
            "{keys}: {line}"
        );
    }
    for master in ["", r#","master":"""#, r#","master":null"#] {
        let line = line(host(), &taking(&format!(r#""mode":"passthru"{master}"#)));
        assert!(line.contains("key master is missing"), "{master}: {line}");
    }
}

#[test]
fn keys_that_take_no_uplink_are_accepted() {
    for keys in [
        r#""device":"free0""#,
        r#""device":"missing0""#,
        r#""hwaddr":"02:00:00:00:00:bb""#,
        r#""pciBusID":"0000:00:04.0""#,
        r#""device":7,"hwaddr":null,"pciBusID":"""#,
        r#""master":"eth0""#,
        r#""master":"eth0","mode":"bridge""#,
        r#""master":"eth0","mode":"passthru","linkInContainer":true"#,
        r#""bridge":"eth0","name2":"eth0""#,
        r#""links":[{"name":"eth0"}],"linksInContainer":true"#,
    ] {
        assert_eq!(line(host(), &taking(keys)), "", "{keys}");
    }
}

#[test]
fn keys_from_the_pod_and_from_the_runtime_are_checked() {
    let plain = || Attachment::for_tests(r#"{"cniVersion":"1.0.0","type":"host-device"}"#);
    let mut args = CapabilityArgs::new();
    args.insert("deviceID", "0000:00:03.0").unwrap();
    let cni_args = RawObject::parse(br#"{"Device":"eth0"}"#).unwrap();
    let id = serde_json::value::to_raw_value("eth0").unwrap();
    for attachment in [
        Attachment {
            capability_args: args.clone(),
            ..plain()
        },
        Attachment {
            cni_args: Some(cni_args),
            ..plain()
        },
        Attachment {
            inject: vec![("deviceID".to_owned(), id)],
            ..plain()
        },
    ] {
        let (line, _) = look(host(), &attachment);
        assert!(line.contains("default route"), "{line}");
    }
    // `spares_uplinks` skips the function that kubelet allocated. `can_be_given` checks that
    // function, and names the resource in its error.
    let allocated = Attachment {
        capability_args: args,
        device: Some(AllocatedDevice {
            id: "0000:00:03.0".to_owned(),
            resource: "r".to_owned(),
            driver: None,
            origin: None,
            claim: None,
        }),
        ..plain()
    };
    assert_eq!(look(host(), &allocated), (String::new(), 0));
}

#[test]
fn the_host_is_examined_only_if_a_key_takes_an_interface() {
    let config = r#"{"cniVersion":"1.0.0","name":"n","type":"macvlan","master":"eth0"}"#;
    let (line, opened) = look(host(), &Attachment::for_tests(config));
    assert_eq!((line.as_str(), opened), ("", 0));
}

#[test]
fn interfaces_below_an_uplink_are_refused_and_those_above_are_accepted() {
    let vlan = Link {
        lower: Some(11),
        ..of_kind("vlan", link(10, "bond0.7"))
    };
    let pair = |index, name, peer| Link {
        lower: Some(peer),
        ..of_kind("veth", link(index, name))
    };
    let mut kernel = host();
    kernel.links.extend([
        vlan,
        of_kind("bond", link(11, "bond0")),
        member(11, link(12, "slave0")),
        member(11, link(13, "slave1")),
        of_kind("openvswitch", link(20, "ovs-system")),
        of_kind("openvswitch", link(21, "br-ex")),
        member(20, link(22, "port0")),
        pair(30, "host0", 31),
        pair(31, "other0", 30),
        Link {
            lower: Some(2),
            ..of_kind("vlan", link(40, "eth0.9"))
        },
    ]);
    let links = kernel.links;
    let look = |name: &str| {
        let kernel = FakeDevices {
            links: links.clone(),
            uplinks: vec!["bond0.7".to_owned()],
            addressed: vec![2, 21, 30],
            ..FakeDevices::default()
        };
        line(kernel, &taking(&format!(r#""device":"{name}""#)))
    };
    for (name, by) in [
        ("bond0.7", "default route (interface bond0.7)"),
        ("bond0", "default route (interface bond0.7)"),
        ("slave0", "default route (interface bond0.7)"),
        ("slave1", "default route (interface bond0.7)"),
        ("br-ex", "address of this node (interface br-ex)"),
        ("port0", "address of this node (interface br-ex)"),
        ("host0", "address of this node (interface host0)"),
        ("eth0", "address of this node (interface eth0)"),
    ] {
        assert!(look(name).contains(by), "{name}: {}", look(name));
    }
    for name in ["other0", "eth0.9", "eth1", "free0"] {
        assert_eq!(look(name), "", "{name}");
    }
}

#[test]
fn an_interface_is_refused_if_the_kernel_does_not_answer() {
    let dir = tempfile::tempdir().unwrap();
    let closed = || NetlinkError::Closed.about("listing interfaces");
    let open = || Err(closed());
    let node = node(dir.path());
    let attachment = Attachment::for_tests(&taking(r#""device":"eth9""#));
    let spared =
        Hardware::of(&node).spares_uplinks(&attachment, &mut HostLinks::new(&open), soon());
    let line = spared.unwrap_err().to_string();
    assert!(line.contains("cannot tell whether eth9 is"), "{line}");
}

#[test]
fn checking_interfaces_is_limited_in_number_and_in_time() {
    let many = |count: usize| {
        let values: Vec<String> = (0..count)
            .map(|number| format!(r#"{{"device":"eth9{number}"}}"#))
            .collect();
        taking(&format!(r#""x":[{}]"#, values.join(",")))
    };
    assert_eq!(line(host(), &many(256)), "");
    let refused = line(host(), &many(257));
    assert!(refused.contains("more than 256 interfaces"), "{refused}");
    let same = vec![r#"{"device":"free0"}"#; 1000].join(",");
    assert_eq!(line(host(), &taking(&format!(r#""x":[{same}]"#))), "");
    let dir = tempfile::tempdir().unwrap();
    let open = || Ok(Box::new(Rc::new(RefCell::new(host()))) as Box<dyn DeviceLinks>);
    let attachment = Attachment::for_tests(&many(2));
    let node = node(dir.path());
    let hardware = Hardware::of(&node);
    let spared = hardware.spares_uplinks(&attachment, &mut HostLinks::new(&open), Instant::now());
    assert_eq!(spared, Err(Reason::NoTime));
}
