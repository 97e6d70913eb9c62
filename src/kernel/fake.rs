//! A kernel that shows what a test wants it to show.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use crate::cni::InterfaceName;

use super::{
    Address, DefaultRoute, DeviceLinks, KernelError, Link, LinkChange, PodLinks, VfSetting, VfState,
};

/// Links and routes as a test sets them; addresses as a sequence, one frame a reading.
#[derive(Debug, Default)]
pub(crate) struct FakeLinks {
    pub(crate) links: Vec<Link>,
    /// What each reading of addresses sees, in turn; the last one stays.
    pub(crate) frames: Vec<Vec<Address>>,
    pub(crate) routes: Vec<DefaultRoute>,
    /// How often addresses were read.
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
        let addresses = frame.into_iter().flatten();
        let ours = addresses.filter(|address| address.index == index).cloned();
        let ours = ours.collect();
        self.readings += 1;
        Ok(ours)
    }

    fn default_routes(&mut self) -> Result<Vec<DefaultRoute>, KernelError> {
        Ok(self.routes.clone())
    }

    fn add_default_route(&mut self, route: &DefaultRoute) -> Result<(), KernelError> {
        for interface in route.interfaces() {
            if !self.links.iter().any(|link| link.name == interface) {
                return Err(KernelError::NoInterface {
                    route: route.to_string(),
                    interface: interface.to_owned(),
                });
            }
        }
        if !self.routes.contains(route) {
            self.routes.push(route.clone());
        }
        Ok(())
    }

    fn remove_default_route(&mut self, route: &DefaultRoute) -> Result<(), KernelError> {
        self.routes.retain(|there| there != route);
        Ok(())
    }
}

/// The links of devices and what physical functions say, as a test sets them, with faults.
#[derive(Debug, Default)]
pub(crate) struct FakeDevices {
    pub(crate) links: Vec<Link>,
    /// By the number of the physical function's link.
    pub(crate) functions: BTreeMap<u32, Vec<VfState>>,
    /// Where the names of links are kept too, as in `/sys`.
    pub(crate) sysfs: Option<PathBuf>,
    /// What is refused, as `ip link` would write it, and with which error.
    pub(crate) refuses: Vec<(String, i32)>,
    /// After how many refusals nothing is refused any more.
    pub(crate) relents_after: Option<usize>,
    /// What is acknowledged and not done.
    pub(crate) ignores: Vec<String>,
    /// Physical functions that do not answer.
    pub(crate) silent: Vec<u32>,
    /// This link's own address becomes what that physical function shows for that function.
    pub(crate) own_address_becomes_admins: Option<(u32, u32, usize)>,
    /// How the driver guards the address of that link, as long as the administrator has given one.
    pub(crate) guard: Guard,
    /// Whether the administrator has given it one.
    pub(crate) is_given: bool,
    /// Whether that link asks for its address anew when it is set down.
    pub(crate) asks_anew: bool,
    pub(crate) uplinks: Vec<String>,
    /// The numbers of links with an address of the node.
    pub(crate) addressed: Vec<u32>,
    /// What was changed, in order.
    pub(crate) changes: Vec<String>,
    /// How often a physical function was asked.
    pub(crate) questions: usize,
}

/// Whom a driver refuses an address.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Nobody.
    #[default]
    Open,
    /// Functions that are not trusted.
    Untrusted,
    /// Every function.
    All,
}

impl FakeDevices {
    /// Whether the driver refuses that link an address.
    fn guards(&self, index: u32) -> bool {
        let Some((own, pf, vf)) = self.own_address_becomes_admins else {
            return false;
        };
        let function = self
            .functions
            .get(&pf)
            .and_then(|functions| functions.get(vf));
        let is_trusted = function.is_some_and(|it| it.trust == Some(true));
        own == index
            && self.is_given
            && match self.guard {
                Guard::Open => false,
                Guard::Untrusted => !is_trusted,
                Guard::All => true,
            }
    }

    /// The link is set down, and takes the address that its physical function has for it.
    fn ask_anew(&mut self, index: u32) {
        let Some((own, pf, vf)) = self.own_address_becomes_admins.filter(|_| self.asks_anew) else {
            return;
        };
        let functions = self.functions.get(&pf);
        let mac = functions.and_then(|functions| functions.get(vf)?.mac);
        let mut links = self.links.iter_mut().filter(|_| own == index);
        let link = links.find(|link| link.index == index);
        if let (Some(link), Some(mac)) = (link, mac.filter(|mac| !mac.is_zero())) {
            link.address = mac.octets().to_vec();
        }
    }

    /// Renames a link, here and in sysfs.
    pub(crate) fn rename(&mut self, index: u32, name: &str) {
        let mut links = self.links.iter_mut();
        let link = links.find(|link| link.index == index).unwrap();
        let old = std::mem::replace(&mut link.name, name.to_owned());
        let Some(sysfs) = &self.sysfs else { return };
        for device in std::fs::read_dir(sysfs.join("bus/pci/devices")).unwrap() {
            let net = device.unwrap().path().join("net");
            if net.join(&old).exists() {
                std::fs::rename(net.join(&old), net.join(name)).unwrap();
            }
        }
    }

    fn does(&mut self, what: String) -> Result<bool, KernelError> {
        let mut refuses = self.refuses.iter();
        if let Some((_, errno)) = refuses.find(|(refused, _)| *refused == what)
            && self.relents_after != Some(0)
        {
            self.relents_after = self.relents_after.map(|left| left - 1);
            return Err(KernelError::Refused {
                action: what,
                source: std::io::Error::from_raw_os_error(*errno),
                explanation: None,
            });
        }
        let does = !self.ignores.contains(&what);
        self.changes.push(what);
        Ok(does)
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
            return Err(KernelError::Closed {
                action: "reading the virtual functions".to_owned(),
            });
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
        if kernel.does(setting.to_string())? {
            if let VfSetting::Mac(mac) = setting {
                kernel.is_given = !mac.is_zero();
            }
            let functions = kernel.functions.get_mut(&physical).unwrap();
            let mut functions = functions.iter_mut();
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
            kernel
                .refuses
                .push((what.clone(), nix::libc::EADDRNOTAVAIL));
            let refused = kernel.does(what).map(drop);
            kernel.refuses.pop();
            return refused;
        }
        if !kernel.does(what)? {
            return Ok(());
        }
        if *change == LinkChange::Down {
            kernel.ask_anew(index);
        }
        if let LinkChange::Name(name) = change {
            kernel.rename(index, name);
        }
        let mut links = kernel.links.iter_mut();
        let link = links.find(|link| link.index == index).unwrap();
        match change {
            LinkChange::Up => link.up = true,
            LinkChange::Down => link.up = false,
            LinkChange::Address(address) => link.address.clone_from(address),
            LinkChange::Mtu(mtu) => link.mtu = *mtu,
            LinkChange::Name(_) | LinkChange::Home(_) => {}
        }
        if let (LinkChange::Address(address), Some((own, pf, vf))) =
            (change, kernel.own_address_becomes_admins)
            && own == index
        {
            let octets: [u8; 6] = address.as_slice().try_into().unwrap();
            kernel.functions.get_mut(&pf).unwrap()[vf].mac = Some(octets.into());
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
