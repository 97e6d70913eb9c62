//! Encodes a [`DefaultRoute`] for `RTM_NEWROUTE` and `RTM_DELROUTE` messages.

use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteNextHop, RouteNextHopFlags,
    RouteType,
};

use crate::kernel::KernelError;

use super::{DefaultRoute, Family, NextHop};

impl DefaultRoute {
    /// Encodes the route. `index` returns the index of the interface with the given name.
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
        let (header, attributes) = (&mut message.header, &mut message.attributes);
        header.address_family = self.family.into();
        header.table = RouteHeader::RT_TABLE_MAIN;
        header.kind = RouteType::Unicast;
        header.protocol = self.protocol.into();
        header.scope = self.scope.into();
        header.tos = self.tos;
        if let Some(from) = self.from {
            header.source_prefix_length = from.prefix_len();
            attributes.push(RouteAttribute::Source(from.addr().into()));
        }
        attributes.extend(self.metric.map(RouteAttribute::Priority));
        attributes.extend(self.prefsrc.map(|ip| RouteAttribute::PrefSource(ip.into())));
        attributes.extend(self.expires.map(RouteAttribute::Expires));
        let is_nowhere = |hop: &NextHop| hop.gateway.is_none() && hop.interface.is_none();
        match (self.next_hop_id, self.next_hops.as_slice()) {
            (Some(id), _) => attributes.push(RouteAttribute::NhId(id)),
            (None, hops) if hops.len() < 2 && hops.iter().all(is_nowhere) => {
                return Err(KernelError::NoNextHop(self.to_string()));
            }
            (None, [only]) => {
                if only.onlink {
                    header.flags.insert(RouteFlags::Onlink);
                }
                if let Some(name) = &only.interface {
                    attributes.push(RouteAttribute::Oif(index(name)?));
                }
                attributes.extend(self.hop_attributes(only));
            }
            (None, several) => {
                let hops = several.iter().map(|hop| self.write_hop(hop, &mut index));
                attributes.push(RouteAttribute::MultiPath(hops.collect::<Result<_, _>>()?));
            }
        }
        attributes.extend(self.rest.iter().map(RouteAttribute::from));
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

    fn hop_attributes(&self, hop: &NextHop) -> impl Iterator<Item = RouteAttribute> {
        let gateway = hop.gateway.map(|ip| match Family::of(ip) == self.family {
            true => RouteAttribute::Gateway(ip.into()),
            false => RouteAttribute::Via(ip.into()),
        });
        let rest = hop.rest.iter().map(RouteAttribute::from);
        gateway.into_iter().chain(rest)
    }
}
