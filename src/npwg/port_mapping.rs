//! A host port that a plugin forwards to the pod.

use std::net::IpAddr;
use std::num::NonZeroU16;

use serde::Serialize;

use crate::cni::{JsonError, RawObject};

/// One element of `portMappings` (NPWG 1.3 §4.1.2.1.7).
///
/// The JSON of this type has the format of CNI's capability `portMappings`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PortMapping {
    /// The port on the host.
    pub host_port: NonZeroU16,
    /// The port in the pod.
    pub container_port: NonZeroU16,
    /// The protocol of both ports.
    pub protocol: Protocol,
    /// The plugin forwards the port only for packets to this address of the host. The specification
    /// does not define the key `hostIP`, but the portmap plugin and Multus support it.
    #[serde(rename = "hostIP", skip_serializing_if = "Option::is_none")]
    pub host_ip: Option<IpAddr>,
}

/// The protocol of a port; TCP by default. The case of the letters does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl PortMapping {
    /// The keys of an element.
    pub(crate) const KEYS: [&str; 4] = ["hostPort", "containerPort", "protocol", "hostIP"];

    /// Reads one element.
    ///
    /// # Errors
    ///
    /// [`JsonError::Missing`] with the key of a missing port, or [`JsonError::Key`] with the key
    /// whose value is invalid.
    pub(crate) fn read(object: &RawObject) -> Result<Self, JsonError> {
        let port = |key| {
            object
                .read::<NonZeroU16>(key)?
                .ok_or_else(|| JsonError::missing(key, "expected a port between 1 and 65535"))
        };
        let protocol = object.read::<String>("protocol")?;
        // Multus and the portmap plugin treat an empty address as absent.
        let host_ip = object.read_text("hostIP")?;
        let invalid =
            |key, text: &str, expected| JsonError::key(key, &format!("{text:?}"), expected);
        Ok(Self {
            host_port: port("hostPort")?,
            container_port: port("containerPort")?,
            protocol: match protocol {
                None => Protocol::Tcp,
                Some(text) if text.eq_ignore_ascii_case("tcp") => Protocol::Tcp,
                Some(text) if text.eq_ignore_ascii_case("udp") => Protocol::Udp,
                Some(text) if text.eq_ignore_ascii_case("sctp") => Protocol::Sctp,
                Some(text) => {
                    return Err(invalid("protocol", &text, "expected TCP, UDP or SCTP"));
                }
            },
            host_ip: host_ip
                .map(|text| {
                    let expected = "expected an IPv4 or IPv6 address";
                    text.parse().map_err(|_| invalid("hostIP", &text, expected))
                })
                .transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // clause: NPWG-1.3 §4.1.2.1.7 hostPort: the port is required, from 1 to 65535
    // clause: NPWG-1.3 §4.1.2.1.7 containerPort: the port is required, from 1 to 65535
    // clause: NPWG-1.3 §4.1.2.1.7 protocol: UDP, TCP or SCTP in upper or lower case, TCP by default
    #[test]
    fn a_mapping_has_two_ports_and_a_protocol() {
        let table = [
            (r#"{"hostPort":8080,"containerPort":80}"#, Ok("8080,80,tcp")),
            (
                r#"{"hostPort":1,"containerPort":65535,"protocol":"UDP"}"#,
                Ok("1,65535,udp"),
            ),
            (
                r#"{"hostPort":1,"containerPort":2,"protocol":"sCtP"}"#,
                Ok("1,2,sctp"),
            ),
            (
                r#"{"hostPort":1,"containerPort":2,"protocol":null}"#,
                Ok("1,2,tcp"),
            ),
            (
                r#"{"hostPort":1,"containerPort":2,"protocol":"icmp"}"#,
                Err("protocol"),
            ),
            (
                r#"{"hostPort":1,"containerPort":2,"protocol":""}"#,
                Err("protocol"),
            ),
            (
                r#"{"hostPort":1,"containerPort":2,"protocol":6}"#,
                Err("protocol"),
            ),
            (r#"{"hostPort":1}"#, Err("containerPort")),
            (r#"{"containerPort":1}"#, Err("hostPort")),
            (r#"{"hostPort":0,"containerPort":2}"#, Err("hostPort")),
            (r#"{"hostPort":65536,"containerPort":2}"#, Err("hostPort")),
            (r#"{"hostPort":-1,"containerPort":2}"#, Err("hostPort")),
            (r#"{"hostPort":"80","containerPort":2}"#, Err("hostPort")),
            (r#"{"hostPort":80.5,"containerPort":2}"#, Err("hostPort")),
            (
                r#"{"hostPort":1,"containerPort":2,"hostIP":""}"#,
                Ok("1,2,tcp"),
            ),
            (
                r#"{"hostPort":1,"containerPort":2,"hostIP":"x"}"#,
                Err("hostIP"),
            ),
        ];
        for (text, expected) in table {
            let object = RawObject::parse(text.as_bytes()).unwrap();
            match (PortMapping::read(&object), expected) {
                (Ok(mapping), Ok(expected)) => {
                    let json = serde_json::to_value(mapping).unwrap();
                    let actual = format!(
                        "{},{},{}",
                        json["hostPort"],
                        json["containerPort"],
                        json["protocol"].as_str().unwrap()
                    );
                    assert_eq!(actual, expected, "{text}");
                    assert_eq!(json.as_object().unwrap().len(), 3);
                }
                (
                    Err(JsonError::Key { key, .. } | JsonError::Missing { key, .. }),
                    Err(expected),
                ) => assert_eq!(key, expected),
                (actual, _) => panic!("{text}: {actual:?}"),
            }
        }
    }

    #[test]
    fn the_address_of_the_host_is_passed_on() {
        let text = br#"{"hostPort":1,"containerPort":2,"hostIP":"192.0.2.1"}"#;
        let mapping = PortMapping::read(&RawObject::parse(text).unwrap()).unwrap();
        assert_eq!(
            serde_json::to_string(&mapping).unwrap(),
            r#"{"hostPort":1,"containerPort":2,"protocol":"tcp","hostIP":"192.0.2.1"}"#
        );
    }
}
