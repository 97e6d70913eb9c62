//! Checks the plugins of every network that a pod of this node may be attached to.

use std::collections::BTreeSet;

use super::{Check, Findings};
use crate::cluster::Census;
use crate::npwg::ObjectRef;
use crate::operation::Context;
use crate::operation::examine::{Examined, every_network};

/// Checks the networks that the node configuration names, and the definitions in `census`. Without
/// a census, checks only the networks of the node configuration.
pub(super) fn look(
    context: &Context<'_>,
    census: Option<&Census>,
    mut findings: Findings<'_>,
) -> Vec<Examined> {
    let definitions: &[ObjectRef] = census.map_or(&[], |census| census.definitions.as_slice());
    let networks = match every_network(context, definitions) {
        Ok(networks) => networks,
        Err(failure) => {
            // `every_network` fails only if the cluster does not answer. If the check of the
            // cluster has findings, they probably have the same cause.
            if !findings.has_any_of(Check::Cluster) {
                let remedy = "start the agent, or correct the node configuration";
                findings.add("networks", failure, remedy);
            }
            return Vec::new();
        }
    };
    for network in &networks {
        let about = format!("network {}", network.label);
        for problem in &network.problems {
            let remedy = "correct its configuration, or install what it lacks";
            findings.add(&about, problem, remedy);
        }
    }
    let types = networks.iter().flat_map(|network| &network.types);
    let types: BTreeSet<&str> = types.map(String::as_str).collect();
    let types: Vec<&str> = types.into_iter().collect();
    let count = networks.len();
    findings.fine(format!(
        "{count} networks, with the plugins {}",
        types.join(", ")
    ));
    networks
}
