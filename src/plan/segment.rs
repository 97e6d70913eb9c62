//! The layer-2 network that an attachment joins. Hardware addresses must be unique in that network.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Attachment;
use crate::cni::{InterfaceName, PluginConfig, RawObject};

/// The default name of the bridge of the plugin `bridge`.
const DEFAULT_BRIDGE: &str = "cni0";

/// The unique name of a layer-2 network of the node, such as `bridge br0 VLAN 7`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment(String);

/// What an attachment's plugins connect the pod to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttachPoint {
    /// A bridge of the node.
    Bridge {
        /// Its name.
        name: InterfaceName,
        /// The port's VLAN; 0 for none.
        vlan: u64,
    },
    /// An interface of the node.
    Interface {
        /// Its name; `None` for the interface with the default route.
        name: Option<InterfaceName>,
        /// The VLAN on the interface; 0 for none.
        vlan: u64,
    },
    /// An interface that an earlier attachment created in the pod.
    InPod {
        /// Its name.
        name: InterfaceName,
        /// The VLAN on the interface; 0 for none.
        vlan: u64,
    },
    /// The port of the device with this ID.
    Device(String),
    /// The plugins' configurations name no valid attach point.
    Unknown,
}

impl AttachPoint {
    /// The attach point of the first plugin that has one.
    pub fn of(attachment: &Attachment) -> AttachPoint {
        let device = attachment.device.as_ref().map(|device| device.id.as_str());
        let mut plugins = attachment.config.plugins().iter();
        let point = plugins.find_map(|plugin| of_plugin(plugin, device));
        point.unwrap_or(AttachPoint::Unknown)
    }
}

/// The attach point of one plugin. The plugin's type decides which keys count. For example, `sriov`
/// ignores `master`, so `of_plugin` also ignores that key. If `of_plugin` read the key, pods on the
/// same port could get different segments.
fn of_plugin(plugin: &PluginConfig, allocated: Option<&str>) -> Option<AttachPoint> {
    let body = plugin.body();
    let device = || {
        let named = || text(body, "deviceID").or_else(|| text(body, "pciBusID"));
        allocated.map(str::to_owned).or_else(named)
    };
    let device = || device().map(AttachPoint::Device);
    match plugin.plugin_type().as_str() {
        "bridge" => bridge(body, DEFAULT_BRIDGE.parse().ok()),
        "vlan" => master(body, number(body, "vlanId")),
        "macvlan" | "macvtap" | "ipvlan" | "ipvtap" | "ipoib" => master(body, 0),
        // These plugins join no network of the node, whatever keys they have.
        "ptp" | "dummy" | "tap" | "loopback" | "tuning" | "portmap" | "bandwidth" | "firewall"
        | "sbr" | "vrf" => None,
        "sriov" | "ib-sriov" => device(),
        "host-device" => device().or_else(|| {
            let name = Some(interface(body, "device")?);
            Some(AttachPoint::Interface { name, vlan: 0 })
        }),
        _ => bridge(body, None).or_else(device).or_else(|| {
            interface(body, "master")?;
            master(body, number(body, "vlanId"))
        }),
    }
}

fn bridge(body: &RawObject, default: Option<InterfaceName>) -> Option<AttachPoint> {
    let name = match text(body, "bridge") {
        Some(name) => name.parse().ok()?,
        None => default?,
    };
    let vlan = number(body, "vlan");
    Some(AttachPoint::Bridge { name, vlan })
}

fn master(body: &RawObject, vlan: u64) -> Option<AttachPoint> {
    let name = text(body, "master").map(|name| name.parse());
    let name = name.transpose().ok()?;
    match body.read::<bool>("linkInContainer") {
        Ok(Some(true)) => name.map(|name| AttachPoint::InPod { name, vlan }),
        _ => Some(AttachPoint::Interface { name, vlan }),
    }
}

fn interface(body: &RawObject, key: &str) -> Option<InterfaceName> {
    text(body, key)?.parse().ok()
}

/// Returns the text under `key`; `None` if it is missing, invalid or empty. Go plugins treat an
/// empty text as missing.
fn text(body: &RawObject, key: &str) -> Option<String> {
    body.read_text(key).ok().flatten()
}

/// The number under `key`, or 0 if it is missing or invalid. The plugin itself refuses an invalid
/// number.
fn number(body: &RawObject, key: &str) -> u64 {
    body.value_as(key).unwrap_or_default()
}

impl Segment {
    /// The segment of a bridge's ports in one VLAN.
    pub fn bridge(name: &str, vlan: u64) -> Segment {
        Segment(format!("bridge {name}")).in_vlan(vlan)
    }

    /// The segment of an interface.
    pub fn interface(name: &str) -> Segment {
        Segment(format!("interface {name}"))
    }

    /// The segment of a physical function or of a device without a PCI function. Virtual functions
    /// and subfunctions are in the segment of their physical function, because they use its port.
    pub fn device(id: impl fmt::Display) -> Segment {
        Segment(format!("device {id}"))
    }

    /// The segment of a network with an unknown attach point. The label contains the definition's
    /// namespace, so definitions in different namespaces have different segments.
    pub fn network(label: &str) -> Segment {
        Segment(format!("network {label}"))
    }

    /// One VLAN of the segment; the VLAN 0 is the whole segment.
    #[must_use]
    pub fn in_vlan(self, vlan: u64) -> Segment {
        match vlan {
            0 => self,
            vlan => Segment(format!("{} VLAN {vlan}", self.0)),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::AllocatedDevice;

    fn point(device: Option<&str>, config: &str) -> AttachPoint {
        let config = format!(r#"{{"cniVersion":"1.0.0","name":"n",{config}}}"#);
        let device = device.map(|id| AllocatedDevice {
            id: id.to_owned(),
            resource: "r".to_owned(),
            driver: None,
            origin: None,
            claim: None,
        });
        AttachPoint::of(&Attachment {
            device,
            ..Attachment::for_tests(&config)
        })
    }

    fn bridge(name: &str, vlan: u64) -> AttachPoint {
        let name = name.parse().unwrap();
        AttachPoint::Bridge { name, vlan }
    }

    fn interface(name: &str, vlan: u64) -> AttachPoint {
        let name = Some(name.parse().unwrap());
        AttachPoint::Interface { name, vlan }
    }

    #[test]
    fn the_plugin_type_decides_which_keys_name_the_attach_point() {
        let table = [
            (r#""type":"bridge""#, bridge("cni0", 0)),
            (r#""type":"bridge","bridge":"br1""#, bridge("br1", 0)),
            (
                r#""type":"bridge","Bridge":"br1","vlan":7"#,
                bridge("br1", 7),
            ),
            (r#""type":"ovs","bridge":"br1","vlan":7"#, bridge("br1", 7)),
            (r#""type":"macvlan","master":"eth0""#, interface("eth0", 0)),
            (
                r#""type":"macvlan","master":"eth0","vlanId":7"#,
                interface("eth0", 0),
            ),
            (r#""type":"ptp","bridge":"br1""#, AttachPoint::Unknown),
            (r#""type":"ptp","master":"eth0""#, AttachPoint::Unknown),
            (
                r#""type":"vlan","master":"eth0","vlanId":7"#,
                interface("eth0", 7),
            ),
            (
                r#""type":"ipvlan","master":"""#,
                AttachPoint::Interface {
                    name: None,
                    vlan: 0,
                },
            ),
            (
                r#""type":"macvlan","master":"net1","linkInContainer":true"#,
                AttachPoint::InPod {
                    name: "net1".parse().unwrap(),
                    vlan: 0,
                },
            ),
            (
                r#""type":"host-device","device":"eth1""#,
                interface("eth1", 0),
            ),
            (
                r#""type":"host-device","pciBusID":"0000:01:00.0""#,
                AttachPoint::Device("0000:01:00.0".to_owned()),
            ),
            (r#""type":"own","master":"eth0""#, interface("eth0", 0)),
            (r#""type":"ptp""#, AttachPoint::Unknown),
            (
                r#""plugins":[{"type":"own"},{"type":"bridge","bridge":"b"}]"#,
                bridge("b", 0),
            ),
        ];
        for (config, expected) in table {
            assert_eq!(point(None, config), expected, "{config}");
        }
    }

    #[test]
    fn a_device_is_the_attach_point_of_a_plugin_that_uses_it() {
        let device = |config| point(Some("vf"), config);
        let used = AttachPoint::Device("vf".to_owned());
        assert_eq!(device(r#""type":"sriov""#), used);
        assert_eq!(device(r#""type":"sriov","bridge":"b","master":"m""#), used);
        assert_eq!(device(r#""type":"own","master":"m""#), used);
        assert_eq!(device(r#""type":"ovs","bridge":"b""#), bridge("b", 0));
        assert_eq!(
            device(r#""type":"macvlan","master":"m""#),
            interface("m", 0)
        );
    }

    #[test]
    fn an_invalid_interface_name_is_not_an_attach_point() {
        for name in ["a/b", "longer-than-the-kernel-takes", "../x", " "] {
            let bridge = format!(r#""type":"bridge","bridge":"{name}""#);
            assert_eq!(point(None, &bridge), AttachPoint::Unknown, "{name}");
            let master = format!(r#""type":"macvlan","master":"{name}""#);
            assert_eq!(point(None, &master), AttachPoint::Unknown, "{name}");
        }
    }
}
