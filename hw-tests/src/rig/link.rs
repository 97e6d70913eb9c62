//! Network interfaces as `ip` shows them, in any network namespace.

use serde::{Deserialize, Serialize};

use crate::case::Stop;
use crate::rig::{Netns, command};

/// An interface in the output of `ip -json -details link show`.
#[derive(Debug, Deserialize)]
pub(crate) struct Link {
    /// `ether`, `infiniband`.
    pub(crate) link_type: String,
    /// The hardware address.
    pub(crate) address: String,
    /// The bus of its parent device (`IFLA_PARENT_DEV_BUS_NAME`).
    #[serde(rename = "parentbus", default)]
    pub(crate) parent_bus: String,
    /// Its parent device (`IFLA_PARENT_DEV_NAME`).
    #[serde(rename = "parentdev", default)]
    pub(crate) parent_name: String,
    /// Its bond or bridge.
    pub(crate) master: Option<String>,
    /// The VFs that a PF's interface reports.
    #[serde(rename = "vfinfo_list", default)]
    pub(crate) vfs: Vec<LinkVf>,
}

/// A VF, as its PF's interface reports it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct LinkVf {
    pub(crate) vf: u32,
    #[serde(default)]
    link_type: String,
    /// The address that the PF has set for it; zeros mean none.
    #[serde(default)]
    pub(crate) address: String,
    #[serde(default)]
    vlan_list: Vec<LinkVlan>,
    pub(crate) spoofchk: Option<bool>,
    pub(crate) trust: Option<bool>,
    pub(crate) link_state: Option<String>,
    #[serde(rename = "node guid", default)]
    pub(crate) node_guid: String,
    #[serde(rename = "port guid", default)]
    pub(crate) port_guid: String,
}

/// The VLAN that the PF has set for a VF.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct LinkVlan {
    #[serde(default)]
    vlan: u32,
    #[serde(default)]
    qos: u32,
}

impl LinkVf {
    /// Returns a VF, as the PF's interface of this name reports it.
    pub(crate) fn of(pf: &str, number: u32) -> Result<Self, Stop> {
        let vfs = Link::show(None, pf)?.vfs;
        vfs.into_iter()
            .find(|vf| vf.vf == number)
            .ok_or_else(|| Stop::failed(format!("{pf} does not report VF {number}")))
    }

    /// Returns VLAN and priority, zeros if there is none.
    pub(crate) fn vlan(&self) -> (u32, u32) {
        let vlan = self.vlan_list.first();
        vlan.map_or((0, 0), |vlan| (vlan.vlan, vlan.qos))
    }

    pub(crate) fn is_ethernet(&self) -> bool {
        self.link_type == "ether"
    }
}

impl Link {
    /// Returns the interface of this name, on the host or in a network namespace.
    pub(crate) fn show(netns: Option<&Netns>, name: &str) -> Result<Self, Stop> {
        let mut arguments = vec!["-json", "-details"];
        if let Some(netns) = netns {
            arguments.extend(["-netns", netns.name()]);
        }
        arguments.extend(["link", "show", "dev", name]);
        let output = command("ip", &arguments)?;
        let links: Vec<Self> = serde_json::from_str(&output)?;
        links
            .into_iter()
            .next()
            .ok_or_else(|| Stop::failed(format!("ip shows no interface {name}")))
    }
}
