//! Who is on the node, for whoever looks at all of it: pods as the watch shows them, definitions by
//! their names as they are listed now.

use tracing::warn;

use super::knowledge::Knowledge;
use crate::cluster::api::definitions::Names;
use crate::cluster::{Census, PodName};

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
    let mut broken = names.broken;
    if names.are_cut {
        broken.push(format!(
            "there are more than {NAMES} definitions, of which others are not looked at"
        ));
    }
    let pods = of_pods(knowledge);
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
    let pods = cache.pods.entries().into_iter();
    let attached = pods.filter(|(_, view)| !view.is_unattached);
    let pods = attached.map(|(object, view)| PodName {
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
        uid: Some(view.identity.uid.clone()),
    });
    Census {
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        node: knowledge.node.clone(),
        listed: cache.pods.is_synced() && cache.definitions.is_synced(),
        pods: pods.collect(),
        ..Census::default()
    }
}
