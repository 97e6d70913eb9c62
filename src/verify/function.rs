//! A virtual function as its definition sets it, against what its physical function says.
//!
//! What plugins of SR-IOV were told in the definition, by the keys that sriov-cni and ib-sriov-cni
//! have; nothing that no key sets, and nothing that the driver does not report. It is the only
//! proof for a function that a program drives, and holds whatever the pod does to its interface.

use device_info::{Guid, MacAddr};

use crate::cni::{NetworkConfig, RawObject};
use crate::kernel::{VfLinkState, VfState, VfVlan, VlanProtocol};
use crate::npwg::RequestedMac;
use crate::plan::Requested;

use super::What;

/// Keys that plugins of other devices do not have, as they have `mac` and `vlan`: whoever has one of
/// these means a virtual function, whatever it is called.
const OF_FUNCTIONS: [&str; 7] = [
    "vlanQoS",
    "vlanProto",
    "spoofchk",
    "trust",
    "link_state",
    "min_tx_rate",
    "max_tx_rate",
];

/// What is set of a virtual function; nothing where nobody sets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntendedFunction {
    mac: Option<MacAddr>,
    vlan: Option<VfVlan>,
    spoof_check: Option<bool>,
    trust: Option<bool>,
    link_state: Option<VfLinkState>,
    min_rate: Option<u32>,
    max_rate: Option<u32>,
    guid: Option<Guid>,
}

impl IntendedFunction {
    /// What the plugins of SR-IOV in a chain set. A hardware address or GUID that the pod asks for
    /// goes before the definition's own.
    #[must_use]
    pub fn of(config: &NetworkConfig, requested: &Requested) -> Self {
        let mut intended = Self::default();
        for plugin in config.plugins() {
            let body = plugin.body();
            let is_by_name = plugin.plugin_type().as_str().contains("sriov");
            if is_by_name || OF_FUNCTIONS.iter().any(|key| body.contains(key)) {
                intended.take(body, requested);
            }
        }
        intended
    }

    /// Whether nothing is set at all, so that nothing has to be looked at.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What is set, one thing a line.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let switch = |on: bool| if on { "on" } else { "off" };
        [
            self.mac.map(|mac| format!("mac {mac}")),
            self.vlan.map(text),
            self.spoof_check
                .map(|on| format!("spoofchk {}", switch(on))),
            self.trust.map(|on| format!("trust {}", switch(on))),
            self.link_state.map(|state| format!("link_state {state}")),
            self.min_rate.map(|rate| format!("min_tx_rate {rate}")),
            self.max_rate.map(|rate| format!("max_tx_rate {rate}")),
            self.guid.map(|guid| format!("guid {guid}")),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// A value that a plugin would refuse is none here: its ADD has failed then.
    fn take(&mut self, body: &RawObject, requested: &Requested) {
        let text = |key: &str| body.read::<String>(key).ok().flatten();
        let number = |key: &str| body.read::<u32>(key).ok().flatten();
        let switch = |key: &str| match text(key)?.as_str() {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        };
        let asked = match requested.mac {
            Some(RequestedMac::Ethernet(mac)) => Some(mac),
            Some(RequestedMac::Ipoib(_)) | None => None,
        };
        self.mac = asked.or_else(|| text("mac")?.parse().ok()).or(self.mac);
        if let Some(id) = number("vlan").and_then(|id| u16::try_from(id).ok()) {
            let qos = number("vlanQoS").and_then(|qos| u8::try_from(qos).ok());
            let protocol = match text("vlanProto") {
                Some(protocol) if protocol.eq_ignore_ascii_case("802.1ad") => VlanProtocol::Service,
                _ => VlanProtocol::Customer,
            };
            self.vlan = Some(VfVlan {
                id,
                qos: qos.unwrap_or_default(),
                protocol,
            });
        }
        self.spoof_check = switch("spoofchk").or(self.spoof_check);
        self.trust = switch("trust").or(self.trust);
        self.link_state = match text("link_state").as_deref() {
            Some("auto") => Some(VfLinkState::Auto),
            Some("enable") => Some(VfLinkState::Enable),
            Some("disable") => Some(VfLinkState::Disable),
            _ => self.link_state,
        };
        self.min_rate = number("min_tx_rate").or(self.min_rate);
        self.max_rate = number("max_tx_rate").or(self.max_rate);
        let guid = || text("guid")?.parse().ok();
        self.guid = requested.guid.or_else(guid).or(self.guid);
    }

    /// What a physical function says otherwise.
    #[must_use]
    pub fn judge(&self, device: &str, found: &VfState) -> Vec<What> {
        let mut differences = Vec::new();
        let mut compare = |key: &'static str, expected: Option<String>, found: Option<String>| {
            if let (Some(expected), Some(found)) = (expected, found)
                && expected != found
            {
                let device = device.to_owned();
                differences.push(What::Function {
                    device,
                    key,
                    expected,
                    found,
                });
            }
        };
        let switch = |on: bool| if on { "on" } else { "off" }.to_owned();
        compare("mac", self.mac.map(text), found.mac.map(text));
        compare("vlan", self.vlan.map(text), found.vlan.map(text));
        compare(
            "spoofchk",
            self.spoof_check.map(switch),
            found.spoof_check.map(switch),
        );
        compare("trust", self.trust.map(switch), found.trust.map(switch));
        compare(
            "link_state",
            self.link_state.map(text),
            found.link_state.map(text),
        );
        let rates = found.rates;
        compare(
            "min_tx_rate",
            self.min_rate.map(text),
            rates.map(|rates| text(rates.min)),
        );
        compare(
            "max_tx_rate",
            self.max_rate.map(text),
            rates.map(|rates| text(rates.max)),
        );
        // Both are set alike: the port's is what others see.
        compare("guid", self.guid.map(text), found.port_guid.map(text));
        compare("guid", self.guid.map(text), found.node_guid.map(text));
        differences.dedup();
        differences
    }
}

fn text(value: impl ToString) -> String {
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::VfRates;

    fn intended(keys: &str) -> IntendedFunction {
        of_type("sriov", keys, &Requested::default())
    }

    fn of_type(plugin: &str, keys: &str, requested: &Requested) -> IntendedFunction {
        let config = format!(r#"{{"cniVersion":"1.0.0","name":"n","type":"{plugin}"{keys}}}"#);
        let config = NetworkConfig::parse(config.as_bytes()).unwrap();
        IntendedFunction::of(&config, requested)
    }

    /// A VF of igb, with a VLAN; of GUIDs and link states its driver says nothing.
    fn seen() -> VfState {
        VfState {
            mac: Some([2, 0x11, 0x22, 0x33, 0x44, 0x55].into()),
            vlan: Some(VfVlan {
                id: 100,
                qos: 3,
                ..VfVlan::default()
            }),
            spoof_check: Some(false),
            trust: Some(true),
            rates: Some(VfRates { min: 0, max: 200 }),
            ..VfState::default()
        }
    }

    fn lines(intended: IntendedFunction, found: &VfState) -> Vec<String> {
        let findings = intended.judge("0000:01:10.0", found);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn vf_admin_state_as_the_definition_sets_it_is_the_proof() {
        let keys = r#","mac":"02:11:22:33:44:55","vlan":100,"vlanQoS":3,"vlanProto":"802.1q",
            "spoofchk":"off","trust":"on","link_state":"enable","max_tx_rate":200,"min_tx_rate":0"#;
        assert_eq!(lines(intended(keys), &seen()), [""; 0]);
    }

    #[test]
    fn vf_admin_state_is_told_beforehand() {
        let keys = r#","vlan":100,"vlanQoS":3,"spoofchk":"off","max_tx_rate":200"#;
        let lines = ["vlan 100 qos 3", "spoofchk off", "max_tx_rate 200"];
        assert_eq!(intended(keys).lines(), lines);
        assert_eq!(intended("").lines(), [""; 0]);
    }

    #[test]
    fn vf_admin_state_that_no_key_sets_is_nobodys_business() {
        assert!(intended("").is_empty());
        assert_eq!(lines(intended(""), &seen()), [""; 0]);
        let others = r#","vlan":5,"mac":"02:00:00:00:00:01""#;
        let bridge = of_type("bridge", others, &Requested::default());
        assert!(
            bridge.is_empty(),
            "other plugins mean other things by these keys"
        );
    }

    #[test]
    fn vf_admin_state_that_differs_is_named_key_by_key() {
        let table = [
            (
                r#","mac":"02:11:22:33:44:66""#,
                "mac is 02:11:22:33:44:55, it was to be 02:11:22:33:44:66",
            ),
            (
                r#","vlan":100"#,
                "vlan is vlan 100 qos 3, it was to be vlan 100",
            ),
            (
                r#","vlan":100,"vlanQoS":3,"vlanProto":"802.1AD""#,
                "it was to be vlan 100 qos 3 proto 802.1ad",
            ),
            (r#","vlan":0"#, "it was to be vlan 0"),
            (r#","spoofchk":"on""#, "spoofchk is off, it was to be on"),
            (r#","trust":"off""#, "trust is on, it was to be off"),
            (r#","min_tx_rate":10"#, "min_tx_rate is 0, it was to be 10"),
            (
                r#","max_tx_rate":100"#,
                "max_tx_rate is 200, it was to be 100",
            ),
        ];
        for (keys, part) in table {
            let found = lines(intended(keys), &seen());
            assert_eq!(found.len(), 1, "{keys}: {found:?}");
            assert!(found[0].contains(part), "{found:?}");
            assert!(found[0].starts_with("device 0000:01:10.0: "), "{found:?}");
        }
    }

    #[test]
    fn vf_admin_state_that_the_driver_does_not_report_is_skipped() {
        let all = r#","mac":"02:00:00:00:00:01","vlan":1,"spoofchk":"on","trust":"off",
            "link_state":"disable","min_tx_rate":1,"max_tx_rate":1,"guid":"02:00:00:00:00:00:00:05""#;
        assert_eq!(lines(intended(all), &VfState::default()), [""; 0]);
    }

    #[test]
    fn vf_guids_are_the_requested_ones_of_node_and_port() {
        let requested = Requested {
            guid: Some("02:00:00:00:00:00:00:07".parse().unwrap()),
            ..Requested::default()
        };
        let keys = r#","guid":"02:00:00:00:00:00:00:05""#;
        let intended = of_type("ib-sriov", keys, &requested);
        let seven = Some([2, 0, 0, 0, 0, 0, 0, 7].into());
        let with = |node_guid, port_guid| VfState {
            node_guid,
            port_guid,
            ..VfState::default()
        };
        assert_eq!(lines(intended, &with(seven, seven)), [""; 0]);
        let zero = Some([0; 8].into());
        let part = "guid is 00:00:00:00:00:00:00:00, it was to be 02:00:00:00:00:00:00:07";
        for found in [with(zero, zero), with(seven, zero), with(zero, seven)] {
            let lines = lines(intended, &found);
            assert_eq!(lines.len(), 1);
            assert!(lines[0].contains(part), "{lines:?}");
        }
    }

    #[test]
    fn vf_mac_that_the_pod_asks_for_goes_before_the_definitions() {
        let requested = Requested {
            mac: Some(RequestedMac::Ethernet("02:11:22:33:44:55".parse().unwrap())),
            ..Requested::default()
        };
        let keys = r#","mac":"02:00:00:00:00:01""#;
        assert_eq!(lines(of_type("sriov", keys, &requested), &seen()), [""; 0]);
    }
}
