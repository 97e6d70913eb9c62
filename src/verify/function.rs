//! A virtual function as its definition sets it, against what its physical function says.
//!
//! What plugins of SR-IOV were told in the definition, by the keys that sriov-cni and ib-sriov-cni
//! have; nothing that no key sets, and nothing that the driver does not report. It is the only
//! proof for a function that a program drives, and holds whatever the pod does to its interface.

mod keys;

use device_info::{Guid, MacAddr};

use crate::cni::{NetworkConfig, PluginConfig, RawObject};
use crate::kernel::{VfLinkState, VfState, VfVlan};
use crate::npwg::RequestedMac;
use crate::plan::Requested;

use super::What;
use keys::{Keys, Misread};

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
        for plugin in plugins(config) {
            intended.take(plugin.body(), requested);
        }
        intended
    }

    /// Whether the plugins of SR-IOV in a chain read its keys as what they say.
    ///
    /// # Errors
    /// The first value that they do not, in one line with plugin, key, value and remedy.
    pub fn check(config: &NetworkConfig) -> Result<(), String> {
        for plugin in plugins(config) {
            let body = plugin.body();
            let checked = Keys::of(body).check(body);
            checked.map_err(|misread| format!("plugin {}: {misread}", plugin.plugin_type()))?;
        }
        Ok(())
    }

    /// The hardware address that is set.
    #[must_use]
    pub fn mac(&self) -> Option<MacAddr> {
        self.mac
    }

    /// The VLAN that is set.
    #[must_use]
    pub fn vlan(&self) -> Option<VfVlan> {
        self.vlan
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

    /// A value that is [`Misread`] is none here: its ADD was refused.
    fn take(&mut self, body: &RawObject, requested: &Requested) {
        let keys = Keys::of(body);
        let asked = match requested.mac {
            Some(RequestedMac::Ethernet(mac)) => Some(mac),
            Some(RequestedMac::Ipoib(_)) | None => None,
        };
        self.mac = asked.or(known(keys.mac)).or(self.mac);
        self.vlan = known(keys.vlan).or(self.vlan);
        self.spoof_check = known(keys.spoof_check).or(self.spoof_check);
        self.trust = known(keys.trust).or(self.trust);
        self.link_state = known(keys.link_state).or(self.link_state);
        self.min_rate = known(keys.min_rate).or(self.min_rate);
        self.max_rate = known(keys.max_rate).or(self.max_rate);
        self.guid = requested.guid.or(known(keys.guid)).or(self.guid);
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

/// Those of SR-IOV in a chain, by their names or by keys that no others have.
pub fn plugins(config: &NetworkConfig) -> impl Iterator<Item = &PluginConfig> {
    config.plugins().iter().filter(|plugin| {
        let is_by_name = plugin.plugin_type().as_str().contains("sriov");
        is_by_name || OF_FUNCTIONS.iter().any(|key| plugin.body().contains(key))
    })
}

fn known<T>(read: Result<Option<T>, Misread>) -> Option<T> {
    read.ok().flatten()
}

fn text(value: impl ToString) -> String {
    value.to_string()
}

#[cfg(test)]
mod tests;
