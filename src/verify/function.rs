//! Verifies the settings of a virtual function on its physical function.
//!
//! The expected settings come from the definition, by the keys of sriov-cni and ib-sriov-cni.
//! Settings without a key, and those that the driver does not report, are not checked. This is the
//! only proof for a VF that a program drives. It holds whatever the pod does to its interface.

mod key_error;
mod keys;

use device_info::{Guid, MacAddr};
use thiserror::Error;

use crate::cni::{NetworkConfig, PluginConfig, RawObject};
use crate::kernel::{VfLinkState, VfState, VfVlan};
use crate::npwg::RequestedMac;
use crate::plan::Requested;

use super::Mismatch;
use key_error::KeyError;
use keys::Keys;

/// Keys that only plugins for virtual functions have. Plugins for other devices have `mac` and
/// `vlan` too. A plugin with one of these keys sets up a virtual function, whatever its type is
/// called.
const FUNCTION_KEYS: [&str; 7] = [
    "vlanQoS",
    "vlanProto",
    "spoofchk",
    "trust",
    "link_state",
    "min_tx_rate",
    "max_tx_rate",
];

/// The settings of a virtual function that a definition sets; [`None`] for those that it leaves
/// alone.
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
    /// Collects the settings of the SR-IOV plugins in a chain. A hardware address or GUID that the
    /// pod requests takes precedence over the definition's.
    #[must_use]
    pub fn of(config: &NetworkConfig, requested: &Requested) -> Self {
        let mut intended = Self::default();
        for plugin in plugins(config) {
            intended.take(plugin.body(), requested);
        }
        intended
    }

    /// Checks that the SR-IOV plugins in a chain read every value as it is written.
    ///
    /// # Errors
    /// The first value that a plugin would read differently or refuse.
    pub fn check(config: &NetworkConfig) -> Result<(), FunctionConfigError> {
        for plugin in plugins(config) {
            let body = plugin.body();
            let checked = Keys::of(body).check(body);
            checked.map_err(|source| FunctionConfigError {
                plugin: plugin.plugin_type().to_string(),
                source,
            })?;
        }
        Ok(())
    }

    /// Returns the intended hardware address.
    #[must_use]
    pub fn mac(&self) -> Option<MacAddr> {
        self.mac
    }

    /// Returns the intended VLAN.
    #[must_use]
    pub fn vlan(&self) -> Option<VfVlan> {
        self.vlan
    }

    /// Returns whether no setting is intended, so that nothing has to be read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the intended settings, one per line.
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

    /// Skips values with a [`KeyError`]: ADD refuses them.
    fn take(&mut self, body: &RawObject, requested: &Requested) {
        let keys = Keys::of(body);
        let asked = match requested.mac {
            Some(RequestedMac::Ethernet(mac)) => Some(mac),
            Some(RequestedMac::Ipoib(_)) | None => None,
        };
        self.mac = asked.or(valid(keys.mac)).or(self.mac);
        self.vlan = valid(keys.vlan).or(self.vlan);
        self.spoof_check = valid(keys.spoof_check).or(self.spoof_check);
        self.trust = valid(keys.trust).or(self.trust);
        self.link_state = valid(keys.link_state).or(self.link_state);
        self.min_rate = valid(keys.min_rate).or(self.min_rate);
        self.max_rate = valid(keys.max_rate).or(self.max_rate);
        self.guid = requested.guid.or(valid(keys.guid)).or(self.guid);
    }

    /// Returns the settings whose reported value differs from the intended one.
    #[must_use]
    pub fn judge(&self, device: &str, found: &VfState) -> Vec<Mismatch> {
        let mut differences = Vec::new();
        let mut compare = |key: &'static str, expected: Option<String>, found: Option<String>| {
            if let (Some(expected), Some(found)) = (expected, found)
                && expected != found
            {
                let device = device.to_owned();
                differences.push(Mismatch::Function {
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
        // A plugin sets both. Other nodes see the port's.
        compare("guid", self.guid.map(text), found.port_guid.map(text));
        compare("guid", self.guid.map(text), found.node_guid.map(text));
        differences.dedup();
        differences
    }
}

/// A value that an SR-IOV plugin would read differently or refuse.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("plugin {plugin}: {source}")]
pub struct FunctionConfigError {
    /// The plugin's type.
    plugin: String,
    source: KeyError,
}

/// Returns the SR-IOV plugins of a chain, found by type or by a key that no other plugin has.
pub fn plugins(config: &NetworkConfig) -> impl Iterator<Item = &PluginConfig> {
    config.plugins().iter().filter(|plugin| {
        let is_by_name = plugin.plugin_type().as_str().contains("sriov");
        is_by_name || FUNCTION_KEYS.iter().any(|key| plugin.body().contains(key))
    })
}

fn valid<T>(read: Result<Option<T>, KeyError>) -> Option<T> {
    read.ok().flatten()
}

fn text(value: impl ToString) -> String {
    value.to_string()
}

#[cfg(test)]
mod tests;
