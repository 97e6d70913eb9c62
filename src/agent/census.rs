//! Who is on the node, for whoever looks at all of it: pods as the watch shows them, definitions by
//! their names as they are listed now.

use tracing::warn;

use super::knowledge::Knowledge;
use crate::cluster::api::definitions::Names;
use crate::cluster::{Census, MOST_PODS, PodName};

/// How many definitions are named.
const NAMES: usize = 20_000;

/// Pods and definitions.
pub(super) async fn whole(knowledge: &Knowledge) -> Census {
    let names = knowledge.server().names_of_definitions(NAMES).await;
    let (names, unreachable) = match names {
        Ok(names) => (names, None),
        Err(error) => {
            warn!("definitions cannot be listed: {error}");
            (Names::default(), Some(error.to_string()))
        }
    };
    let pods = of_pods(knowledge);
    let mut broken = pods.broken.clone();
    broken.extend(names.broken);
    if names.are_cut {
        broken.push(format!(
            "there are more than {NAMES} definitions, of which others are not looked at"
        ));
    }
    Census {
        listed: unreachable.is_none() && pods.listed,
        unreachable,
        definitions: names.definitions,
        broken,
        ..pods
    }
}

/// Pods alone, which costs the API server nothing.
pub(super) fn of_pods(knowledge: &Knowledge) -> Census {
    let cache = &knowledge.cache;
    let pods = cache.pods.entries();
    let mut broken = Vec::new();
    if pods.len() > MOST_PODS || cache.pods.is_cut() {
        broken.push(
            "there are more pods on this node than the agent keeps, of which others are not looked at"
                .to_owned(),
        );
    }
    let pods = pods.into_iter().take(MOST_PODS);
    let pods = pods.map(|(object, view)| PodName {
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
        uid: Some(view.identity.uid.clone()),
    });
    Census {
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        node: knowledge.node.clone(),
        listed: cache.pods.is_synced() && cache.definitions.is_synced(),
        pods: pods.collect(),
        broken,
        ..Census::default()
    }
}
