//! Implements [`DeviceLinks`] with rtnetlink.

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressMessage, AddressScope};
use netlink_packet_route::link::{LinkAttribute, LinkExtentMask};
use nix::libc;
use rtnetlink::LinkUnspec;

use super::Netlink;
use super::exchange::{FilteredMessage, Kind};
use crate::kernel::vf::Functions;
use crate::kernel::{
    DefaultRoute, DeviceLinks, KernelError, Link, LinkChange, PodLinks, VfSetting, VfState,
};

/// The size of the buffer for the description of a physical function, in bytes. The list of virtual
/// functions is one attribute, and an attribute has at most 64 KiB. The rest of the buffer is for
/// the other attributes.
const DESCRIPTION: usize = 96 << 10;

impl DeviceLinks for Netlink {
    fn device_link(&mut self, name: &str) -> Result<Option<Link>, KernelError> {
        self.read_one(0, Some(name), || format!("reading interface {name:?}"))
    }

    fn device_link_at(&mut self, index: u32) -> Result<Option<Link>, KernelError> {
        self.link_at(index)
    }

    fn device_links(&mut self) -> Result<Vec<Link>, KernelError> {
        self.links()
    }

    fn virtual_functions(&mut self, physical: u32) -> Result<Vec<VfState>, KernelError> {
        let wanted = vec![LinkExtentMask::Vf, LinkExtentMask::SkipStats];
        let mask = LinkAttribute::ExtMask(wanted);
        let message = LinkUnspec::new_with_index(physical).append_extra_attribute(mask);
        let request = RouteNetlinkMessage::GetLink(message.build());
        self.reserve(DESCRIPTION);
        let answer = self.ask(request, Kind::One, |Functions(functions)| Some(functions));
        let action = || format!("reading the virtual functions of interface number {physical}");
        let answer = answer.map_err(|failure| failure.about(action()))?;
        Ok(answer.into_iter().flatten().collect())
    }

    fn set_virtual_function(
        &mut self,
        physical: u32,
        vf: u32,
        setting: VfSetting,
    ) -> Result<(), KernelError> {
        let message =
            LinkUnspec::new_with_index(physical).append_extra_attribute(setting.attribute(vf));
        let request = RouteNetlinkMessage::SetLink(message.build());
        self.act(request, Kind::Change, None)
            .map_err(|failure| failure.about(format!("setting {setting} of VF {vf}")))
    }

    fn change_link(&mut self, index: u32, change: &LinkChange) -> Result<(), KernelError> {
        let link = LinkUnspec::new_with_index(index);
        let (link, action) = match change {
            LinkChange::Up => (link.up(), "bring it up".to_owned()),
            LinkChange::Down => (link.down(), "bring it down".to_owned()),
            LinkChange::Name(name) => (link.name(name), format!("rename it to {name}")),
            LinkChange::Address(address) => (
                link.address(address.clone()),
                "set its hardware address".to_owned(),
            ),
            LinkChange::Mtu(mtu) => (link.mtu(*mtu), format!("set MTU {mtu}")),
            LinkChange::Home(name) => {
                let link = link.setns_by_pid(std::process::id()).name(name);
                (link, format!("move it to the host's namespace as {name}"))
            }
        };
        let request = RouteNetlinkMessage::SetLink(link.build());
        let done = (*change == LinkChange::Down).then_some(libc::ENODEV);
        let action = || format!("interface number {index}: cannot {action}");
        self.act(request, Kind::Change, done)
            .map_err(|failure| failure.about(action()))
    }

    fn uplinks(&mut self) -> Result<Vec<String>, KernelError> {
        let routes = self.default_routes()?;
        let mut names: Vec<&str> = routes.iter().flat_map(DefaultRoute::interfaces).collect();
        names.dedup();
        Ok(names.into_iter().map(str::to_owned).collect())
    }

    fn addressed(&mut self) -> Result<Vec<u32>, KernelError> {
        let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        let read = |FilteredMessage(answer)| match answer {
            RouteNetlinkMessage::NewAddress(address) => {
                let header = address.header;
                let is_wide = matches!(header.scope, AddressScope::Universe | AddressScope::Site);
                is_wide.then_some(header.index)
            }
            _ => None,
        };
        let indices = self.ask(request, Kind::List, read);
        let mut indices = indices.map_err(|failure| failure.about("listing addresses"))?;
        // A link may have thousands of addresses. Within a family, the kernel lists all addresses
        // of a link in a row, so `dedup` leaves at most one index per link and family.
        indices.dedup();
        Ok(indices)
    }
}
