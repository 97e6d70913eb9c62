//! What the runtime says of the pod that it calls for, and what the cluster is asked because of it.

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
use crate::request::ClusterNetwork;

/// What the runtime says of the pod; the default is a call that names none.
#[derive(Debug, Default)]
pub(super) struct Inquiry {
    /// The pod by CNI_ARGS.
    pub(super) pod: Option<PodName>,
    /// Its annotations as kubelet has them, where the runtime hands them over.
    pub(super) annotations: Option<PodAnnotations>,
    is_static: bool,
}

impl Inquiry {
    /// What the call says.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn of(context: &Context<'_>) -> Result<Inquiry, Failure> {
        let pod = pod_name(context)?;
        Ok(Inquiry::new(pod, runtime_annotations(context)?))
    }

    /// What can be read of what the call says.
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

    /// What the cluster is asked, unless there is nothing to ask: a pod whose annotations came with
    /// the call and that selects nothing needs neither agent nor API.
    pub(super) fn question(&self, context: &Context<'_>, patience: Duration) -> Option<Question> {
        let config = &context.request.config;
        let selects_nothing = self.annotations == Some(PodAnnotations::default());
        if is_on_disk(&config.cluster_network)
            && (self.pod.is_none() || selects_nothing)
            && config.default_networks.is_empty()
        {
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
            parts: false,
            patience,
        })
    }

    /// CNI_ARGS are a hint: the pod of that name must be the one that the runtime means.
    ///
    /// # Errors
    /// When it is another one.
    pub(super) fn check_identity(&self, answer: &Answer) -> Result<(), Failure> {
        let asked = self.pod.as_ref().and_then(|pod| pod.uid.as_deref());
        let known = answer.pod.as_ref().and_then(|pod| pod.uid.as_deref());
        match (&self.pod, asked, known) {
            (Some(pod), Some(asked), Some(known)) if asked != known => Err(Failure::OtherPod {
                pod: format!("{}/{}", pod.namespace, pod.name),
                asked: asked.to_owned(),
                known: known.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// Asks the cluster by `until`, where there is something to ask.
///
/// # Errors
/// When it does not answer.
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

/// The pod by CNI_ARGS. A runtime without Kubernetes names none: the cluster network is all then.
///
/// # Errors
/// When no pod can be called that.
pub(super) fn pod_name(context: &Context<'_>) -> Result<Option<PodName>, Failure> {
    let args = &context.request.call.args;
    let text = |key: &str| args.get(key).filter(|value| !value.is_empty());
    let (Some(namespace), Some(name)) = (text("K8S_POD_NAMESPACE"), text("K8S_POD_NAME")) else {
        return Ok(None);
    };
    // Both become parts of paths and of requests.
    ObjectRef::new(namespace, name).map_err(Failure::PodName)?;
    Ok(Some(PodName {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: text("K8S_POD_UID").map(str::to_owned),
    }))
}

/// The runtime's own capability arguments.
///
/// # Errors
/// When they are no object.
pub(super) fn runtime_config(context: &Context<'_>) -> Result<CapabilityArgs, Failure> {
    Ok(CapabilityArgs::from(&runtime_object(context)?))
}

fn runtime_annotations(context: &Context<'_>) -> Result<Option<BTreeMap<String, String>>, Failure> {
    let annotations = runtime_object(context)?.read(POD_ANNOTATIONS);
    annotations.map_err(Failure::RuntimeConfig)
}

fn runtime_object(context: &Context<'_>) -> Result<RawObject, Failure> {
    let object = context.request.stdin.read::<RawObject>("runtimeConfig");
    object
        .map(Option::unwrap_or_default)
        .map_err(Failure::RuntimeConfig)
}

/// Whether the cluster network is found without asking anybody.
pub(super) fn is_on_disk(network: &ClusterNetwork) -> bool {
    match network {
        ClusterNetwork::Named(name) => name.starts_with('/'),
        ClusterNetwork::Inline(_) => true,
    }
}
