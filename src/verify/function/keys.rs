//! The keys by which sriov-cni and ib-sriov-cni set a virtual function, with the values that mean to
//! these plugins what they say.
//!
//! A value that they refuse is no value here either. Those that they take for something else are
//! the reason for this file: `"spoofchk": "yes"` switches the check off.

use std::ops::RangeInclusive;
use std::str::FromStr;

use device_info::{Guid, MacAddr};
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::cni::RawObject;
use crate::cni::json::excerpt;
use crate::kernel::{VfLinkState, VfVlan, VlanProtocol};

/// The VLANs that a function can be put into; 0 is none.
const VLANS: RangeInclusive<u16> = 0..=4094;
/// The priorities of a VLAN.
const PRIORITIES: RangeInclusive<u8> = 0..=7;

/// A value that a plugin of SR-IOV would not read as what it says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("key {key} is {value}: {cause}; {remedy}")]
pub(super) struct Misread {
    key: &'static str,
    value: String,
    cause: String,
    remedy: &'static str,
}

/// What one plugin sets of a virtual function, key by key.
pub(super) struct Keys {
    pub(super) mac: Read<MacAddr>,
    pub(super) vlan: Read<VfVlan>,
    pub(super) spoof_check: Read<bool>,
    pub(super) trust: Read<bool>,
    pub(super) link_state: Read<VfLinkState>,
    pub(super) min_rate: Read<u32>,
    pub(super) max_rate: Read<u32>,
    pub(super) guid: Read<Guid>,
}

/// The value of a key, nothing where it is not there, or why it is not what it says.
type Read<T> = Result<Option<T>, Misread>;

impl Keys {
    pub(super) fn of(body: &RawObject) -> Keys {
        Keys {
            mac: parsed(
                body,
                "mac",
                "no interface can have such an address",
                "write six octets with colons, as 02:00:00:00:00:01",
            ),
            vlan: vlan(body),
            spoof_check: switch(body, "spoofchk"),
            trust: switch(body, "trust"),
            link_state: link_state(body),
            min_rate: rate(body, "min_tx_rate"),
            max_rate: rate(body, "max_tx_rate"),
            guid: parsed(
                body,
                "guid",
                "no port can have such a GUID",
                "write eight octets with colons, as 02:00:00:00:00:00:00:3e",
            ),
        }
    }

    /// The first value that is not what it says.
    pub(super) fn check(self, body: &RawObject) -> Result<(), Misread> {
        self.mac?;
        self.vlan?;
        self.spoof_check?;
        self.trust?;
        self.link_state?;
        let (min, max) = (self.min_rate?, self.max_rate?);
        self.guid?;
        match (min, max) {
            (Some(min), Some(max)) if max != 0 && min > max => Err(misread(
                body,
                "min_tx_rate",
                format!("max_tx_rate is {max}"),
                "let the least rate not be above the highest",
            )),
            _ => Ok(()),
        }
    }
}

fn misread(
    body: &RawObject,
    key: &'static str,
    cause: impl Into<String>,
    remedy: &'static str,
) -> Misread {
    let value = body.get(key).map_or("null", |value| value.get());
    Misread {
        key,
        value: excerpt(value).into_owned(),
        cause: cause.into(),
        remedy,
    }
}

/// A text; an empty one is none, as for the plugins.
fn text(body: &RawObject, key: &'static str, remedy: &'static str) -> Read<String> {
    let text = body.read::<String>(key);
    let text = text.map_err(|_| misread(body, key, "it has to be a text", remedy))?;
    Ok(text.filter(|text| !text.is_empty()))
}

fn number<T: DeserializeOwned + PartialOrd>(
    body: &RawObject,
    key: &'static str,
    range: RangeInclusive<T>,
    remedy: &'static str,
) -> Read<T> {
    match body.read::<T>(key) {
        Ok(number) if number.as_ref().is_none_or(|it| range.contains(it)) => Ok(number),
        _ => Err(misread(body, key, "it is no such number", remedy)),
    }
}

fn parsed<T: FromStr>(
    body: &RawObject,
    key: &'static str,
    cause: &str,
    remedy: &'static str,
) -> Read<T> {
    let Some(text) = text(body, key, remedy)? else {
        return Ok(None);
    };
    // Where a pod may write dashes or dots, these plugins compare texts with what the kernel writes.
    let value = text.parse().ok().filter(|_| !text.contains(['-', '.']));
    value
        .map(Some)
        .ok_or_else(|| misread(body, key, cause, remedy))
}

fn switch(body: &RawObject, key: &'static str) -> Read<bool> {
    const REMEDY: &str = "write on or off";
    match text(body, key, REMEDY)?.as_deref() {
        None => Ok(None),
        Some("on") => Ok(Some(true)),
        Some("off") => Ok(Some(false)),
        Some(_) => {
            let cause = "sriov-cni takes everything but on for off";
            Err(misread(body, key, cause, REMEDY))
        }
    }
}

fn link_state(body: &RawObject) -> Read<VfLinkState> {
    const REMEDY: &str = "write auto, enable or disable";
    match text(body, "link_state", REMEDY)?.as_deref() {
        None => Ok(None),
        Some("auto") => Ok(Some(VfLinkState::Auto)),
        Some("enable") => Ok(Some(VfLinkState::Enable)),
        Some("disable") => Ok(Some(VfLinkState::Disable)),
        Some(_) => Err(misread(
            body,
            "link_state",
            "there is no such state",
            REMEDY,
        )),
    }
}

/// sriov-cni hands a negative rate on to the kernel as one without end.
fn rate(body: &RawObject, key: &'static str) -> Read<u32> {
    number(
        body,
        key,
        0..=u32::MAX,
        "write Mbit/s as a whole number, 0 for no limit",
    )
}

/// VLAN, priority and protocol, the two of which mean nothing without the first.
fn vlan(body: &RawObject) -> Read<VfVlan> {
    const PROTOCOLS: &str = "write 802.1q or 802.1ad";
    let id = number(
        body,
        "vlan",
        VLANS,
        "write a number from 0 to 4094, 0 for none",
    )?;
    let qos = number(body, "vlanQoS", PRIORITIES, "write a number from 0 to 7")?;
    let protocol = match text(body, "vlanProto", PROTOCOLS)? {
        None => None,
        Some(text) if text.eq_ignore_ascii_case("802.1q") => Some(VlanProtocol::Customer),
        Some(text) if text.eq_ignore_ascii_case("802.1ad") => Some(VlanProtocol::Service),
        Some(_) => {
            return Err(misread(
                body,
                "vlanProto",
                "there is no such protocol",
                PROTOCOLS,
            ));
        }
    };
    let needs = |key| Err(misread(body, key, "there is no VLAN", "set vlan as well"));
    let is_tagged = id.is_some_and(|id| id != 0);
    match (qos, protocol) {
        (Some(qos), _) if id.is_none() || (qos != 0 && !is_tagged) => needs("vlanQoS"),
        (_, Some(_)) if id.is_none() => needs("vlanProto"),
        (_, Some(VlanProtocol::Service)) if !is_tagged => needs("vlanProto"),
        _ => Ok(id.map(|id| VfVlan {
            id,
            qos: qos.unwrap_or_default(),
            protocol: protocol.unwrap_or_default(),
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keys: &str) -> Result<(), String> {
        let body = RawObject::parse(format!(r#"{{"type":"sriov"{keys}}}"#).as_bytes()).unwrap();
        Keys::of(&body).check(&body).map_err(|it| it.to_string())
    }

    /// What the plugins read as it is written, be it spelt as Go allows.
    #[test]
    fn vf_admin_state_that_means_what_it_says_passes() {
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
    fn vf_admin_state_that_a_plugin_would_read_otherwise_is_refused() {
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
                let begin = format!("key {key} is {value}: ");
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
                line.starts_with(&format!("key {key} is ")),
                "{keys}: {line}"
            );
        }
    }
}
