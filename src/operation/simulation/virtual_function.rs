//! The virtual functions of a simulated igb NIC, with their interfaces in sysfs.

use std::fs;
use std::path::PathBuf;

use super::place::Place;
use crate::kernel::{Link, VfState, VfVlan};

pub(super) const RESOURCE: &str = "intel.com/vf";
pub(super) const PHYSICAL_LINK: u32 = 2;
const FUNCTIONS: [(&str, &str); 2] = [("0000:01:10.0", "eth2"), ("0000:01:10.2", "eth3")];

/// A virtual function.
pub(super) struct VirtualFunction {
    pub(super) address: &'static str,
    home_name: &'static str,
    directory: PathBuf,
    /// The network namespace that contains the function's interface. `None` means the host's
    /// namespace.
    pub(super) place: Option<String>,
    pub(super) link: Link,
    pub(super) state: VfState,
    /// The UID of the pod to which kubelet has allocated the device.
    pub(super) given_to: Option<String>,
    /// The container whose plugin has set up the device.
    pub(super) user: Option<String>,
}

/// The interface of the physical function.
pub(super) fn physical_link() -> Link {
    Link {
        index: PHYSICAL_LINK,
        name: "eth0".to_owned(),
        address: vec![2, 0, 0, 0, 0, 1],
        mtu: 1500,
        up: true,
        carrier: true,
        arp_type: 1,
        parent_bus: Some("pci".to_owned()),
        parent_name: Some("0000:01:00.0".to_owned()),
        ..Link::default()
    }
}

impl VirtualFunction {
    pub(super) fn all(place: &Place) -> Vec<VirtualFunction> {
        let functions = (0..).zip(FUNCTIONS);
        let functions = functions.map(|(index, (address, home_name))| {
            let mut function = VirtualFunction {
                address,
                home_name,
                directory: place.function(address).join("net"),
                place: None,
                link: Link::default(),
                state: VfState::default(),
                given_to: None,
                user: None,
            };
            function.state.index = index;
            function.reset();
            function
        });
        functions.collect()
    }

    /// Puts the function into the state in which its driver creates it.
    pub(super) fn reset(&mut self) {
        let index = self.state.index;
        let _ = fs::remove_dir_all(&self.directory);
        fs::create_dir_all(self.directory.join(self.home_name)).unwrap();
        (self.place, self.user) = (None, None);
        self.link = self.pristine_link();
        self.state = VfState {
            index,
            mac: Some([0; 6].into()),
            vlan: Some(VfVlan::default()),
            spoof_check: Some(true),
            trust: Some(false),
            ..VfState::default()
        };
    }

    fn pristine_link(&self) -> Link {
        let index = self.state.index;
        Link {
            index: 10 + index,
            name: self.home_name.to_owned(),
            address: vec![0xda, 0, 0, 0, 0, 0x10 + u8::try_from(index).unwrap()],
            mtu: 1500,
            carrier: true,
            arp_type: 1,
            parent_bus: Some("pci".to_owned()),
            parent_name: Some(self.address.to_owned()),
            ..Link::default()
        }
    }

    /// Returns what differs from the state in which the driver created the function.
    pub(super) fn difference(&self) -> Option<String> {
        let pristine = self.pristine_link();
        let is = (&self.link.name, &self.link.address, self.link.mtu);
        if self.place.is_some() || is != (&pristine.name, &pristine.address, pristine.mtu) {
            return Some(format!("its interface is {is:02x?} in {:?}", self.place));
        }
        let (mac, vlan) = (self.state.mac.unwrap(), self.state.vlan.unwrap());
        let is_set = !mac.is_zero() || vlan.id != 0 || self.state.trust != Some(false);
        is_set.then(|| format!("its settings are {:?}", self.state))
    }

    /// Moves the interface to a network namespace, renames it and brings it up.
    pub(super) fn go(&mut self, netns: &str, name: &str) {
        let _ = fs::remove_dir(self.directory.join(&self.link.name));
        self.place = Some(netns.to_owned());
        name.clone_into(&mut self.link.name);
        self.link.up = true;
    }

    /// Moves the interface to the host's network namespace, renames it and takes it down.
    pub(super) fn come_home(&mut self, name: &str) {
        self.place = None;
        name.clone_into(&mut self.link.name);
        self.link.up = false;
        fs::create_dir_all(self.directory.join(name)).unwrap();
    }

    pub(super) fn rename(&mut self, name: &str) {
        if self.place.is_none() {
            let (old, new) = (
                self.directory.join(&self.link.name),
                self.directory.join(name),
            );
            fs::rename(old, new).unwrap();
        }
        name.clone_into(&mut self.link.name);
    }
}
