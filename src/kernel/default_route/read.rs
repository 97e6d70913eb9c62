//! Parses `RTM_NEWROUTE` messages into [`DefaultRoute`] values.

use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteNextHop, RouteNextHopFlags,
    RouteType, RouteVia,
};

use super::{DefaultRoute, Family, MAIN_TABLE, NextHop, RawAttribute};

/// The clock ticks per second in the kernel's messages (`USER_HZ`). The value is the same on every
/// architecture that Jackfield supports.
const TICKS: u32 = 100;

/// Returns whether a message of a dump describes a unicast default route of the main table.
///
/// Kernels before 4.20 do not filter dumps, so this function checks every condition.
pub(in crate::kernel) fn is_default(message: &RouteMessage, family: Family) -> bool {
    let header = &message.header;
    header.address_family == family.into()
        && header.destination_prefix_length == 0
        && header.kind == RouteType::Unicast
        && !header.flags.contains(RouteFlags::Cloned)
        && table(message) == MAIN_TABLE
}

fn table(message: &RouteMessage) -> u32 {
    let table = message.attributes.iter().find_map(|it| match it {
        RouteAttribute::Table(table) => Some(*table),
        _ => None,
    });
    table.unwrap_or_else(|| u32::from(message.header.table))
}

impl DefaultRoute {
    /// Reads a message. `name` returns the name of the interface with the given index.
    pub(in crate::kernel) fn read<E>(
        message: &RouteMessage,
        family: Family,
        mut name: impl FnMut(u32) -> Result<Option<String>, E>,
    ) -> Result<Self, E> {
        let header = &message.header;
        let mut route = Self {
            family,
            protocol: header.protocol.into(),
            scope: header.scope.into(),
            tos: header.tos,
            ..Self::default()
        };
        let mut only = NextHop {
            onlink: header.flags.contains(RouteFlags::Onlink),
            ..NextHop::default()
        };
        for attribute in &message.attributes {
            match attribute {
                RouteAttribute::Table(_) | RouteAttribute::Destination(_) => {}
                RouteAttribute::Priority(metric) => route.metric = Some(*metric),
                RouteAttribute::PrefSource(address) => route.prefsrc = ip(address),
                RouteAttribute::Source(address) => {
                    let prefix = header.source_prefix_length;
                    route.from = ip(address).and_then(|ip| IpNet::new(ip, prefix).ok());
                }
                RouteAttribute::NhId(id) => route.next_hop_id = Some(*id),
                RouteAttribute::Gateway(address) => only.gateway = ip(address),
                RouteAttribute::Via(via) => only.gateway = via_ip(via),
                RouteAttribute::Oif(index) => only.interface = name(*index)?,
                RouteAttribute::MultiPath(hops) => {
                    for hop in hops {
                        route.next_hops.push(NextHop::read(hop, &mut name)?);
                    }
                }
                // Keep only the remaining lifetime. A request that restores the route cannot
                // contain the rest of the cache information.
                RouteAttribute::CacheInfo(info) => route.expires = seconds(info.expires),
                RouteAttribute::Expires(seconds) => route.expires = Some(*seconds),
                other => route.rest.push(RawAttribute::from(other)),
            }
        }
        if route.next_hops.is_empty() {
            route.next_hops.push(only);
        }
        Ok(route)
    }
}

impl NextHop {
    fn read<E>(
        hop: &RouteNextHop,
        name: &mut impl FnMut(u32) -> Result<Option<String>, E>,
    ) -> Result<Self, E> {
        let mut read = Self {
            interface: name(hop.interface_index)?,
            // The kernel itself sets the other flags (dead, linkdown, offload), so a request need
            // not contain them.
            onlink: hop.flags.contains(RouteNextHopFlags::Onlink),
            extra_weight: hop.hops,
            ..Self::default()
        };
        for attribute in &hop.attributes {
            match attribute {
                RouteAttribute::Gateway(address) => read.gateway = ip(address),
                RouteAttribute::Via(via) => read.gateway = via_ip(via),
                other => read.rest.push(RawAttribute::from(other)),
            }
        }
        Ok(read)
    }
}

/// Converts the route's lifetime from clock ticks (the unit of the kernel's answers) to seconds
/// (the unit of requests). Returns `None` for a route that never expires (0 ticks).
fn seconds(ticks: u32) -> Option<u32> {
    match ticks.cast_signed() {
        0 => None,
        // The route has expired but still exists. A request cannot express this state, so restore
        // the route with a lifetime of one second.
        ..0 => Some(1),
        1.. => Some(ticks.div_ceil(TICKS)),
    }
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(ip) => Some(IpAddr::V4(*ip)),
        RouteAddress::Inet6(ip) => Some(IpAddr::V6(*ip)),
        _ => None,
    }
}

fn via_ip(via: &RouteVia) -> Option<IpAddr> {
    match via {
        RouteVia::Inet(ip) => Some(IpAddr::V4(*ip)),
        RouteVia::Inet6(ip) => Some(IpAddr::V6(*ip)),
        _ => None,
    }
}
