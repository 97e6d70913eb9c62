//! Answering a question: from the API server alone, or from what the agent has of it.

use futures_util::future::join_all;

use super::{ApiError, PodView};
use crate::cluster::{Answer, ClusterError, Found, PodName, Question};
use crate::npwg::{Definition, IpamClaim, ObjectRef};

/// Where objects are looked up.
#[allow(async_fn_in_trait, reason = "everything runs on one thread")]
pub trait Lookup {
    /// A pod, as it is known; `None` when there is none.
    ///
    /// # Errors
    /// When the API server had to be asked and did not answer.
    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<PodView>, ApiError>;

    /// The same, past any cache; `None` where [`Lookup::pod`] was that already.
    async fn pod_uncached(
        &self,
        namespace: &str,
        name: &str,
    ) -> Option<Result<Option<PodView>, ApiError>>;

    /// A definition, or why there is none.
    async fn definition(&self, object: &ObjectRef) -> Found<Definition>;

    /// A claim, or why there is none.
    async fn claim(&self, namespace: &str, name: &str) -> Found<IpamClaim>;
}

/// Answers a question on the node called `node`, where that is known.
///
/// # Errors
/// When the pod is not known, another one has its name, it is bound to another node, or the API
/// server had to be asked and did not answer.
pub async fn answer(
    lookup: &impl Lookup,
    node: Option<&str>,
    question: &Question,
) -> Result<Answer, ClusterError> {
    let mut answer = Answer::default();
    let mut wanted: Vec<ObjectRef> = Vec::new();
    let mut want = |objects: Vec<ObjectRef>| {
        for object in objects {
            if !wanted.contains(&object) {
                wanted.push(object);
            }
        }
    };
    want(question.networks.clone());
    if let Some(name) = &question.pod {
        let mut pod = identified(lookup, node, name)
            .await?
            .to_pod(name.uid.as_deref());
        if let Some(given) = &question.annotations {
            pod.annotations = given.clone();
        }
        let dialect = question.dialect;
        want(
            pod.annotations
                .references(&name.namespace, &question.multus_namespace, dialect),
        );
        let claims = pod.annotations.claims(&name.namespace, dialect);
        answer.claims = join_all(claims.into_iter().map(async |claim| {
            let found = lookup.claim(&name.namespace, &claim).await;
            (claim, found)
        }))
        .await;
        answer.pod = Some(pod);
    }
    answer.definitions = join_all(wanted.into_iter().map(async |object| {
        let found = lookup.definition(&object).await;
        (object, found)
    }))
    .await;
    Ok(answer)
}

/// The pod that the runtime means. What a cache says against it is asked once more, uncached: a
/// pod of that name may have been replaced a moment ago.
async fn identified(
    lookup: &impl Lookup,
    node: Option<&str>,
    name: &PodName,
) -> Result<PodView, ClusterError> {
    let known = lookup.pod(&name.namespace, &name.name).await?;
    match judge(known, node, name) {
        Ok(view) => Ok(view),
        Err(refusal) => match lookup.pod_uncached(&name.namespace, &name.name).await {
            None => Err(refusal),
            Some(fresh) => judge(fresh?, node, name),
        },
    }
}

fn judge(
    view: Option<PodView>,
    node: Option<&str>,
    name: &PodName,
) -> Result<PodView, ClusterError> {
    let Some(view) = view else {
        return Err(ClusterError::UnknownPod {
            pod: name.to_string(),
            place: "the cluster".to_owned(),
        });
    };
    if !view.identity.is(name.uid.as_deref()) {
        return Err(ClusterError::OtherPod {
            pod: name.to_string(),
            asked: name.uid.clone().unwrap_or_default(),
            known: view.identity.uid,
        });
    }
    match (node, view.node.as_deref()) {
        (Some(ours), Some(theirs)) if ours != theirs => Err(ClusterError::OtherNode {
            pod: name.to_string(),
            node: theirs.to_owned(),
            ours: ours.to_owned(),
        }),
        _ => Ok(view),
    }
}

#[cfg(test)]
mod tests;
