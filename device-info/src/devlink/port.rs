//! Ports of a switch, as devlink reports them.

use serde::{Deserialize, Serialize};

/// How a NIC's switch forwards the traffic of its virtual functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EswitchMode {
    /// By MAC and VLAN. The physical function's driver programs the switch.
    Legacy,
    /// By rules that the host sets. Each function has a representor, which is an interface of the
    /// host.
    Switchdev,
}

/// What is connected to a port of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PortFlavour {
    /// The wire.
    Physical,
    /// A physical function.
    PciPf,
    /// A virtual function.
    PciVf,
    /// A subfunction.
    PciSf,
    /// Something else.
    Other,
}

/// A port of a NIC's switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevlinkPort {
    /// The port's index within the device.
    pub index: u32,
    /// The port's interface in this network namespace.
    pub netdev: Option<String>,
    /// What is connected to the port.
    pub flavour: PortFlavour,
    /// The number of a physical port.
    pub number: Option<u32>,
    /// The number of the function's controller. Each host that uses the NIC has its own controller;
    /// 0 is the controller of the host that manages the switch.
    pub controller: u32,
    /// Whether the function belongs to a host other than the host that manages the switch.
    pub external: bool,
    /// The physical function's number.
    pub pf: Option<u32>,
    /// The virtual function's number.
    pub vf: Option<u32>,
    /// The subfunction's number, `sfnum`.
    pub sf: Option<u32>,
}
