//! A requested IP address.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::cni::json::excerpt;

/// An address with an optional prefix length: one element of `ips` (NPWG 1.3 §4.1.2.1.3).
///
/// The prefix length stays optional, because only the plugin knows whether it needs a prefix
/// length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct RequestedIp {
    addr: IpAddr,
    prefix: Option<u8>,
}

impl RequestedIp {
    /// The address.
    pub const fn addr(&self) -> IpAddr {
        self.addr
    }

    /// The prefix length in bits, if the pod requests one.
    pub const fn prefix(&self) -> Option<u8> {
        self.prefix
    }
}

impl From<IpNet> for RequestedIp {
    fn from(net: IpNet) -> Self {
        Self {
            addr: net.addr(),
            prefix: Some(net.prefix_len()),
        }
    }
}

impl fmt::Display for RequestedIp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefix {
            Some(prefix) => write!(f, "{}/{prefix}", self.addr),
            None => self.addr.fmt(f),
        }
    }
}

impl FromStr for RequestedIp {
    type Err = RequestedIpError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| RequestedIpError(excerpt(text).into_owned()))
    }
}

fn parse(text: &str) -> Option<RequestedIp> {
    let Some((addr, length)) = text.split_once('/') else {
        let addr = text.parse().ok()?;
        return Some(RequestedIp { addr, prefix: None });
    };
    let net = IpNet::new(addr.parse().ok()?, length.parse().ok()?).ok()?;
    // The parser of `u8` alone would accept "+8" and "008".
    (net.prefix_len().to_string() == length).then(|| net.into())
}

impl TryFrom<String> for RequestedIp {
    type Error = RequestedIpError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<RequestedIp> for String {
    fn from(ip: RequestedIp) -> Self {
        ip.to_string()
    }
}

/// A text that is not an IP address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{0:?} is not an IP address; write one as 192.0.2.1 or 2001:db8::1, with a prefix length such as /24 or /64 if the plugin needs one"
)]
pub struct RequestedIpError(String);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // clause: NPWG-1.3 §4.1.2.1.3 valid: an IPv4 or IPv6 address with an optional prefix length
    #[test]
    fn an_address_may_have_a_prefix_length() {
        let table = [
            ("10.2.2.42", Some("10.2.2.42")),
            ("10.2.2.42/24", Some("10.2.2.42/24")),
            ("10.2.2.42/0", Some("10.2.2.42/0")),
            ("10.2.2.42/32", Some("10.2.2.42/32")),
            ("2001:DB8:0:0::5/64", Some("2001:db8::5/64")),
            ("2001:db8::5/128", Some("2001:db8::5/128")),
            ("::ffff:10.0.0.1", Some("::ffff:10.0.0.1")),
            ("10.2.2.42/33", None),
            ("10.2.2.42/", None),
            ("10.2.2.42/+8", None),
            ("10.2.2.42/08", None),
            ("10.2.2.42/24/24", None),
            ("10.2.2.42/255.255.255.0", None),
            ("2001:db8::5/129", None),
            ("10.2.2", None),
            ("10.2.2.256", None),
            ("010.2.2.1", None),
            ("fe80::1%eth0", None),
            ("10.2.2.42 ", None),
            ("host", None),
            ("", None),
            ("/24", None),
        ];
        for (text, expected) in table {
            let ip = text.parse::<RequestedIp>().ok().map(|ip| ip.to_string());
            assert_eq!(ip.as_deref(), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn an_address_reads_back(addr: IpAddr, length in 0_u8..=128) {
            let prefix = Some(length).filter(|length| addr.is_ipv6() || *length <= 32);
            for prefix in [None, prefix] {
                let ip = RequestedIp { addr, prefix };
                prop_assert_eq!(ip.to_string().parse::<RequestedIp>(), Ok(ip));
            }
        }

        #[test]
        fn no_text_causes_a_panic(text in "[0-9a-f.:/+]{0,24}|\\PC{0,12}") {
            let _ = text.parse::<RequestedIp>();
        }
    }
}
