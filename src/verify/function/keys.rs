//! The keys by which sriov-cni and ib-sriov-cni set up a virtual function.
//!
//! This module refuses values that these plugins refuse or misread. For example, sriov-cni reads
//! `"spoofchk": "yes"` as `off`.

use std::ops::RangeInclusive;
use std::str::FromStr;

use device_info::{Guid, MacAddr};
use serde::de::DeserializeOwned;

use super::key_error::{FunctionConfigError, Problem};
use crate::cni::PluginConfig;
use crate::kernel::{VfVlan, VlanProtocol};

/// The VLAN IDs of a virtual function; 0 means no VLAN.
const VLANS: RangeInclusive<u16> = 0..=4094;
/// The priorities of a VLAN.
const PRIORITIES: RangeInclusive<u8> = 0..=7;

/// The value of a key, or [`None`] if the key is absent.
type Read<T> = Result<Option<T>, FunctionConfigError>;

/// Reads the settings of a virtual function from the keys of one plugin. Formats each value like
/// the kernel's value, so that the caller can compare the two texts.
pub(super) fn read(plugin: &PluginConfig) -> [(&'static str, Read<String>); 8] {
    let switch = |key| one_of(plugin, key, &["on", "off"], Problem::Switch);
    let link_states = ["auto", "enable", "disable"];
    let link_state = one_of(plugin, "link_state", &link_states, Problem::LinkState);
    let rate = |key| rate(plugin, key).map(|rate| Some(rate?.to_string()));
    [
        ("mac", parsed::<MacAddr>(plugin, "mac", Problem::Mac)),
        ("vlan", vlan(plugin).map(|vlan| Some(vlan?.to_string()))),
        ("spoofchk", switch("spoofchk")),
        ("trust", switch("trust")),
        ("link_state", link_state),
        ("min_tx_rate", rate("min_tx_rate")),
        ("max_tx_rate", rate("max_tx_rate")),
        ("guid", parsed::<Guid>(plugin, "guid", Problem::Guid)),
    ]
}

/// Checks all settings of one plugin.
///
/// # Errors
/// The first value that the plugin would misread or refuse.
pub(super) fn check(plugin: &PluginConfig) -> Result<(), FunctionConfigError> {
    for (_, value) in read(plugin) {
        value?;
    }
    match (rate(plugin, "min_tx_rate")?, rate(plugin, "max_tx_rate")?) {
        (Some(min), Some(max)) if max != 0 && min > max => {
            let problem = Problem::AboveMaximum(max);
            Err(FunctionConfigError::new(plugin, "min_tx_rate", problem))
        }
        _ => Ok(()),
    }
}

/// Reads a string. Like the plugins, treats an empty string as absent.
fn text(plugin: &PluginConfig, key: &'static str) -> Read<String> {
    let text = plugin.body().read_text(key);
    text.map_err(|_| FunctionConfigError::new(plugin, key, Problem::NotText))
}

fn number<T: DeserializeOwned + PartialOrd>(
    plugin: &PluginConfig,
    key: &'static str,
    range: RangeInclusive<T>,
) -> Read<T> {
    match plugin.body().read::<T>(key) {
        Ok(number) if number.as_ref().is_none_or(|number| range.contains(number)) => Ok(number),
        _ => Err(FunctionConfigError::new(plugin, key, Problem::NotInRange)),
    }
}

fn parsed<T: FromStr + ToString>(
    plugin: &PluginConfig,
    key: &'static str,
    problem: Problem,
) -> Read<String> {
    let Some(text) = text(plugin, key)? else {
        return Ok(None);
    };
    // Dashes and dots are invalid here, because the plugins compare this text with the kernel's
    // text, which has colons. Jackfield rewrites dashes and dots only in a pod's request.
    match text.parse::<T>() {
        Ok(value) if !text.contains(['-', '.']) => Ok(Some(value.to_string())),
        _ => Err(FunctionConfigError::new(plugin, key, problem)),
    }
}

fn one_of(
    plugin: &PluginConfig,
    key: &'static str,
    words: &[&str],
    problem: Problem,
) -> Read<String> {
    let text = text(plugin, key)?;
    match text.as_deref() {
        Some(word) if !words.contains(&word) => Err(FunctionConfigError::new(plugin, key, problem)),
        _ => Ok(text),
    }
}

/// Reads a rate. Refuses a negative rate: sriov-cni would pass it on, and the kernel would treat it
/// as no limit.
fn rate(plugin: &PluginConfig, key: &'static str) -> Read<u32> {
    number(plugin, key, 0..=u32::MAX)
}

/// Reads the VLAN, its priority and its protocol. Without the key `vlan`, refuses every priority
/// and every protocol. With VLAN 0, accepts only priority 0 and the protocol 802.1q.
fn vlan(plugin: &PluginConfig) -> Read<VfVlan> {
    let refuse = |key, problem| Err(FunctionConfigError::new(plugin, key, problem));
    let id = number(plugin, "vlan", VLANS)?;
    let qos = number(plugin, "vlanQoS", PRIORITIES)?;
    let protocol = match text(plugin, "vlanProto")? {
        None => None,
        Some(text) if text.eq_ignore_ascii_case("802.1q") => Some(VlanProtocol::Customer),
        Some(text) if text.eq_ignore_ascii_case("802.1ad") => Some(VlanProtocol::Service),
        Some(_) => return refuse("vlanProto", Problem::VlanProtocol),
    };
    let needs_vlan = |key| refuse(key, Problem::NoVlan);
    let is_tagged = id.is_some_and(|id| id != 0);
    match (qos, protocol) {
        (Some(qos), _) if id.is_none() || (qos != 0 && !is_tagged) => needs_vlan("vlanQoS"),
        (_, Some(_)) if id.is_none() => needs_vlan("vlanProto"),
        (_, Some(VlanProtocol::Service)) if !is_tagged => needs_vlan("vlanProto"),
        _ => Ok(id.map(|id| VfVlan {
            id,
            qos: qos.unwrap_or_default(),
            protocol: protocol.unwrap_or_default(),
        })),
    }
}

#[cfg(test)]
mod tests {
    use crate::cni::NetworkConfig;

    fn check(keys: &str) -> Result<(), String> {
        let config = format!(r#"{{"cniVersion":"1.0.0","name":"n","type":"sriov"{keys}}}"#);
        let config = NetworkConfig::parse(config.as_bytes()).unwrap();
        super::check(&config.plugins()[0]).map_err(|error| error.to_string())
    }

    /// As in Go, the letter case of a key does not matter.
    #[test]
    fn vf_settings_that_plugins_read_correctly_are_accepted() {
        for keys in [
            "",
            r#","spoofchk":"on","trust":"off","link_state":"auto""#,
            r#","spoofchk":"","trust":null,"link_state":"","mac":"","guid":"","vlanProto":null"#,
            r#","SpoofChk":"off","LINK_STATE":"disable""#,
            r#","vlan":0,"vlanQoS":0,"vlanProto":"802.1Q""#,
            r#","vlan":4094,"vlanQoS":7,"vlanProto":"802.1AD""#,
            r#","min_tx_rate":0,"max_tx_rate":0"#,
            r#","min_tx_rate":100,"max_tx_rate":100"#,
            r#","min_tx_rate":100,"max_tx_rate":0"#,
            r#","mac":"02:00:00:00:00:AB","guid":"02:00:00:00:00:00:00:3e""#,
        ] {
            assert_eq!(check(keys), Ok(()), "{keys}");
        }
    }

    #[test]
    fn vf_settings_that_a_plugin_would_misread_are_refused() {
        for (key, values) in [
            (
                "spoofchk",
                &[r#""yes""#, r#""ON""#, r#""true""#, r#"" on""#, "true", "1"][..],
            ),
            ("trust", &[r#""enabled""#, r#""1""#, r#""Off""#, "false"]),
            ("link_state", &[r#""up""#, r#""Auto""#, "1", "true"]),
            ("vlan", &["4095", "-1", r#""100""#, "1.5", "100.0", "1e2"]),
            ("min_tx_rate", &["-1", "4294967296", r#""10""#, "0.5"]),
            ("max_tx_rate", &["-5", "99999999999", "true"]),
            (
                "mac",
                &[r#""02-00-00-00-00-01""#, r#""0200.0000.0001""#, "2"],
            ),
            ("mac", &[r#""01:00:5e:00:00:01""#, r#""00:00:00:00:00:00""#]),
            ("guid", &[r#""zz""#, r#""00:00:00:00:00:00:00:00""#, "7"]),
        ] {
            for value in values {
                let line = check(&format!(r#","{key}":{value}"#)).unwrap_err();
                let begin = format!("plugin sriov: key {key} is {value}: ");
                assert!(line.starts_with(&begin) && line.contains("; "), "{line}");
            }
        }
        for (keys, key) in [
            (r#","vlanQoS":3"#, "vlanQoS"),
            (r#","vlan":0,"vlanQoS":3"#, "vlanQoS"),
            (r#","vlan":5,"vlanQoS":8"#, "vlanQoS"),
            (r#","vlan":5,"vlanQoS":"3""#, "vlanQoS"),
            (r#","vlanProto":"802.1q""#, "vlanProto"),
            (r#","vlan":0,"vlanProto":"802.1ad""#, "vlanProto"),
            (r#","vlan":5,"vlanProto":"802.1x""#, "vlanProto"),
            (r#","vlan":5,"vlanProto":8"#, "vlanProto"),
            (r#","min_tx_rate":200,"max_tx_rate":100"#, "min_tx_rate"),
        ] {
            let line = check(keys).unwrap_err();
            assert!(
                line.starts_with(&format!("plugin sriov: key {key} is ")),
                "{keys}: {line}"
            );
        }
    }
}
