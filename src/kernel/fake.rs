//! A fake kernel for unit tests.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use crate::cni::InterfaceName;

use super::{
    Address, DefaultRoute, DeviceLinks, KernelError, Link, LinkChange, NetlinkError, PodLinks,
    VfSetting, VfState,
};

/// Links, addresses and routes that a test sets.
#[derive(Debug, Default)]
pub(crate) struct FakeLinks {
    pub(crate) links: Vec<Link>,
    /// The answers to reads of addresses, in order. Each answer has the addresses of all links. If
    /// there are more reads than answers, the last answer repeats.
    pub(crate) frames: Vec<Vec<Address>>,
    pub(crate) routes: Vec<DefaultRoute>,
    /// The number of address reads so far.
    pub(crate) readings: usize,
}

impl PodLinks for FakeLinks {
    fn links(&mut self) -> Result<Vec<Link>, KernelError> {
        Ok(self.links.clone())
    }

    fn link(&mut self, name: &InterfaceName) -> Result<Option<Link>, KernelError> {
        let found = self.links.iter().find(|link| link.name == name.as_str());
        Ok(found.cloned())
    }

    fn link_at(&mut self, index: u32) -> Result<Option<Link>, KernelError> {
        let found = self.links.iter().find(|link| link.index == index);
        Ok(found.cloned())
    }

    fn addresses(&mut self, index: u32) -> Result<Vec<Address>, KernelError> {
        let frame = self.frames.get(self.readings).or(self.frames.last());
        self.readings += 1;
        let addresses = frame.into_iter().flatten();
        let ours = addresses.filter(|address| address.index == index);
        Ok(ours.cloned().collect())
    }

    fn default_routes(&mut self) -> Result<Vec<DefaultRoute>, KernelError> {
        Ok(self.routes.clone())
    }

    fn add_default_route(&mut self, route: &DefaultRoute) -> Result<(), KernelError> {
        self.routes.push(route.clone());
        Ok(())
    }

    fn remove_default_route(&mut self, route: &DefaultRoute) -> Result<(), KernelError> {
        self.routes.retain(|there| there != route);
        Ok(())
    }
}

/// The devices of a fake kernel. A test sets their links, VF states and faults.
#[derive(Debug, Default)]
pub(crate) struct FakeDevices {
    pub(crate) links: Vec<Link>,
    /// The states of virtual functions, by the link index of their physical function.
    pub(crate) functions: BTreeMap<u32, Vec<VfState>>,
    /// A directory in the layout of `/sys`. A rename of a link also renames its directory there.
    pub(crate) sysfs: Option<PathBuf>,
    /// The changes that fail, such as `trust on` or `mtu 1500`, with their error numbers.
    pub(crate) refuses: Vec<(String, i32)>,
    /// The number of refusals after which every change in `refuses` succeeds; `None` if these
    /// changes always fail.
    pub(crate) relents_after: Option<usize>,
    /// The changes that the fake kernel acknowledges but does not make.
    pub(crate) ignores: Vec<String>,
    /// The physical functions that do not answer, by link index.
    pub(crate) silent: Vec<u32>,
    /// The link index of a VF, the link index of its PF, and the VF number. If the address of
    /// the VF's link changes, the PF reports the new address for the VF.
    pub(crate) own_address_becomes_admins: Option<(u32, u32, usize)>,
    /// Decides when the driver of the VF in `own_address_becomes_admins` refuses to change the
    /// address of the VF's link. While `is_given` is false, the driver accepts every address.
    pub(crate) guard: Guard,
    /// Whether an administrator has set the address of a VF through its PF. An address of zeros
    /// counts as not set.
    pub(crate) is_given: bool,
    /// Whether the driver of the VF in `own_address_becomes_admins` asks the PF for the VF's
    /// address when the VF's link goes down.
    pub(crate) asks_anew: bool,
    pub(crate) uplinks: Vec<String>,
    /// The indices of the links that have an address of the node.
    pub(crate) addressed: Vec<u32>,
    /// All acknowledged changes, in order.
    pub(crate) changes: Vec<String>,
    /// How many times callers have asked for the states of virtual functions.
    pub(crate) questions: usize,
}

/// Decides when a driver refuses to change the address of a VF's link.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Never.
    #[default]
    Open,
    /// While the VF is not trusted.
    Untrusted,
    /// Always.
    All,
}

impl FakeDevices {
    fn link(&mut self, index: u32) -> &mut Link {
        let mut links = self.links.iter_mut();
        links.find(|link| link.index == index).unwrap()
    }

    fn function(&self, pf: u32, vf: usize) -> Option<&VfState> {
        self.functions.get(&pf)?.get(vf)
    }

    /// Returns whether the driver refuses to change the link's address.
    fn guards(&self, index: u32) -> bool {
        let Some((own, pf, vf)) = self.own_address_becomes_admins else {
            return false;
        };
        let is_guarded = match self.guard {
            Guard::Open => false,
            Guard::Untrusted => self
                .function(pf, vf)
                .is_none_or(|it| it.trust != Some(true)),
            Guard::All => true,
        };
        own == index && self.is_given && is_guarded
    }

    /// If `asks_anew` is set, sets the address of a VF's link to the address that the PF reports.
    /// Some drivers do this when the link goes down.
    fn refresh_address(&mut self, index: u32) {
        let shared = self
            .own_address_becomes_admins
            .filter(|(own, ..)| *own == index);
        let mac = shared.and_then(|(_, pf, vf)| self.function(pf, vf)?.mac);
        if let Some(mac) = mac.filter(|mac| self.asks_anew && !mac.is_zero()) {
            self.link(index).address = mac.octets().to_vec();
        }
    }

    /// Renames a link in this fake kernel and in its `sysfs`.
    pub(crate) fn rename(&mut self, index: u32, name: &str) {
        let old = std::mem::replace(&mut self.link(index).name, name.to_owned());
        let Some(sysfs) = &self.sysfs else { return };
        for device in std::fs::read_dir(sysfs.join("bus/pci/devices")).unwrap() {
            let net = device.unwrap().path().join("net");
            if net.join(&old).exists() {
                std::fs::rename(net.join(&old), net.join(name)).unwrap();
            }
        }
    }

    /// Records a change, or fails if `refuses` contains it. Returns false if the fake kernel
    /// acknowledges the change but does not make it.
    fn record(&mut self, what: String) -> Result<bool, KernelError> {
        let mut refuses = self.refuses.iter();
        if let Some((_, errno)) = refuses.find(|(refused, _)| *refused == what)
            && self.relents_after != Some(0)
        {
            self.relents_after = self.relents_after.map(|left| left - 1);
            return Err(NetlinkError::errno(*errno, None).about(what));
        }
        let takes_effect = !self.ignores.contains(&what);
        self.changes.push(what);
        Ok(takes_effect)
    }
}

impl DeviceLinks for Rc<RefCell<FakeDevices>> {
    fn device_link(&mut self, name: &str) -> Result<Option<Link>, KernelError> {
        let kernel = self.borrow();
        Ok(kernel.links.iter().find(|link| link.name == name).cloned())
    }

    fn device_link_at(&mut self, index: u32) -> Result<Option<Link>, KernelError> {
        let kernel = self.borrow();
        let mut links = kernel.links.iter();
        Ok(links.find(|link| link.index == index).cloned())
    }

    fn device_links(&mut self) -> Result<Vec<Link>, KernelError> {
        Ok(self.borrow().links.clone())
    }

    fn virtual_functions(&mut self, physical: u32) -> Result<Vec<VfState>, KernelError> {
        let mut kernel = self.borrow_mut();
        kernel.questions += 1;
        if kernel.silent.contains(&physical) {
            return Err(NetlinkError::Closed.about("reading the virtual functions"));
        }
        Ok(kernel.functions.get(&physical).cloned().unwrap_or_default())
    }

    fn set_virtual_function(
        &mut self,
        physical: u32,
        vf: u32,
        setting: VfSetting,
    ) -> Result<(), KernelError> {
        let mut kernel = self.borrow_mut();
        if kernel.record(setting.to_string())? {
            if let VfSetting::Mac(mac) = setting {
                kernel.is_given = !mac.is_zero();
            }
            let mut functions = kernel.functions.get_mut(&physical).unwrap().iter_mut();
            let state = functions.find(|state| state.index == vf).unwrap();
            match setting {
                VfSetting::Mac(mac) => state.mac = Some(mac),
                VfSetting::Vlan(vlan) => state.vlan = Some(vlan),
                VfSetting::SpoofCheck(on) => state.spoof_check = Some(on),
                VfSetting::Trust(on) => state.trust = Some(on),
                VfSetting::RssQuery(on) => state.rss_query = Some(on),
                VfSetting::LinkState(link) => state.link_state = Some(link),
                VfSetting::Rates(rates) => state.rates = Some(rates),
                VfSetting::NodeGuid(guid) => state.node_guid = Some(guid),
                VfSetting::PortGuid(guid) => state.port_guid = Some(guid),
            }
        }
        Ok(())
    }

    fn change_link(&mut self, index: u32, change: &LinkChange) -> Result<(), KernelError> {
        let mut kernel = self.borrow_mut();
        let what = match change {
            LinkChange::Up => "up".to_owned(),
            LinkChange::Down => "down".to_owned(),
            LinkChange::Name(name) => format!("name {name}"),
            LinkChange::Address(address) => format!("address {address:02x?}"),
            LinkChange::Mtu(mtu) => format!("mtu {mtu}"),
            LinkChange::Home(name) => format!("home {name}"),
        };
        if matches!(change, LinkChange::Address(_)) && kernel.guards(index) {
            return Err(NetlinkError::errno(nix::libc::EADDRNOTAVAIL, None).about(what));
        }
        if !kernel.record(what)? {
            return Ok(());
        }
        match change {
            LinkChange::Up => kernel.link(index).up = true,
            LinkChange::Down => {
                kernel.link(index).up = false;
                kernel.refresh_address(index);
            }
            LinkChange::Name(name) => kernel.rename(index, name),
            LinkChange::Mtu(mtu) => kernel.link(index).mtu = *mtu,
            LinkChange::Home(_) => {}
            LinkChange::Address(address) => {
                kernel.link(index).address.clone_from(address);
                let shared = kernel.own_address_becomes_admins;
                if let Some((_, pf, vf)) = shared.filter(|(own, ..)| *own == index) {
                    let octets: [u8; 6] = address.as_slice().try_into().unwrap();
                    kernel.functions.get_mut(&pf).unwrap()[vf].mac = Some(octets.into());
                }
            }
        }
        Ok(())
    }

    fn uplinks(&mut self) -> Result<Vec<String>, KernelError> {
        Ok(self.borrow().uplinks.clone())
    }

    fn addressed(&mut self) -> Result<Vec<u32>, KernelError> {
        Ok(self.borrow().addressed.clone())
    }
}
