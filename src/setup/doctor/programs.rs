//! The plugins of every network that a pod of this node may be attached to.

use super::{Check, Diagnosis};
use crate::cluster::Census;
use crate::npwg::ObjectRef;
use crate::operation::Context;
use crate::operation::examine::{Examined, every_network};
use crate::setup::NAME;

/// Looks at the administrator's networks and at all definitions.
pub(super) fn look(
    context: &Context<'_>,
    census: Option<&Census>,
    diagnosis: &mut Diagnosis,
) -> Vec<Examined> {
    let definitions: &[ObjectRef] = census.map_or(&[], |census| census.definitions.as_slice());
    let networks = match every_network(context, definitions) {
        Ok(networks) => networks,
        Err(failure) => {
            // Whoever does not answer has been named already.
            if diagnosis.is_fine(Check::Cluster) {
                diagnosis.error(Check::Programs, "networks", &failure.to_string());
            }
            return Vec::new();
        }
    };
    for network in &networks {
        let about = format!("network {}", network.label);
        for problem in &network.problems {
            diagnosis.error(Check::Programs, &about, problem);
        }
        // Found by its file where it is this very one; another copy is as bad.
        let is_circle = network.types.iter().any(|name| name == NAME);
        if is_circle && network.problems.is_empty() {
            diagnosis.find(
                Check::Programs,
                &about,
                format!("it delegates to {NAME} itself"),
                "name the plugin that makes the network",
            );
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
