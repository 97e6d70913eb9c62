//! [`DefaultRoute`] ─▶ `RTM_NEWROUTE`, `RTM_DELROUTE`.

use std::net::IpAddr;

use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteNextHop, RouteNextHopFlags,
    RouteType, RouteVia,
};

use crate::kernel::KernelError;

use super::read::address_family;
use super::{DefaultRoute, Family, NextHop};

impl DefaultRoute {
    /// The message that describes it; `index` tells the index of an interface by its name.
    pub(in crate::kernel) fn write(
        &self,
        mut index: impl FnMut(&str) -> Result<Option<u32>, KernelError>,
    ) -> Result<RouteMessage, KernelError> {
        let mut index = |name: &str| {
            index(name)?.ok_or_else(|| KernelError::NoInterface {
                route: self.to_string(),
                interface: name.to_owned(),
            })
        };
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: address_family(self.family),
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: self.protocol.into(),
            scope: self.scope.into(),
            kind: RouteType::Unicast,
            tos: self.tos,
            ..RouteHeader::default()
        };
        let attributes = &mut message.attributes;
        if let Some(from) = self.from {
            message.header.source_prefix_length = from.prefix_len();
            attributes.push(RouteAttribute::Source(from.addr().into()));
        }
        if let Some(metric) = self.metric {
            attributes.push(RouteAttribute::Priority(metric));
        }
        if let Some(address) = self.prefsrc {
            attributes.push(RouteAttribute::PrefSource(address.into()));
        }
        if let Some(seconds) = self.expires {
            attributes.push(RouteAttribute::Expires(seconds));
        }
        match (self.next_hop_id, self.next_hops.as_slice()) {
            (Some(id), _) => attributes.push(RouteAttribute::NhId(id)),
            (None, [only]) => {
                if only.onlink {
                    message.header.flags = RouteFlags::Onlink;
                }
                if only.gateway.is_none() && only.interface.is_none() {
                    return Err(self.error("it leads nowhere"));
                }
                if let Some(name) = &only.interface {
                    attributes.push(RouteAttribute::Oif(index(name)?));
                }
                attributes.extend(self.way(only));
            }
            (None, []) => return Err(self.error("it leads nowhere")),
            (None, several) => {
                let hops = several
                    .iter()
                    .map(|hop| self.write_hop(hop, &mut index))
                    .collect::<Result<_, _>>()?;
                attributes.push(RouteAttribute::MultiPath(hops));
            }
        }
        let rest = &mut self.rest.iter();
        attributes.extend(rest.map(RouteAttribute::from));
        Ok(message)
    }

    fn write_hop(
        &self,
        hop: &NextHop,
        index: &mut impl FnMut(&str) -> Result<u32, KernelError>,
    ) -> Result<RouteNextHop, KernelError> {
        let mut written = RouteNextHop::default();
        written.hops = hop.extra_weight;
        if hop.onlink {
            written.flags = RouteNextHopFlags::Onlink;
        }
        if let Some(name) = &hop.interface {
            written.interface_index = index(name)?;
        }
        written.attributes = self.way(hop).collect();
        Ok(written)
    }

    fn way<'a>(&self, hop: &'a NextHop) -> impl Iterator<Item = RouteAttribute> + use<'a> {
        let family = self.family;
        hop.gateway
            .map(|gateway| via(family, gateway))
            .into_iter()
            .chain(hop.rest.iter().map(RouteAttribute::from))
    }

    fn error(&self, problem: &'static str) -> KernelError {
        KernelError::Route {
            route: self.to_string(),
            problem,
        }
    }
}

fn via(family: Family, gateway: IpAddr) -> RouteAttribute {
    if Family::of(gateway) == family {
        RouteAttribute::Gateway(gateway.into())
    } else {
        RouteAttribute::Via(RouteVia::from(gateway))
    }
}
