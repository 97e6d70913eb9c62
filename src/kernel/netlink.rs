//! Implements [`PodLinks`] with rtnetlink. The `rtnetlink` and `netlink-packet-route` crates build
//! the requests, and [`exchange`] sends them.

mod devices;
mod exchange;

use std::io;
use std::time::Duration;

use netlink_packet_core::DefaultNla;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::{LinkAttribute, LinkExtentMask};
use netlink_packet_route::route::{RouteAttribute, RouteMessage, RouteType};
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_ROUTE;
use nix::libc;
use rtnetlink::LinkUnspec;

use crate::cni::InterfaceName;

use super::default_route::{MAIN_TABLE, is_default};
use super::{
    Address, DefaultRoute, DeviceLinks, Family, KernelError, Link, NetlinkError, PodLinks, PodNetns,
};
pub use exchange::Netlink;
use exchange::{FilteredMessage, Kind};

/// How long to wait for each piece of an answer.
///
/// The wait usually takes microseconds. It takes seconds while another process holds the kernel's
/// RTNL lock, for example to create many virtual functions.
const PATIENCE: Duration = Duration::from_secs(5);

fn open() -> io::Result<Socket> {
    Socket::new(NETLINK_ROUTE)
}

impl Netlink {
    /// Opens a socket in the pod's namespace.
    ///
    /// # Errors
    /// [`KernelError::Netns`] if the namespace cannot be entered, [`KernelError::Socket`] if the
    /// process has no free descriptor or the node has no free memory.
    pub fn in_netns(netns: &PodNetns) -> Result<Self, KernelError> {
        Self::new(netns.within(open)?, PATIENCE)
    }

    /// Opens a socket in the calling thread's namespace, which is the host's namespace.
    ///
    /// # Errors
    /// [`KernelError::Socket`] if the process has no free descriptor or the node has no free
    /// memory.
    pub fn here() -> Result<Self, KernelError> {
        Self::new(open(), PATIENCE)
    }

    fn read_links(
        &mut self,
        kind: Kind,
        index: u32,
        name: Option<&str>,
    ) -> Result<Vec<Link>, NetlinkError> {
        // Ask for neither counters nor virtual functions, because a `Link` contains neither. The
        // counters would double the size of an answer, and the kernel would visit every CPU to sum
        // them up. The kernel describes virtual functions only if the mask contains
        // `LinkExtentMask::Vf`.
        let mask = LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats]);
        let mut message = LinkUnspec::new_with_index(index).append_extra_attribute(mask);
        if let Some(name) = name {
            message = if name.len() < libc::IFNAMSIZ {
                message.name(name)
            } else {
                // Only an alternative name can have this length.
                let text = [name.as_bytes(), &[0]].concat();
                let other = DefaultNla::new(libc::IFLA_ALT_IFNAME, text);
                message.append_extra_attribute(LinkAttribute::Other(other))
            };
        }
        let request = RouteNetlinkMessage::GetLink(message.build());
        self.ask(request, kind, |FilteredMessage(answer)| match answer {
            RouteNetlinkMessage::NewLink(link) => Some(Link::from(link)),
            _ => None,
        })
    }

    fn read_one(
        &mut self,
        index: u32,
        name: Option<&str>,
        action: impl FnOnce() -> String,
    ) -> Result<Option<Link>, KernelError> {
        match self.read_links(Kind::One, index, name) {
            Ok(links) => Ok(links.into_iter().next()),
            Err(failure) if failure.is_errno(libc::ENODEV) => Ok(None),
            Err(failure) => Err(failure.about(action())),
        }
    }

    fn read_routes(&mut self, family: Family) -> Result<Vec<DefaultRoute>, KernelError> {
        let mut message = RouteMessage::default();
        message.header.address_family = family.into();
        message.header.kind = RouteType::Unicast;
        message.attributes.push(RouteAttribute::Table(MAIN_TABLE));
        let request = RouteNetlinkMessage::GetRoute(message);
        let read = |FilteredMessage(answer)| match answer {
            RouteNetlinkMessage::NewRoute(route) => is_default(&route, family).then_some(route),
            _ => None,
        };
        let messages = match self.ask(request, Kind::List, read) {
            // ENOENT: the main table does not exist yet, because the kernel creates it only with
            // the first route. EAFNOSUPPORT: the kernel has no IPv6.
            Err(failure) if failure.is_errno(libc::ENOENT) => Vec::new(),
            Err(failure) if failure.is_errno(libc::EAFNOSUPPORT) => Vec::new(),
            answer => answer.map_err(|failure| failure.about("listing default routes"))?,
        };
        let mut name = |index| Ok(self.link_at(index)?.map(|link| link.name));
        let routes = messages
            .iter()
            .map(|it| DefaultRoute::read(it, family, &mut name));
        routes.collect()
    }

    /// Encodes a route with the current indices of its interfaces.
    fn describe(&mut self, route: &DefaultRoute) -> Result<RouteMessage, KernelError> {
        route.write(|name| {
            let link = self.device_link(name)?;
            Ok(link.map(|link| link.index))
        })
    }
}

/// Parses `piece` as a part of an answer, once for each of [`Kind::One`], [`Kind::List`] and
/// [`Kind::Change`]. Returns the default routes that each parse finds. Only tests and
/// [`crate::fuzzing`] use this function.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn default_routes_in(piece: &[u8]) -> [Result<Vec<DefaultRoute>, KernelError>; 3] {
    use super::vf::Functions;
    [Kind::One, Kind::List, Kind::Change].map(|kind| {
        let about = |failure: NetlinkError| failure.about("reading");
        exchange::read_piece(piece, kind, |Functions(functions)| Some(functions)).map_err(about)?;
        let read = exchange::read_piece(piece, kind, |FilteredMessage(message)| {
            match message {
                RouteNetlinkMessage::NewLink(link) => drop(Link::from(link)),
                RouteNetlinkMessage::NewAddress(address) => drop(Address::read(address)),
                RouteNetlinkMessage::NewRoute(route) => return Some(route),
                _ => {}
            }
            None
        });
        let routes = read.map_err(about)?;
        let routes = routes.iter().filter_map(|route| {
            let mut families = Family::ALL.into_iter();
            let family = families.find(|family| is_default(route, *family))?;
            let name = |index: u32| Ok(Some(format!("eth{index}")));
            Some(DefaultRoute::read(route, family, name))
        });
        routes.collect()
    })
}

impl PodLinks for Netlink {
    fn links(&mut self) -> Result<Vec<Link>, KernelError> {
        self.read_links(Kind::List, 0, None)
            .map_err(|failure| failure.about("listing interfaces"))
    }

    fn link(&mut self, name: &InterfaceName) -> Result<Option<Link>, KernelError> {
        self.device_link(name.as_str())
    }

    fn link_at(&mut self, index: u32) -> Result<Option<Link>, KernelError> {
        if index == 0 {
            // The kernel treats index 0 as a missing index and would refuse the request.
            return Ok(None);
        }
        self.read_one(index, None, || format!("reading interface number {index}"))
    }

    fn addresses(&mut self, index: u32) -> Result<Vec<Address>, KernelError> {
        let mut message = AddressMessage::default();
        message.header.index = index;
        let request = RouteNetlinkMessage::GetAddress(message);
        let read = |FilteredMessage(answer)| match answer {
            // Kernels before 4.20 list the addresses of all interfaces.
            RouteNetlinkMessage::NewAddress(address) => {
                Address::read(address).filter(|address| address.index == index)
            }
            _ => None,
        };
        match self.ask(request, Kind::List, read) {
            Err(failure) if failure.is_errno(libc::ENODEV) => Ok(Vec::new()),
            answer => answer.map_err(|failure| {
                failure.about(format!("listing the addresses of interface number {index}"))
            }),
        }
    }

    fn default_routes(&mut self) -> Result<Vec<DefaultRoute>, KernelError> {
        let mut routes = self.read_routes(Family::V4)?;
        routes.append(&mut self.read_routes(Family::V6)?);
        Ok(routes)
    }

    fn add_default_route(&mut self, route: &DefaultRoute) -> Result<(), KernelError> {
        let request = RouteNetlinkMessage::NewRoute(self.describe(route)?);
        self.act(request, Kind::Append, Some(libc::EEXIST))
            .map_err(|failure| failure.about(format!("adding route \"{route}\"")))
    }

    fn remove_default_route(&mut self, route: &DefaultRoute) -> Result<(), KernelError> {
        let message = match self.describe(route) {
            // The kernel removed the route together with its link.
            Err(KernelError::NoInterface { .. }) => return Ok(()),
            described => described?,
        };
        let request = RouteNetlinkMessage::DelRoute(message);
        self.act(request, Kind::Change, Some(libc::ESRCH))
            .map_err(|failure| failure.about(format!("removing route \"{route}\"")))
    }
}
