//! [`DefaultRoute`] ─▶ `RTM_NEWROUTE`, `RTM_DELROUTE`.

use std::net::IpAddr;

use netlink_packet_route::route::{
    RouteAttribute, RouteMessage, RouteNextHop, RouteNextHopFlags, RouteVia,
};
use rtnetlink::RouteMessageBuilder;

use crate::kernel::KernelError;

use super::{DefaultRoute, Family, NextHop};

impl DefaultRoute {
    /// Encodes the route. `index` returns the index of the interface with a name.
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
        let mut route = RouteMessageBuilder::<IpAddr>::new()
            .protocol(self.protocol.into())
            .scope(self.scope.into())
            .tos(self.tos);
        route.get_mut().header.address_family = self.family.into();
        if let Some(from) = self.from {
            let message = route.get_mut();
            message.header.source_prefix_length = from.prefix_len();
            let source = RouteAttribute::Source(from.addr().into());
            message.attributes.push(source);
        }
        if let Some(metric) = self.metric {
            route = route.priority(metric);
        }
        if let Some(address) = self.prefsrc {
            let source = RouteAttribute::PrefSource(address.into());
            route.get_mut().attributes.push(source);
        }
        if let Some(seconds) = self.expires {
            route = route.expires(seconds);
        }
        match (self.next_hop_id, self.next_hops.as_slice()) {
            (Some(id), _) => route = route.nhid(id),
            (
                None,
                []
                | [
                    NextHop {
                        gateway: None,
                        interface: None,
                        ..
                    },
                ],
            ) => {
                return Err(KernelError::NoNextHop(self.to_string()));
            }
            (None, [only]) => {
                if only.onlink {
                    route = route.onlink();
                }
                if let Some(name) = &only.interface {
                    route = route.output_interface(index(name)?);
                }
                route.get_mut().attributes.extend(self.hop_attributes(only));
            }
            (None, several) => {
                let hops = several
                    .iter()
                    .map(|hop| self.write_hop(hop, &mut index))
                    .collect::<Result<_, _>>()?;
                route = route.multipath(hops);
            }
        }
        let mut message = route.build();
        let rest = self.rest.iter().map(RouteAttribute::from);
        message.attributes.extend(rest);
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
        written.attributes = self.hop_attributes(hop).collect();
        Ok(written)
    }

    fn hop_attributes<'a>(
        &self,
        hop: &'a NextHop,
    ) -> impl Iterator<Item = RouteAttribute> + use<'a> {
        let family = self.family;
        hop.gateway
            .map(|gateway| via(family, gateway))
            .into_iter()
            .chain(hop.rest.iter().map(RouteAttribute::from))
    }
}

fn via(family: Family, gateway: IpAddr) -> RouteAttribute {
    if Family::of(gateway) == family {
        RouteAttribute::Gateway(gateway.into())
    } else {
        RouteAttribute::Via(RouteVia::from(gateway))
    }
}
