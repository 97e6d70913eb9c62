//! Builds the question that a call of the runtime asks the cluster. The question depends on what
//! the runtime says about the pod.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{Context, Failure};
use crate::cluster::{
    Answer, ClusterError, Phase, PodAnnotations, PodName, Question, administrators_definitions,
    identity,
};
use crate::cni::json::POD_ANNOTATIONS;
use crate::cni::{CapabilityArgs, RawObject};
use crate::npwg::ObjectRef;
use crate::request::{ClusterNetwork, NodeConfig};

/// What the runtime says about the pod.
#[derive(Debug, Default)]
pub(super) struct Inquiry {
    /// The pod in CNI_ARGS.
    pub(super) pod: Option<PodName>,
    /// The pod's annotations, if the runtime passes them in `runtimeConfig`. The runtime gets them
    /// from kubelet.
    pub(super) annotations: Option<PodAnnotations>,
    is_static: bool,
}

impl Inquiry {
    /// Reads the data about the pod.
    ///
    /// # Errors
    /// If a part of the data is invalid.
    pub(super) fn of(context: &Context<'_>) -> Result<Inquiry, Failure> {
        let pod = pod_name(context)?;
        Ok(Inquiry::new(pod, runtime_annotations(context)?))
    }

    /// Reads the data about the pod and ignores invalid parts.
    pub(super) fn legible(context: &Context<'_>) -> Inquiry {
        let pod = pod_name(context).ok().flatten();
        Inquiry::new(pod, runtime_annotations(context).ok().flatten())
    }

    fn new(pod: Option<PodName>, kubelets: Option<BTreeMap<String, String>>) -> Inquiry {
        let uid = pod.as_ref().and_then(|pod| pod.uid.as_deref());
        let is_static = |kubelets| identity::is_static(uid, kubelets);
        Inquiry {
            is_static: kubelets.as_ref().is_some_and(is_static),
            annotations: kubelets.as_ref().map(PodAnnotations::from_map),
            pod,
        }
    }

    /// Returns the question for the cluster, or `None` if the call does not need the cluster. The
    /// call does not need the cluster if both of these conditions are met:
    ///
    /// - Jackfield can read all networks in the node configuration without asking the cluster
    ///   ([`are_on_disk`]).
    /// - The call has no pod, or passes annotations that select no network.
    pub(super) fn question(&self, context: &Context<'_>, patience: Duration) -> Option<Question> {
        let config = &context.request.config;
        let selects_nothing = self.annotations == Some(PodAnnotations::default());
        if are_on_disk(config) && (self.pod.is_none() || selects_nothing) {
            return None;
        }
        Some(Question {
            pod: self.pod.clone(),
            annotations: self.annotations.as_ref().map(PodAnnotations::to_ask_about),
            is_static: self.is_static,
            networks: administrators_definitions(config),
            multus_namespace: config.multus_namespace.clone(),
            dialect: config.dialect,
            kubelet: Some(config.pod_resources_socket.clone()),
            differing: false,
            parts: false,
            patience,
        })
    }

    /// Checks that the pod in the answer has the UID that the runtime passed. A call may be about a
    /// deleted pod while a new pod has the same name.
    ///
    /// # Errors
    /// If the UIDs differ.
    pub(super) fn check_identity(&self, answer: &Answer) -> Result<(), Failure> {
        let (Some(pod), Some(clusters)) = (&self.pod, &answer.pod) else {
            return Ok(());
        };
        match (&pod.uid, &clusters.uid) {
            (Some(asked), Some(known)) if asked != known => Err(Failure::OtherPod {
                pod: format!("{}/{}", pod.namespace, pod.name),
                asked: asked.clone(),
                known: known.clone(),
            }),
            _ => Ok(()),
        }
    }
}

/// Asks the cluster and waits for the answer. `until` is the deadline. Returns an empty answer if
/// there is no question.
///
/// # Errors
/// If the cluster does not answer, or answers with an error.
pub(super) fn ask(
    context: &Context<'_>,
    question: Option<&Question>,
    until: Instant,
) -> Result<Answer, Failure> {
    let Some(question) = question else {
        return Ok(Answer::default());
    };
    let stopwatch = context.host.stopwatch;
    let ask = || context.host.cluster.ask(question, until);
    let answered = stopwatch.during(Phase::Question, ask);
    stopwatch.agent_answered(!answered.as_ref().is_err_and(ClusterError::is_transient));
    Ok(answered?)
}

/// Returns the pod in CNI_ARGS. A runtime without Kubernetes passes no pod.
///
/// # Errors
/// If the namespace or the name is not valid.
pub(super) fn pod_name(context: &Context<'_>) -> Result<Option<PodName>, Failure> {
    let args = &context.request.call.args;
    let text = |key: &str| args.get(key).filter(|value| !value.is_empty());
    let (Some(namespace), Some(name)) = (text("K8S_POD_NAMESPACE"), text("K8S_POD_NAME")) else {
        return Ok(None);
    };
    // Namespace and name become part of file paths and API requests, so check them here.
    ObjectRef::new(namespace, name).map_err(Failure::PodName)?;
    Ok(Some(PodName {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: text("K8S_POD_UID").map(str::to_owned),
    }))
}

/// Reads the capability arguments of the runtime.
///
/// # Errors
/// If `runtimeConfig` is not an object.
pub(super) fn runtime_config(context: &Context<'_>) -> Result<CapabilityArgs, Failure> {
    Ok(CapabilityArgs::from(&runtime_object(context)?))
}

fn runtime_annotations(context: &Context<'_>) -> Result<Option<BTreeMap<String, String>>, Failure> {
    let annotations = runtime_object(context)?.read(POD_ANNOTATIONS);
    annotations.map_err(Failure::RuntimeConfig)
}

fn runtime_object(context: &Context<'_>) -> Result<RawObject, Failure> {
    let object = context.request.stdin.read::<RawObject>("runtimeConfig");
    Ok(object.map_err(Failure::RuntimeConfig)?.unwrap_or_default())
}

/// Whether Jackfield can read all networks in the node configuration without asking the cluster:
/// [`is_on_disk`] is true for the cluster network, and `defaultNetworks` is empty.
pub(super) fn are_on_disk(config: &NodeConfig) -> bool {
    is_on_disk(&config.cluster_network) && config.default_networks.is_empty()
}

/// Whether the node configuration contains the cluster network's configuration or a path to it, so
/// that Jackfield need not ask the cluster.
pub(super) fn is_on_disk(network: &ClusterNetwork) -> bool {
    match network {
        ClusterNetwork::Named(name) => name.starts_with('/'),
        ClusterNetwork::Inline(_) => true,
    }
}
