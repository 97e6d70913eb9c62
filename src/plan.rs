//! Turns everything known about a pod into an ordered list of [`Attachment`]s, or into the reasons
//! why Jackfield must attach nothing.
//!
//! The module does no I/O, so `explain` and ADD make the same plan from the same inputs.

pub mod attachment;
mod capabilities;
mod devices;
mod difference;
mod error;
mod network;
mod planner;
mod problem;
mod restrictions;
mod segment;
mod selected;
mod warning;

pub use attachment::{Attachment, Requested};
pub use difference::{Difference, difference};
pub use error::{NetworkPlace, PlanError};
pub use network::{KnownNetwork, read, read_administrators, read_selected};
pub use problem::{ConfigurationProblem, NamedIn, Reason, Restriction};
pub use segment::{AttachPoint, Segment};
pub use warning::{PlanRemark, PlanWarning};

use std::time::Instant;

use crate::allocation::Allocation;
use crate::cluster::{Answer, Catalog, PodAnnotations, PodName};
use crate::cni::{CapabilityArgs, ContainerId, InterfaceName};
use crate::request::NodeConfig;
use planner::Planner;

/// The maximum total size of the configurations of a pod's networks, in bytes.
pub const MAX_CONFIGURATIONS: usize = 8 << 20;
/// The maximum number of capabilities that one plugin may declare.
pub const MAX_CAPABILITIES: usize = 64;

/// What an ADD does, in order.
#[derive(Debug, Default)]
pub struct Plan {
    /// The attachments in this order: the cluster network (NPWG 1.3 §6.2), the further delegates of
    /// the node configuration, the default networks, the networks that the pod selects, and the
    /// auxiliary chain (`auxiliaryCNIChainName`).
    pub attachments: Vec<Attachment>,
    /// Warnings about the pod's annotations.
    pub warnings: Vec<PlanWarning>,
    /// Remarks that explain the plan.
    pub remarks: Vec<PlanRemark>,
    /// The reasons why an ADD must not carry out the plan.
    pub problems: Vec<PlanError>,
}

/// The data from which Jackfield makes a plan.
#[derive(Debug)]
pub struct Inputs<'a> {
    /// The node configuration.
    pub config: &'a NodeConfig,
    /// `CNI_CONTAINERID`.
    pub container: &'a ContainerId,
    /// `CNI_IFNAME`: the cluster network's interface.
    pub ifname: &'a InterfaceName,
    /// The pod, if the runtime names it.
    pub pod: Option<&'a PodName>,
    /// The pod's annotations.
    pub annotations: &'a PodAnnotations,
    /// The cluster's answer about the pod.
    pub answer: &'a Answer,
    /// The networks with their configurations.
    pub catalog: &'a Catalog,
    /// The devices that kubelet allocated to the pod.
    pub allocation: &'a Allocation,
    /// The time by which the plan must be ready.
    pub until: Instant,
    /// The capability arguments from the runtime. Only the cluster network gets them (NPWG 1.3
    /// §7.5).
    pub runtime_config: CapabilityArgs,
}

/// Makes the plan. A problem with one network does not stop the planning of the others, so that
/// [`Plan::problems`] covers all networks.
pub fn plan(inputs: Inputs<'_>) -> Plan {
    let mut planner = Planner::new(inputs);
    planner.cluster_network();
    let selections = planner.selections();
    planner.further_delegates();
    planner.default_networks();
    for selection in &selections {
        planner.selected_network(selection);
    }
    planner.auxiliary_chain();
    planner.check_uniqueness();
    planner.devices();
    planner.plan
}

#[cfg(test)]
mod tests;
