//! The simulated kernel: the links of pods and of devices.

use std::rc::Rc;

use nix::libc;

use super::machine::Process;
use super::virtual_function::PHYSICAL_LINK;
use crate::cni::InterfaceName;
use crate::kernel::{
    Address, DefaultRoute, DeviceLinks, KernelError, Link, LinkChange, NetlinkError, PodLinks,
    PodNetns, VfSetting, VfState,
};

fn refused(errno: i32) -> KernelError {
    let cause = std::io::Error::from_raw_os_error(errno);
    NetlinkError::from(cause).about("a simulated request")
}

/// The links of the network namespace `netns`, or of the host if `netns` is `None`.
pub(super) struct Links {
    pub(super) process: Rc<Process>,
    netns: Option<String>,
}

impl Links {
    pub(super) fn of(process: &Rc<Process>, netns: Option<&PodNetns>) -> Links {
        let name = netns.and_then(|it| Some(it.path().file_name()?.to_str()?.to_owned()));
        Links {
            process: Rc::clone(process),
            netns: name,
        }
    }

    fn all(&self) -> Vec<Link> {
        self.process.step(20);
        let world = self.process.sim.world();
        match &self.netns {
            Some(netns) => world.links(netns),
            None => world.host_links(),
        }
    }

    /// Returns an error for some changes of routes, as a kernel without free memory does.
    fn may_lack_memory(&self) -> Result<(), KernelError> {
        let sim = &self.process.sim;
        let is_calm = sim.world().is_calm;
        match !is_calm && sim.happens(sim.conditions.delegate_faults, 2000) {
            true => Err(refused(libc::ENOBUFS)),
            false => Ok(()),
        }
    }

    fn change_routes(&self, change: impl FnOnce(&mut Vec<DefaultRoute>)) {
        self.process.step(21);
        let mut world = self.process.sim.world();
        let name = self.netns.as_deref().unwrap_or_default();
        if let Some(netns) = world.netns.get_mut(name) {
            change(&mut netns.routes);
        }
    }
}

impl PodLinks for Links {
    fn links(&mut self) -> Result<Vec<Link>, KernelError> {
        Ok(self.all())
    }

    fn link(&mut self, name: &InterfaceName) -> Result<Option<Link>, KernelError> {
        Ok(self.all().into_iter().find(|it| it.name == name.as_str()))
    }

    fn link_at(&mut self, index: u32) -> Result<Option<Link>, KernelError> {
        Ok(self.all().into_iter().find(|it| it.index == index))
    }

    fn addresses(&mut self, index: u32) -> Result<Vec<Address>, KernelError> {
        self.process.step(22);
        let world = self.process.sim.world();
        let netns = world.netns.get(self.netns.as_deref().unwrap_or_default());
        let mut links = netns.into_iter().flat_map(|it| &it.links);
        let link = links.find(|it| it.link.index == index);
        Ok(link.map(|it| it.addresses.clone()).unwrap_or_default())
    }

    fn default_routes(&mut self) -> Result<Vec<DefaultRoute>, KernelError> {
        let mut routes = Vec::new();
        self.change_routes(|there| routes.clone_from(there));
        Ok(routes)
    }

    fn add_default_route(&mut self, route: &DefaultRoute) -> Result<(), KernelError> {
        self.may_lack_memory()?;
        let links = self.all();
        let exists = |name: &str| links.iter().any(|link| link.name == name);
        if !route.interfaces().all(exists) {
            return Err(refused(libc::ENODEV));
        }
        self.change_routes(|there| match there.contains(route) {
            true => {}
            false => there.push(route.clone()),
        });
        Ok(())
    }

    fn remove_default_route(&mut self, route: &DefaultRoute) -> Result<(), KernelError> {
        self.may_lack_memory()?;
        self.change_routes(|there| there.retain(|it| it != route));
        Ok(())
    }
}

impl DeviceLinks for Links {
    fn device_link(&mut self, name: &str) -> Result<Option<Link>, KernelError> {
        Ok(self.all().into_iter().find(|it| it.name == name))
    }

    fn device_link_at(&mut self, index: u32) -> Result<Option<Link>, KernelError> {
        Ok(self.all().into_iter().find(|it| it.index == index))
    }

    fn device_links(&mut self) -> Result<Vec<Link>, KernelError> {
        Ok(self.all())
    }

    fn virtual_functions(&mut self, physical: u32) -> Result<Vec<VfState>, KernelError> {
        self.process.step(23);
        let world = self.process.sim.world();
        let functions = world.functions.iter().map(|it| it.state);
        Ok(functions.filter(|_| physical == PHYSICAL_LINK).collect())
    }

    fn set_virtual_function(
        &mut self,
        _physical: u32,
        vf: u32,
        setting: VfSetting,
    ) -> Result<(), KernelError> {
        self.process.step(24);
        if !self.process.sim.world().is_calm && self.process.sim.happens(1, 60) {
            return Err(refused(libc::EBUSY));
        }
        let mut world = self.process.sim.world();
        let state = &mut world.functions[vf as usize].state;
        match setting {
            VfSetting::Mac(mac) => state.mac = Some(mac),
            VfSetting::Vlan(vlan) => state.vlan = Some(vlan),
            VfSetting::SpoofCheck(on) => state.spoof_check = Some(on),
            VfSetting::Trust(on) => state.trust = Some(on),
            _ => return Err(refused(libc::EOPNOTSUPP)),
        }
        Ok(())
    }

    fn change_link(&mut self, index: u32, change: &LinkChange) -> Result<(), KernelError> {
        self.process.step(25);
        let mut world = self.process.sim.world();
        let here = |place: &Option<String>| *place == self.netns;
        let mut functions = world.functions.iter();
        let position = functions.position(|it| it.link.index == index && here(&it.place));
        let Some(position) = position else {
            return Err(refused(libc::ENODEV));
        };
        match change {
            LinkChange::Home(name) => {
                return match world.send_home(position, name) {
                    true => Ok(()),
                    false => Err(refused(libc::EEXIST)),
                };
            }
            LinkChange::Name(name) if world.host_links().iter().any(|it| it.name == *name) => {
                return Err(refused(libc::EEXIST));
            }
            _ => {}
        }
        let function = &mut world.functions[position];
        match change {
            LinkChange::Up => function.link.up = true,
            LinkChange::Down => function.link.up = false,
            LinkChange::Name(name) => function.rename(name),
            LinkChange::Address(address) => function.link.address.clone_from(address),
            LinkChange::Mtu(mtu) => function.link.mtu = *mtu,
            LinkChange::Home(_) => {}
        }
        Ok(())
    }

    fn uplinks(&mut self) -> Result<Vec<String>, KernelError> {
        Ok(Vec::new())
    }

    fn addressed(&mut self) -> Result<Vec<u32>, KernelError> {
        Ok(Vec::new())
    }
}
