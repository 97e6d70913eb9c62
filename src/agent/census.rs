//! The census: the names of this node's pods and of the cluster's definitions. It has at most
//! `MOST_PODS` pods and `MOST_DEFINITIONS` definitions. The pods come from the agent's cache, which
//! does not keep pods that have ended or use the host's network. The agent does not cache the list
//! of all definitions, so `whole` requests this list from the API server each time.

use tracing::warn;

use super::knowledge::Knowledge;
use crate::cluster::census::{MOST_DEFINITIONS, MOST_PODS};
use crate::cluster::{Census, PodName};

/// Lists the pods and the definitions.
pub(super) async fn whole(knowledge: &Knowledge) -> Census {
    let mut census = of_pods(knowledge);
    let server = knowledge.server();
    if let Err(error) = server.add_definitions(&mut census, MOST_DEFINITIONS).await {
        warn!("cannot list definitions: {error}");
        census.definitions.clear();
        census.listed = false;
        census.unreachable = Some(error.to_string());
    }
    census
}

/// Lists only the pods, without a request to the API server.
pub(super) fn of_pods(knowledge: &Knowledge) -> Census {
    let cache = &knowledge.cache;
    let pods = cache.pods.entries();
    let mut broken = Vec::new();
    if pods.len() > MOST_PODS || cache.pods.is_cut() {
        let problem = "the agent cannot list all pods of this node, so some are not examined";
        broken.push(problem.to_owned());
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
