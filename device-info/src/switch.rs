//! The switch inside a NIC, and the representors of its functions.

use serde::{Deserialize, Serialize};

use crate::devlink::{Devlink, DevlinkError, DevlinkHandle, DevlinkPort, EswitchMode, PortFlavour};
use crate::pci_function::PciFunction;
use crate::phys_port_name::PhysPortName;
use crate::subfunction::Subfunction;
use crate::sysfs::Entry;

/// A device's switch as devlink reports it: mode and ports.
///
/// The caller reads the switch once and passes it to each search for a representor. So one
/// devlink dump is enough for 256 virtual functions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// The mode; `None` if the device has no switch or devlink does not report the mode.
    #[serde(default)]
    pub mode: Option<EswitchMode>,
    /// The ports.
    #[serde(default)]
    pub ports: Vec<DevlinkPort>,
}

/// A function behind a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FunctionNumber {
    Vf(u32),
    Sf(u32),
}

impl Switch {
    /// Reads the switch from devlink. The first request reads the mode. In `switchdev` mode, a
    /// second request reads the ports.
    ///
    /// # Errors
    ///
    /// [`DevlinkError`] if the socket fails, if an answer is missing or unreadable, or if devlink
    /// refuses a request. If devlink has no such device, or if the device has no switch, returns a
    /// switch without a mode and without ports.
    pub fn read(devlink: &mut Devlink, device: &DevlinkHandle) -> Result<Self, DevlinkError> {
        let mode = devlink.eswitch_mode(device)?;
        let ports = if mode == Some(EswitchMode::Switchdev) {
            devlink.ports(device)?
        } else {
            Vec::new()
        };
        Ok(Self { mode, ports })
    }

    /// Returns the interface of the function's port, if exactly one port matches. Skips ports for
    /// functions of another host.
    fn representor(&self, of: FunctionNumber) -> Option<String> {
        let mut matching = self.ports.iter().filter(|port| {
            !port.external
                && port.controller == 0
                && match of {
                    FunctionNumber::Vf(vf) => {
                        port.flavour == PortFlavour::PciVf && port.vf == Some(vf)
                    }
                    FunctionNumber::Sf(sf) => {
                        port.flavour == PortFlavour::PciSf && port.sf == Some(sf)
                    }
                }
        });
        let first = matching.next()?;
        matching.next().is_none().then(|| first.netdev.clone())?
    }
}

impl Switch {
    /// Returns whether `ports` contains every representor. In legacy mode, an empty list is
    /// complete, because the switch has no representors. In switchdev mode, a list with ports is
    /// complete, because devlink reports either no ports or all of them.
    pub(crate) fn is_authority(&self) -> bool {
        self.mode == Some(EswitchMode::Legacy) || !self.ports.is_empty()
    }

    pub(crate) fn vf_representor(&self, vf: u32) -> Option<String> {
        self.representor(FunctionNumber::Vf(vf))
    }

    /// Returns the interface of the physical port. Returns `None` if there is no such port, or more
    /// than one.
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
    /// Returns the representor of this virtual function in the switch of its physical function.
    ///
    /// Uses the ports of `switch` if there are any. Without ports, returns `None` in legacy mode.
    /// In all other cases, searches the interfaces in sysfs. There, the representor has the same
    /// `phys_switch_id` as the physical function's interface. The representor's `phys_port_name`
    /// contains the numbers of the physical and of the virtual function. Returns `None` if no
    /// interface matches, or if more than one matches.
    #[must_use]
    pub fn representor(&self, switch: Option<&Switch>) -> Option<String> {
        let of = FunctionNumber::Vf(self.vf_index()?);
        match switch.filter(|switch| switch.is_authority()) {
            Some(switch) => switch.representor(of),
            None => PortTable::read(&self.physical_function()?)?.find(of),
        }
    }
}

impl Subfunction {
    /// Returns the representor of this subfunction. Searches in the same way as
    /// [`PciFunction::representor`].
    #[must_use]
    pub fn representor(&self, switch: Option<&Switch>) -> Option<String> {
        let of = FunctionNumber::Sf(self.number()?);
        match switch.filter(|switch| switch.is_authority()) {
            Some(switch) => switch.representor(of),
            None => PortTable::read(&self.parent()?)?.find(of),
        }
    }
}

/// The attribute in which drivers report the switch port of an interface.
const PORT_NAME: &str = "phys_port_name";

/// An interface of a switch, as sysfs shows it.
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

/// The interfaces of a physical function's switch. [`PortTable::read`] reads each port name once.
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
        // Most drivers put the representors into the same directory as the uplink. If the uplink is
        // the only port in that directory, search all interfaces of the network namespace.
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
        self.find(FunctionNumber::Vf(vf))
    }

    fn find(&self, of: FunctionNumber) -> Option<String> {
        let (controller, pf) = (None, self.pf);
        let wanted = match of {
            FunctionNumber::Vf(vf) => PhysPortName::Vf { controller, pf, vf },
            FunctionNumber::Sf(sf) => PhysPortName::Sf { controller, pf, sf },
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

/// Returns the interface that is not a representor: the interface of the physical port. Returns
/// `None` if there is no such interface, or more than one.
fn uplink(netdevs: &[PortNetdev]) -> Option<&PortNetdev> {
    let mut physical = netdevs
        .iter()
        .filter(|netdev| !netdev.port.is_representor());
    let first = physical.next()?;
    physical.next().is_none().then_some(first)
}

/// Returns the number of the physical function in a `phys_port_name`, such as 0 in `pf0vf3`. Some
/// drivers write the number of the PCI function, others the number of the port. If these two
/// numbers differ, returns `None`.
fn pf_number(physical: &PciFunction, uplink: PhysPortName) -> Option<u32> {
    let function = u32::from(physical.address().function());
    match uplink {
        PhysPortName::Physical { port, .. } if port == function => Some(function),
        _ => None,
    }
}
