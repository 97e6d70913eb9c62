//! Verifies the settings that a physical function reports for one of its virtual functions.
//!
//! The expected settings come from the keys of sriov-cni and ib-sriov-cni in the definition. A
//! hardware address or GUID that the pod requests is an expected setting too. Verification skips
//! settings that neither the definition nor the pod sets, and settings that the driver does not
//! report.
//!
//! The pod cannot change these settings. For a VF that a program in user space drives, the kernel
//! shows nothing else that Jackfield could verify.

mod key_error;
mod keys;

use std::collections::BTreeMap;

use crate::cni::{NetworkConfig, PluginConfig};
use crate::kernel::VfState;
use crate::npwg::RequestedMac;
use crate::plan::Requested;

use super::Mismatch;
pub use key_error::FunctionConfigError;

/// Keys that only plugins for virtual functions have. `mac` and `vlan` are not in the list, because
/// plugins for other devices have these keys too.
const FUNCTION_KEYS: [&str; 7] = [
    "vlanQoS",
    "vlanProto",
    "spoofchk",
    "trust",
    "link_state",
    "min_tx_rate",
    "max_tx_rate",
];

/// The expected settings of a virtual function, by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntendedFunction {
    settings: BTreeMap<&'static str, String>,
}

impl IntendedFunction {
    /// Collects the settings of the SR-IOV plugins in a chain. Skips invalid values;
    /// [`check`](Self::check) reports them. A hardware address or GUID that the pod requests
    /// overrides the definition's value.
    #[must_use]
    pub fn of(config: &NetworkConfig, requested: &Requested) -> Self {
        let mut settings = BTreeMap::new();
        for plugin in plugins(config) {
            for (key, value) in keys::read(plugin) {
                settings.extend(value.ok().flatten().map(|value| (key, value)));
            }
            if let Some(RequestedMac::Ethernet(mac)) = requested.mac {
                settings.insert("mac", mac.to_string());
            }
            if let Some(guid) = requested.guid {
                settings.insert("guid", guid.to_string());
            }
        }
        Self { settings }
    }

    /// Checks that the SR-IOV plugins in a chain accept and correctly read every value.
    ///
    /// # Errors
    /// The first value that a plugin would refuse or misread.
    pub fn check(config: &NetworkConfig) -> Result<(), FunctionConfigError> {
        plugins(config).try_for_each(keys::check)
    }

    /// Returns whether the definition or the pod sets this key.
    #[must_use]
    pub fn sets(&self, key: &str) -> bool {
        self.settings.contains_key(key)
    }

    /// Returns whether there are no settings to check. The caller then need not read the physical
    /// function.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty()
    }

    /// Returns the intended settings, one per line.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.settings.iter().map(|(key, value)| match *key {
            "vlan" => value.clone(),
            _ => format!("{key} {value}"),
        })
    }

    /// Returns the settings whose reported value differs from the intended one.
    #[must_use]
    pub fn judge(&self, device: &str, found: &VfState) -> Vec<Mismatch> {
        let text = |on: bool| if on { "on" } else { "off" }.to_owned();
        let reported = [
            ("mac", found.mac.map(|mac| mac.to_string())),
            ("vlan", found.vlan.map(|vlan| vlan.to_string())),
            ("spoofchk", found.spoof_check.map(text)),
            ("trust", found.trust.map(text)),
            ("link_state", found.link_state.map(|it| it.to_string())),
            ("min_tx_rate", found.rates.map(|it| it.min.to_string())),
            ("max_tx_rate", found.rates.map(|it| it.max.to_string())),
            // A plugin sets both GUIDs to the same value.
            ("guid", found.port_guid.map(|guid| guid.to_string())),
            ("guid", found.node_guid.map(|guid| guid.to_string())),
        ];
        let mut differences = Vec::new();
        for (key, found) in reported {
            if let (Some(expected), Some(found)) = (self.settings.get(key), found)
                && *expected != found
            {
                differences.push(Mismatch::Function {
                    device: device.to_owned(),
                    key,
                    expected: expected.clone(),
                    found,
                });
            }
        }
        differences.dedup();
        differences
    }
}

/// Returns the SR-IOV plugins of a chain: plugins whose type contains `sriov`, and plugins with a
/// key of `FUNCTION_KEYS`.
pub fn plugins(config: &NetworkConfig) -> impl Iterator<Item = &PluginConfig> {
    config.plugins().iter().filter(|plugin| {
        let is_by_name = plugin.plugin_type().as_str().contains("sriov");
        is_by_name || FUNCTION_KEYS.iter().any(|key| plugin.body().contains(key))
    })
}

#[cfg(test)]
mod tests;
