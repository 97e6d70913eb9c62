//! Network interfaces as `ip` shows them: netlink's view, in any network namespace.

use serde::Deserialize;

use crate::case::Stop;
use crate::rig::{Netns, command};

/// What `ip -json -details link show` says of an interface.
#[derive(Debug, Deserialize)]
pub(crate) struct Link {
    /// `ether`, `infiniband`.
    pub(crate) link_type: String,
    /// The hardware address.
    pub(crate) address: String,
    /// The bus of the device behind it (`IFLA_PARENT_DEV_BUS_NAME`).
    #[serde(rename = "parentbus", default)]
    pub(crate) parent_bus: String,
    /// The device behind it (`IFLA_PARENT_DEV_NAME`).
    #[serde(rename = "parentdev", default)]
    pub(crate) parent_name: String,
    /// What a PF's interface says of its VFs.
    #[serde(rename = "vfinfo_list", default)]
    pub(crate) vfs: Vec<LinkVf>,
}

/// One VF of a PF's interface.
#[derive(Debug, Deserialize)]
pub(crate) struct LinkVf {
    pub(crate) vf: u32,
    #[serde(rename = "node guid", default)]
    pub(crate) node_guid: String,
    #[serde(rename = "port guid", default)]
    pub(crate) port_guid: String,
}

impl Link {
    /// The interface of this name, here or in a network namespace.
    pub(crate) fn show(netns: Option<&Netns>, name: &str) -> Result<Self, Stop> {
        let mut arguments = vec!["-json", "-details"];
        if let Some(netns) = netns {
            arguments.extend(["-netns", netns.name()]);
        }
        arguments.extend(["link", "show", "dev", name]);
        let said = command("ip", &arguments)?;
        let links: Vec<Self> = serde_json::from_str(&said)?;
        links
            .into_iter()
            .next()
            .ok_or_else(|| Stop::failed(format!("ip shows no interface {name}")))
    }
}
