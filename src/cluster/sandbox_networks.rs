//! The plugin reports each attached sandbox to the agent. The report contains the digest of the
//! `networks` annotation from which the plugin made the attachments. The agent compares this digest
//! with the current annotation of the pod. With `dynamicAttachment`, STATUS asks the agent for the
//! sandboxes of pods with a changed annotation.

use serde::{Deserialize, Serialize};

use super::PodName;
use crate::cni::{ContainerId, InterfaceName};
use crate::npwg::NetworksDigest;

/// A sandbox, and the digest of an annotation that selects networks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxNetworks {
    /// `CNI_CONTAINERID`.
    pub container: ContainerId,
    /// `CNI_IFNAME`.
    pub ifname: InterfaceName,
    /// The pod. `None` in an answer of the agent, and in a report from [`SandboxNetworks::gone`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<PodName>,
    /// In a report, the digest of the annotation that the attachments match. In an answer of the
    /// agent, the digest of the pod's current annotation.
    #[serde(default)]
    pub networks: NetworksDigest,
}

impl SandboxNetworks {
    /// Returns the report that a sandbox is not attached.
    pub fn gone(container: &ContainerId, ifname: &InterfaceName) -> SandboxNetworks {
        SandboxNetworks {
            container: container.clone(),
            ifname: ifname.clone(),
            pod: None,
            networks: NetworksDigest::default(),
        }
    }
}
