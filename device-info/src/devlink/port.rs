//! What devlink says of a port.

use serde::{Deserialize, Serialize};

/// What a NIC's switch does with the traffic of its virtual functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EswitchMode {
    /// By MAC and VLAN, as the physical function's driver sets them.
    Legacy,
    /// As the host says, through a representor for each function.
    Switchdev,
}

/// What a port of a switch leads to.
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
    /// Something that is none of our business.
    Other,
}

/// A port of a NIC's switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevlinkPort {
    /// The port's number within the device.
    pub index: u32,
    /// The interface that stands for it in this network namespace.
    pub netdev: Option<String>,
    /// What it leads to.
    pub flavour: PortFlavour,
    /// The number on the housing, of a physical port.
    pub number: Option<u32>,
    /// Whose host the function belongs to; 0 is the one that the switch belongs to.
    pub controller: u32,
    /// Whether the function belongs to another host than this one.
    pub external: bool,
    /// The physical function's number.
    pub pf: Option<u32>,
    /// The virtual function's number.
    pub vf: Option<u32>,
    /// The subfunction's number, `sfnum`.
    pub sf: Option<u32>,
}
