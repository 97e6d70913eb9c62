//! A default route, complete enough to restore it exactly.

mod raw_attribute;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_route::AddressFamily;

pub use raw_attribute::RawAttribute;
pub(super) use read::is_default;

/// An IP family. Jackfield replaces the default routes of each family separately (NPWG 1.3
/// §4.1.2.1.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both families, IPv4 first.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// Returns the family of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }
}

impl From<Family> for AddressFamily {
    fn from(family: Family) -> Self {
        match family {
            Family::V4 => Self::Inet,
            Family::V6 => Self::Inet6,
        }
    }
}

/// The main table, `RT_TABLE_MAIN`.
pub(super) const MAIN_TABLE: u32 = 254;

/// `RTPROT_STATIC`, the origin of routes that an administrator adds. Routing daemons do not change
/// such routes.
const STATIC: u8 = 4;

/// A default route of the main table.
///
/// The journal stores the routes that Jackfield replaces. A restored route must equal the removed
/// route. `rest` therefore keeps the attributes that have no field of their own. A route stores its
/// interfaces by name, because a recreated interface has another index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefaultRoute {
    /// The IP family.
    pub family: Family,
    /// The next hops. Several next hops share the traffic (`nexthop` in `ip route`).
    pub next_hops: Vec<NextHop>,
    /// The metric; the route with the lowest metric is preferred. Without a metric, IPv4 uses 0 and
    /// IPv6 uses 1024.
    pub metric: Option<u32>,
    /// The origin of the route (`RTPROT_*`).
    pub protocol: u8,
    /// The distance to the destination (`RT_SCOPE_*`). An IPv4 route usually has 0 with a gateway
    /// and 253 without a gateway; an IPv6 route has 0.
    pub scope: u8,
    /// The type of service of packets that use the route; 0 for all packets.
    pub tos: u8,
    /// The source prefix of packets that use the route (IPv6); `None` for all packets.
    pub from: Option<IpNet>,
    /// The source address for packets whose sender has not chosen an address.
    pub prefsrc: Option<IpAddr>,
    /// The ID of the next-hop object that the route uses. The kernel reports both the ID and the
    /// object's next hops, but does not accept both in a request.
    pub next_hop_id: Option<u32>,
    /// The seconds until the route expires; `None` if it does not expire. Routes from router
    /// advertisements usually expire.
    pub expires: Option<u32>,
    /// All attributes without a field above: MTU, MSS, preference, realm, …
    pub rest: Vec<RawAttribute>,
}

/// One next hop of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NextHop {
    /// The router. An IPv4 route may have an IPv6 router.
    pub gateway: Option<IpAddr>,
    /// The interface's name.
    pub interface: Option<String>,
    /// Whether the kernel treats the gateway as reachable even if it is in no subnet of the
    /// interface.
    pub onlink: bool,
    /// The weight of this next hop, minus one (`rtnh_hops`).
    pub extra_weight: u8,
    /// All attributes without a field above: encapsulation, realm, …
    pub rest: Vec<RawAttribute>,
}

impl DefaultRoute {
    /// Returns a new default route through this gateway and interface (NPWG 1.3 §4.1.2.1.9).
    ///
    /// For several gateways, the caller passes increasing metrics in the order of preference. With
    /// [`None`] the kernel chooses the metric.
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
            ..Self::default()
        }
    }

    /// Returns the interfaces of the route's next hops.
    pub fn interfaces(&self) -> impl Iterator<Item = &str> {
        let hops = self.next_hops.iter();
        hops.filter_map(|hop| hop.interface.as_deref())
    }
}

impl fmt::Display for DefaultRoute {
    /// Writes the route as `ip route` does: `default via 10.0.0.1 dev eth0 metric 100`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "default")?;
        if let Some(from) = self.from {
            write!(f, " from {from}")?;
        }
        match self.next_hops.as_slice() {
            [only] => write!(f, "{only}")?,
            several => {
                for hop in several {
                    let weight = u16::from(hop.extra_weight) + 1;
                    write!(f, " nexthop{hop} weight {weight}")?;
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
