//! [`DeviceLinks`] over rtnetlink.

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressMessage, AddressScope};
use netlink_packet_route::link::{LinkAttribute, LinkExtentMask};
use nix::libc;
use rtnetlink::LinkUnspec;

use super::Netlink;
use super::exchange::Kind;
use crate::kernel::vf::Functions;
use crate::kernel::{DeviceLinks, KernelError, Link, LinkChange, PodLinks, VfSetting, VfState};

/// The buffer for the description of a physical function. An attribute, such as the list of its
/// virtual functions, has 64 KiB at most.
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
        let answer = self.ask_for(request, Kind::One, |Functions(functions)| Some(functions));
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
        self.act(request, Kind::Change)
            .map_err(|failure| failure.about(format!("setting {setting} of VF {vf}")))
    }

    fn change_link(&mut self, index: u32, change: &LinkChange) -> Result<(), KernelError> {
        let link = LinkUnspec::new_with_index(index);
        let (link, action) = match change {
            LinkChange::Up => (link.up(), "cannot set it up".to_owned()),
            LinkChange::Down => (link.down(), "cannot set it down".to_owned()),
            LinkChange::Name(name) => (link.name(name), format!("cannot rename it to {name}")),
            LinkChange::Address(address) => (
                link.address(address.clone()),
                "cannot set its hardware address".to_owned(),
            ),
            LinkChange::Mtu(mtu) => (link.mtu(*mtu), format!("cannot set MTU {mtu}")),
            LinkChange::Home(name) => (
                link.setns_by_pid(std::process::id()).name(name),
                format!("cannot move it to the host's namespace as {name}"),
            ),
        };
        let request = RouteNetlinkMessage::SetLink(link.build());
        match self.act(request, Kind::Change) {
            Err(failure) if failure.is_errno(libc::ENODEV) && *change == LinkChange::Down => Ok(()),
            outcome => outcome
                .map_err(|failure| failure.about(format!("interface number {index}: {action}"))),
        }
    }

    fn uplinks(&mut self) -> Result<Vec<String>, KernelError> {
        let routes = self.default_routes()?;
        let mut names: Vec<String> = Vec::new();
        for name in routes.iter().flat_map(|route| route.interfaces()) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    fn addressed(&mut self) -> Result<Vec<u32>, KernelError> {
        let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        let read = |answer| match answer {
            RouteNetlinkMessage::NewAddress(address) => {
                let header = address.header;
                let is_wide = matches!(header.scope, AddressScope::Universe | AddressScope::Site);
                is_wide.then_some(header.index)
            }
            _ => None,
        };
        let indices = self.ask(request, Kind::List, read);
        let mut indices: Vec<u32> =
            indices.map_err(|failure| failure.about("listing addresses"))?;
        indices.dedup();
        Ok(indices)
    }
}
