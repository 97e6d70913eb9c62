//! Errors for values that an SR-IOV plugin would refuse or misread.

use thiserror::Error;

use crate::cni::json::excerpt;
use crate::cni::{PluginConfig, PluginType};

/// A value that an SR-IOV plugin would refuse or misread.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("plugin {plugin}: key {key} is {value}: {problem}; {}", remedy(.key, .problem))]
pub struct FunctionConfigError {
    plugin: PluginType,
    key: &'static str,
    value: String,
    problem: Problem,
}

impl FunctionConfigError {
    pub(super) fn new(plugin: &PluginConfig, key: &'static str, problem: Problem) -> Self {
        let value = plugin.body().get(key).map_or("null", |value| value.get());
        Self {
            plugin: plugin.plugin_type().clone(),
            key,
            value: excerpt(value).into_owned(),
            problem,
        }
    }
}

/// What is wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum Problem {
    /// The value is not a string.
    #[error("it is not a string")]
    NotText,
    /// The value is not a whole number in the key's range.
    #[error("it is not a number in range")]
    NotInRange,
    /// The value is not a hardware address that an interface can have.
    #[error("an interface cannot have such an address")]
    Mac,
    /// The value is not a GUID that a port can have.
    #[error("a port cannot have such a GUID")]
    Guid,
    /// The value is neither `on` nor `off`. sriov-cni would read it as `off`.
    #[error("sriov-cni reads every value except \"on\" as \"off\"")]
    Switch,
    /// The value is not the name of a link state.
    #[error("there is no such state")]
    LinkState,
    /// The value is not the name of a VLAN protocol.
    #[error("there is no such protocol")]
    VlanProtocol,
    /// The key needs a VLAN, but the configuration sets none.
    #[error("there is no VLAN")]
    NoVlan,
    /// The minimum rate is above this maximum rate.
    #[error("it is above max_tx_rate {0}")]
    AboveMaximum(u32),
}

fn remedy(key: &str, problem: &Problem) -> &'static str {
    match (problem, key) {
        (Problem::NoVlan, _) => "set vlan as well",
        (Problem::AboveMaximum(_), _) => "set a minimum rate that is not above the maximum",
        (_, "mac") => "write six octets with colons, such as 02:00:00:00:00:01",
        (_, "guid") => "write eight octets with colons, such as 02:00:00:00:00:00:00:3e",
        (_, "vlan") => "write a number from 0 to 4094; 0 means no VLAN",
        (_, "vlanQoS") => "write a number from 0 to 7",
        (_, "vlanProto") => "write 802.1q or 802.1ad",
        (_, "link_state") => "write auto, enable or disable",
        (_, "min_tx_rate" | "max_tx_rate") => "write a whole number of Mbit/s; 0 means no limit",
        _ => "write on or off",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cni::NetworkConfig;

    #[test]
    fn a_message_contains_the_key_and_a_remedy() {
        let config = br#"{"cniVersion":"1.0.0","name":"n","type":"sriov","spoofchk":"yes","vlanQoS":3,"min_tx_rate":200}"#;
        let config = NetworkConfig::parse(config).unwrap();
        let plugin = &config.plugins()[0];
        let text = |key, problem| FunctionConfigError::new(plugin, key, problem).to_string();
        assert_eq!(
            text("spoofchk", Problem::Switch),
            "plugin sriov: key spoofchk is \"yes\": sriov-cni reads every value except \"on\" as \"off\"; write on \
             or off"
        );
        assert_eq!(
            text("vlanQoS", Problem::NoVlan),
            "plugin sriov: key vlanQoS is 3: there is no VLAN; set vlan as well"
        );
        assert_eq!(
            text("min_tx_rate", Problem::AboveMaximum(100)),
            "plugin sriov: key min_tx_rate is 200: it is above max_tx_rate 100; set a minimum rate \
             that is not above the maximum"
        );
    }
}
