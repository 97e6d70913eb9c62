//! Answers a [`Question`] with objects from the API server and, in the agent, from the agent's
//! cache.

use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;

use futures_util::{StreamExt, stream};

use super::{ApiError, PodView, SliceView, slices};
use crate::cluster::lookup::{LookupError, Place};
use crate::cluster::{Answer, ClusterError, PodName, Question, devices};
use crate::kubelet::{PodDevices, PodResources};
use crate::npwg::{Definition, IpamClaim, ObjectRef};

/// The maximum number of definitions that Jackfield looks up for one question. Each definition may
/// cost a request.
const MOST: usize = 256;
/// How many objects are looked up concurrently for one question.
const AT_ONCE: usize = 8;

/// A source of the objects for an answer.
#[allow(async_fn_in_trait, reason = "everything runs on one thread")]
pub trait Lookup {
    /// A pod from the cache, if there is a cache and it contains the pod.
    fn cached_pod(&self, _namespace: &str, _name: &str) -> Option<PodView> {
        None
    }

    /// A pod from the API server; `None` if no pod has that name or the name is invalid.
    ///
    /// # Errors
    /// When the request fails.
    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<PodView>, ApiError>;

    /// A NetworkAttachmentDefinition.
    ///
    /// # Errors
    /// [`LookupError`]. All callers that wait for the same look-up share the error.
    async fn definition(&self, object: &ObjectRef) -> Result<Definition, Rc<LookupError>>;

    /// An IPAMClaim.
    ///
    /// # Errors
    /// [`LookupError`].
    async fn claim(&self, namespace: &str, name: &str) -> Result<IpamClaim, LookupError>;

    /// Kubelet's pod-resources API behind a socket.
    fn kubelet(&self, socket: &Path) -> Rc<PodResources>;

    /// The ResourceSlices from the cache, if there is a cache.
    fn cached_slices(&self) -> Option<Vec<Rc<SliceView>>> {
        None
    }

    /// The ResourceSlices of a node, from the API server.
    ///
    /// # Errors
    /// When the request fails.
    async fn slices(&self, node: &str) -> Result<Vec<Rc<SliceView>>, ApiError>;
}

/// Answers a question. `node` is the name of this node, if it is known.
///
/// # Errors
/// - When the pod is bound to a different node.
/// - When the pod does not exist or has a different UID, or when the request for the pod fails. For
///   a static pod, these failures are no errors: the answer contains the question's annotations.
/// - When the pod has more containers or device requests than an answer may contain. This function
///   does not count requests for devices that no network of the pod needs.
pub async fn answer(
    lookup: &impl Lookup,
    node: Option<&str>,
    question: &Question,
) -> Result<Answer, ClusterError> {
    let mut answer = Answer::default();
    let mut wanted = BTreeSet::from_iter(question.networks.iter().cloned());
    let mut bound_to = None;
    if let Some(name) = &question.pod {
        let view = match identified(lookup, node, name).await {
            // kubelet may create the mirror pod of a static pod later, or never. The annotations
            // that kubelet passed to the runtime are enough.
            Err(cause)
                if question.is_static && !matches!(cause, ClusterError::OtherNode { .. }) =>
            {
                PodView::default()
            }
            view => view?,
        };
        let mut pod = view.to_pod(name.uid.as_deref());
        bound_to = view.node;
        if let Some(given) = &question.annotations {
            pod.annotations = given.clone();
        }
        wanted.extend(question.references(&pod.annotations));
        let claims = pod.annotations.claims(&name.namespace, question.dialect);
        answer.claims = stream::iter(claims)
            .map(async |claim| {
                let found = lookup.claim(&name.namespace, &claim).await;
                (claim, found.map_err(|error| error.to_string()))
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        answer.pod = Some(pod);
    }
    answer.definitions = stream::iter(wanted.into_iter().enumerate())
        .map(async |(number, object)| {
            let found = match number {
                0..MOST => lookup.definition(&object).await,
                _ => Err(Rc::new(LookupError::TooMany(object.clone(), MOST))),
            };
            (object, found.map_err(|error| error.to_string()))
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    if !devices::fit_containers(question, &mut answer)
        && let Some(pod) = &question.pod
    {
        return Err(ClusterError::ManyContainers(pod.to_string()));
    }
    let node = node.or(bound_to.as_deref()).unwrap_or_default();
    answer.kubelet = kubelet(lookup, node, question, &answer).await;
    Ok(answer)
}

/// Returns the pod's devices according to kubelet. Returns `None` if the question names no pod or
/// no socket of kubelet, or if the pod's networks need no devices ([`devices::wanted`]). The
/// resource name and the identifier of a DRA driver's device come from the ResourceSlices.
async fn kubelet(
    lookup: &impl Lookup,
    node: &str,
    question: &Question,
    answer: &Answer,
) -> Option<PodDevices> {
    let (name, socket) = (question.pod.as_ref()?, question.kubelet.as_ref()?);
    let resources = devices::wanted(question, answer)?;
    let kubelet = lookup.kubelet(socket);
    let mut devices = kubelet
        .devices_of(&name.namespace, &name.name, &resources)
        .await;
    let is_complete = !slices::concern(&devices)
        || lookup
            .cached_slices()
            .is_some_and(|slices| slices::identify(&slices, &mut devices));
    if !is_complete {
        match lookup.slices(node).await {
            Ok(slices) => {
                slices::identify(&slices, &mut devices);
            }
            Err(error) if devices.dynamic().any(|device| device.identity.is_none()) => {
                devices.failure.get_or_insert(error.to_string());
            }
            Err(_) => {}
        }
    }
    Some(devices)
}

/// Returns the pod that the runtime names. Uses the cached pod of that name if its UID and node are
/// right. Otherwise asks the API server, because the cache may lack a new pod, or may still have an
/// earlier pod of that name.
async fn identified(
    lookup: &impl Lookup,
    node: Option<&str>,
    name: &PodName,
) -> Result<PodView, ClusterError> {
    if let Some(cached) = lookup.cached_pod(&name.namespace, &name.name)
        && let Ok(view) = judge(Some(cached), node, name)
    {
        return Ok(view);
    }
    judge(lookup.pod(&name.namespace, &name.name).await?, node, name)
}

fn judge(
    view: Option<PodView>,
    node: Option<&str>,
    name: &PodName,
) -> Result<PodView, ClusterError> {
    let Some(view) = view else {
        return Err(ClusterError::UnknownPod(name.to_string(), Place::ApiServer));
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
