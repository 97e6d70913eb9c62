//! A default route, with all that is needed to put it back exactly as it was.

mod raw_attribute;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

pub use raw_attribute::RawAttribute;
pub(super) use read::is_default;

/// An IP family: NPWG 1.3 §4.1.2.1.9 default routes are replaced family by family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both, IPv4 first.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// The family of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }
}

/// The main table, `RT_TABLE_MAIN`.
pub(super) const MAIN_TABLE: u32 = 254;

/// `RTPROT_STATIC`: set by an administrator, so no routing daemon takes it away.
const STATIC: u8 = 4;

/// A default route of the main table.
///
/// Those that are read from the kernel are kept in the journal while another one replaces them;
/// what this type does not name is carried along as the kernel wrote it
/// ([`RawAttribute`]), so that adding it again gives the same route. Interfaces are kept by name,
/// since an interface that was made again has another index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefaultRoute {
    /// Its family.
    pub family: Family,
    /// Where packets go: one, or several that share them (`nexthop` in `ip route`).
    pub next_hops: Vec<NextHop>,
    /// Lower is preferred. Absent, IPv4 takes 0 and IPv6 takes 1024.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<u32>,
    /// Who set it (`RTPROT_*`).
    pub protocol: u8,
    /// How far its next hop is (`RT_SCOPE_*`): 0 with a gateway, 253 without.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub scope: u8,
    /// For packets of this type of service alone.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tos: u8,
    /// For packets from this prefix alone (IPv6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<IpNet>,
    /// The source address of packets that have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefsrc: Option<IpAddr>,
    /// The next-hop object it uses; the kernel then shows its next hops too, but does not take
    /// both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_hop_id: Option<u32>,
    /// Seconds until it ends, for those that came from a router advertisement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u32>,
    /// The rest: MTU, MSS and the other metrics of connections, preference, realm, …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rest: Vec<RawAttribute>,
}

/// One way that packets of a route go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NextHop {
    /// The router; of the other family where an IPv4 route goes via an IPv6 router.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// The name of the interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The gateway is taken for reachable though no address of the interface says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub onlink: bool,
    /// Its share among several, less one (`rtnh_hops`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub extra_weight: u8,
    /// The rest: encapsulation, realm, …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rest: Vec<RawAttribute>,
}

impl DefaultRoute {
    /// A new default route by this gateway on this interface, as NPWG 1.3 §4.1.2.1.9 asks for.
    ///
    /// Several gateways get different metrics, in their order; no metric is the kernel's choice.
    #[must_use]
    pub fn via(gateway: IpAddr, interface: &str, metric: Option<u32>) -> Self {
        Self {
            family: Family::of(gateway),
            next_hops: vec![NextHop {
                gateway: Some(gateway),
                interface: Some(interface.to_owned()),
                ..NextHop::default()
            }],
            metric,
            protocol: STATIC,
            scope: 0,
            tos: 0,
            from: None,
            prefsrc: None,
            next_hop_id: None,
            expires: None,
            rest: Vec::new(),
        }
    }

    /// The interfaces that packets of it leave by.
    pub fn interfaces(&self) -> impl Iterator<Item = &str> {
        self.next_hops
            .iter()
            .filter_map(|hop| hop.interface.as_deref())
    }
}

impl fmt::Display for DefaultRoute {
    /// As `ip route` writes it: `default via 10.0.0.1 dev eth0 metric 100`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "default")?;
        if let Some(from) = self.from {
            write!(f, " from {from}")?;
        }
        match self.next_hops.as_slice() {
            [only] => write!(f, "{only}")?,
            several => {
                for hop in several {
                    write!(
                        f,
                        " nexthop{hop} weight {}",
                        u16::from(hop.extra_weight) + 1
                    )?;
                }
            }
        }
        if let Some(metric) = self.metric {
            write!(f, " metric {metric}")?;
        }
        Ok(())
    }
}

impl fmt::Display for NextHop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(gateway) = self.gateway {
            write!(f, " via {gateway}")?;
        }
        if let Some(interface) = &self.interface {
            write!(f, " dev {interface}")?;
        }
        if self.onlink {
            write!(f, " onlink")?;
        }
        Ok(())
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(number: &u8) -> bool {
    *number == 0
}
