//! The switch inside of a NIC, and the interfaces that stand for its functions.

use serde::{Deserialize, Serialize};

use crate::devlink::{Devlink, DevlinkError, DevlinkHandle, DevlinkPort, EswitchMode, PortFlavour};
use crate::pci_function::PciFunction;
use crate::phys_port_name::PhysPortName;
use crate::subfunction::Subfunction;
use crate::sysfs::Entry;

/// What devlink says of one device's switch: the mode and the ports.
///
/// A value, read once and handed to every question about a function of that device, so that 256
/// virtual functions cost one dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// The mode; `None` when the device has no switch or devlink does not say.
    #[serde(default)]
    pub mode: Option<EswitchMode>,
    /// The ports.
    #[serde(default)]
    pub ports: Vec<DevlinkPort>,
}

/// A function behind a switch, by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behind {
    Vf(u32),
    Sf(u32),
}

impl Switch {
    /// Asks devlink: two requests, the second only in `switchdev` mode.
    ///
    /// # Errors
    ///
    /// [`DevlinkError`] when the kernel's answer did not come or cannot be read.
    pub fn read(devlink: &mut Devlink, device: &DevlinkHandle) -> Result<Self, DevlinkError> {
        let mode = devlink.eswitch_mode(device)?;
        let ports = if mode == Some(EswitchMode::Switchdev) {
            devlink.ports(device)?
        } else {
            Vec::new()
        };
        Ok(Self { mode, ports })
    }

    /// The one port of a function of this host that has an interface here.
    fn representor(&self, of: Behind) -> Option<String> {
        let mut matching = self.ports.iter().filter(|port| {
            !port.external
                && port.controller == 0
                && match of {
                    Behind::Vf(vf) => port.flavour == PortFlavour::PciVf && port.vf == Some(vf),
                    Behind::Sf(sf) => port.flavour == PortFlavour::PciSf && port.sf == Some(sf),
                }
        });
        let first = matching.next()?;
        matching.next().is_none().then(|| first.netdev.clone())?
    }
}

impl Switch {
    /// Whether the ports say all: in legacy mode there are no representors, and a list of ports
    /// has all of them.
    pub(crate) fn is_authority(&self) -> bool {
        self.mode == Some(EswitchMode::Legacy) || !self.ports.is_empty()
    }

    pub(crate) fn vf_representor(&self, vf: u32) -> Option<String> {
        self.representor(Behind::Vf(vf))
    }

    /// The interface of the only port to the wire.
    pub(crate) fn uplink(&self) -> Option<String> {
        let mut physical = self
            .ports
            .iter()
            .filter(|port| port.flavour == PortFlavour::Physical);
        let first = physical.next()?;
        physical.next().is_none().then(|| first.netdev.clone())?
    }
}

impl PciFunction {
    /// The interface that stands for this virtual function in the switch of its physical one.
    ///
    /// By devlink's ports when `switch` has some. Else by `phys_port_name` and `phys_switch_id`
    /// in sysfs: the same switch and the same physical function's number. `None` in legacy mode,
    /// and wherever not exactly one interface fits.
    #[must_use]
    pub fn representor(&self, switch: Option<&Switch>) -> Option<String> {
        let of = Behind::Vf(self.vf_index()?);
        match switch.filter(|switch| switch.is_authority()) {
            Some(switch) => switch.representor(of),
            None => PortTable::read(&self.physical_function()?)?.find(of),
        }
    }
}

impl Subfunction {
    /// The interface that stands for this subfunction, as [`PciFunction::representor`] finds it.
    #[must_use]
    pub fn representor(&self, switch: Option<&Switch>) -> Option<String> {
        let of = Behind::Sf(self.number()?);
        match switch.filter(|switch| switch.is_authority()) {
            Some(switch) => switch.representor(of),
            None => PortTable::read(&self.parent()?)?.find(of),
        }
    }
}

/// The attribute by which drivers tell what an interface is within the switch.
const PORT_NAME: &str = "phys_port_name";

/// One interface of a switch as sysfs shows it.
struct PortNetdev {
    entry: Entry,
    port: PhysPortName,
}

impl PortNetdev {
    fn read(entry: Entry) -> Option<Self> {
        let port = entry.text(PORT_NAME)?.parse().ok()?;
        Some(Self { entry, port })
    }
}

/// The interfaces of a physical function's switch, each of whose port names is read once.
pub(crate) struct PortTable {
    pf: u32,
    switch: String,
    netdevs: Vec<PortNetdev>,
}

impl PortTable {
    pub(crate) fn read(physical: &PciFunction) -> Option<Self> {
        let net = physical.entry().child("net");
        let (mut beside, mut netdevs) = (0, Vec::new());
        net.text_of_each(PORT_NAME, &mut |name, port| {
            beside += 1;
            if let Ok(port) = port.parse() {
                let entry = net.child(name);
                netdevs.push(PortNetdev { entry, port });
            }
        });
        let uplink = uplink(&netdevs)?;
        let switch = uplink.entry.text("phys_switch_id")?;
        let pf = pf_number(physical, uplink.port)?;
        // Where drivers give their representors a parent they stand beside the uplink. Only
        // where none does, all interfaces of the namespace are looked at.
        if beside == 1 {
            let sysfs = physical.entry().sysfs();
            netdevs = sysfs
                .names("class/net")
                .iter()
                .filter_map(|name| Entry::linked(sysfs, "class/net", name))
                .filter_map(PortNetdev::read)
                .collect();
        }
        Some(Self {
            pf,
            switch,
            netdevs,
        })
    }

    pub(crate) fn vf_representor(&self, vf: u32) -> Option<String> {
        self.find(Behind::Vf(vf))
    }

    fn find(&self, of: Behind) -> Option<String> {
        let (controller, pf) = (None, self.pf);
        let wanted = match of {
            Behind::Vf(vf) => PhysPortName::Vf { controller, pf, vf },
            Behind::Sf(sf) => PhysPortName::Sf { controller, pf, sf },
        };
        let mut fitting = self.netdevs.iter().filter(|netdev| {
            netdev.port == wanted
                && netdev.entry.text("phys_switch_id").as_ref() == Some(&self.switch)
        });
        let first = fitting.next()?;
        let name = || first.entry.name().to_owned();
        fitting.next().is_none().then(name)
    }
}

/// The one interface of a physical function that is a port to the wire.
fn uplink(netdevs: &[PortNetdev]) -> Option<&PortNetdev> {
    let mut physical = netdevs
        .iter()
        .filter(|netdev| !netdev.port.is_representor());
    let first = physical.next()?;
    physical.next().is_none().then_some(first)
}

/// The number by which port names call the physical function. Drivers take the PCI function's
/// number or the port's; where the two differ, either could be meant, so neither is.
fn pf_number(physical: &PciFunction, uplink: PhysPortName) -> Option<u32> {
    let function = u32::from(physical.address().function());
    match uplink {
        PhysPortName::Physical { port, .. } if port == function => Some(function),
        _ => None,
    }
}
