//! Checks the plugins of every network that a pod of this node may be attached to.

use super::{Check, Diagnosis};
use crate::cluster::Census;
use crate::diagnostic::Problem;
use crate::npwg::ObjectRef;
use crate::operation::examine::{Examined, every_network};
use crate::operation::{Context, Failure};
use crate::setup::NAME;

/// What is wrong with a network.
#[derive(Debug)]
enum NetworkProblem {
    /// The networks cannot be read.
    NoAnswer(Failure),
    /// No pod can be attached to it; the description of the examination.
    Unusable(String),
    /// It delegates to Jackfield.
    Circle,
}

impl Problem for NetworkProblem {
    fn words(&self) -> String {
        match self {
            NetworkProblem::NoAnswer(cause) => cause.to_string(),
            NetworkProblem::Unusable(problem) => problem.clone(),
            NetworkProblem::Circle => format!("it delegates to {NAME} itself"),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            NetworkProblem::NoAnswer(_) => "start the agent, or correct the node configuration",
            NetworkProblem::Unusable(_) => "correct its configuration, or install what it lacks",
            NetworkProblem::Circle => "name the plugin that makes the network",
        };
        Some(remedy.to_owned())
    }
}

/// Checks the administrator's networks and all definitions.
pub(super) fn look(
    context: &Context<'_>,
    census: Option<&Census>,
    diagnosis: &mut Diagnosis,
) -> Vec<Examined> {
    let definitions: &[ObjectRef] = census.map_or(&[], |census| census.definitions.as_slice());
    let networks = match every_network(context, definitions) {
        Ok(networks) => networks,
        Err(failure) => {
            // The check of the cluster has found this.
            if diagnosis.is_fine(Check::Cluster) {
                let problem = NetworkProblem::NoAnswer(failure);
                diagnosis.find(Check::Programs, "networks", problem);
            }
            return Vec::new();
        }
    };
    for network in &networks {
        let about = format!("network {}", network.label);
        for problem in &network.problems {
            let problem = NetworkProblem::Unusable(problem.clone());
            diagnosis.find(Check::Programs, &about, problem);
        }
        // The examination finds this binary by its file; another copy is as bad.
        let is_circle = network.types.iter().any(|name| name == NAME);
        if is_circle && network.problems.is_empty() {
            diagnosis.find(Check::Programs, &about, NetworkProblem::Circle);
        }
    }
    if diagnosis.is_fine(Check::Programs) {
        let mut types: Vec<&str> = networks
            .iter()
            .flat_map(|network| &network.types)
            .map(String::as_str)
            .collect();
        types.sort_unstable();
        types.dedup();
        let count = networks.len();
        diagnosis.fine(
            Check::Programs,
            format!("{count} networks by {}", types.join(", ")),
        );
    }
    networks
}
