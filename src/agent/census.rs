//! The names of the node's pods, as the watch has them, and of the cluster's definitions, as the
//! API server lists them now.

use tracing::warn;

use super::knowledge::Knowledge;
use crate::cluster::api::definitions::DefinitionNames;
use crate::cluster::census::{CensusProblem, MOST_DEFINITIONS, MOST_PODS};
use crate::cluster::{Census, PodName};

/// Pods and definitions.
pub(super) async fn whole(knowledge: &Knowledge) -> Census {
    let server = knowledge.server();
    let names = server.names_of_definitions(MOST_DEFINITIONS).await;
    let (names, unreachable) = match names {
        Ok(names) => (names, None),
        Err(error) => {
            warn!("cannot list definitions: {error}");
            (DefinitionNames::default(), Some(error.to_string()))
        }
    };
    let pods = of_pods(knowledge);
    let mut broken = pods.broken.clone();
    let problems = names.broken.into_iter().map(CensusProblem::Definition);
    let cut = names.are_cut.then_some(CensusProblem::ManyDefinitions);
    broken.extend(problems.chain(cut).map(|it| it.to_string()));
    Census {
        listed: unreachable.is_none() && pods.listed,
        unreachable,
        definitions: names.definitions,
        broken,
        ..pods
    }
}

/// Pods alone. The API server is not asked.
pub(super) fn of_pods(knowledge: &Knowledge) -> Census {
    let cache = &knowledge.cache;
    let pods = cache.pods.entries();
    let mut broken = Vec::new();
    if pods.len() > MOST_PODS || cache.pods.is_cut() {
        broken.push(CensusProblem::ManyPods.to_string());
    }
    let pods = pods.into_iter().take(MOST_PODS);
    let pods = pods.map(|(object, view)| PodName::of(&object, Some(view.identity.uid.clone())));
    Census {
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        node: knowledge.node.clone(),
        listed: cache.pods.is_synced() && cache.definitions.is_synced(),
        pods: pods.collect(),
        broken,
        ..Census::default()
    }
}
