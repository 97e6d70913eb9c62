//! The facts that the runtime and the cluster provide about a pod. Jackfield derives the devices
//! and the plan of the pod from these facts.

use std::time::Duration;

use super::Context;
use super::inquiry::Inquiry;
use crate::allocation::{Allocation, Sources, gather};
use crate::clock;
use crate::cluster::{Answer, Catalog, PodAnnotations, PodName, Question};
use crate::cni::CapabilityArgs;
use crate::journal::{Header, Key};
use crate::plan::{Difference, Inputs, Plan, difference, plan};

/// The facts about a pod from the runtime and from the cluster.
#[derive(Debug)]
pub(super) struct PodFacts {
    /// The pod, if the runtime names it. The UID comes from the runtime, or otherwise from the
    /// cluster. The UID ensures that a later pod with the same name does not get this pod's status.
    pub(super) pod: Option<PodName>,
    /// The annotations that select the pod's networks.
    pub(super) annotations: PodAnnotations,
    /// The answer of the cluster.
    pub(super) answer: Answer,
    catalog: Catalog,
}

impl PodFacts {
    /// Combines the data from the runtime with the cluster's `answer`. Annotations from the runtime
    /// take precedence over annotations from the cluster.
    pub(super) fn of(context: &Context<'_>, inquiry: Inquiry, answer: Answer) -> PodFacts {
        let clusters = answer.pod.as_ref();
        let is_pod = inquiry.pod.is_some();
        let named = inquiry.pod.map(|pod| PodName {
            uid: pod.uid.or_else(|| clusters?.uid.clone()),
            ..pod
        });
        // If the runtime names no pod, the question to the cluster contains no pod. A faulty agent
        // may send a pod anyway. Ignore the annotations of that pod.
        let annotations = || Some(clusters?.annotations.clone()).filter(|_| is_pod);
        PodFacts {
            pod: named,
            annotations: inquiry.annotations.or_else(annotations).unwrap_or_default(),
            catalog: Catalog::build(&context.request.config, &answer),
            answer,
        }
    }

    /// Finds the devices that kubelet allocated to the pod, if one of the pod's networks may use
    /// devices. If `question` is given, [`gather`] may wait for kubelet and ask the question again.
    pub(super) fn allocation(
        &self,
        context: &Context<'_>,
        question: Option<Question>,
    ) -> Allocation {
        let config = &context.request.config;
        let namespace = self.pod.as_ref().map_or("", |pod| &pod.namespace);
        let selected =
            self.annotations
                .references(namespace, &config.multus_namespace, config.dialect);
        let resources = self.catalog.resources(&selected);
        let everything = self.annotations.may_name_devices();
        if resources.is_empty() && !everything {
            return Allocation::default();
        }
        let until = match question {
            Some(_) => context.deadline,
            None => clock::now(),
        };
        let sources = Sources {
            name: self.pod.as_ref(),
            pod: self.answer.pod.as_ref(),
            pod_resources: self.answer.kubelet.as_ref(),
            checkpoint: &context.request.config.kubelet_checkpoint,
            everything,
            until,
            deadline: context.deadline,
        };
        let question = question.map(|question| Question {
            patience: Duration::ZERO,
            ..question
        });
        gather(&sources, &resources, &mut || {
            let answer = context.host.cluster.ask(question.as_ref()?, until).ok()?;
            answer.kubelet
        })
    }

    /// The plan for the sandbox `key`.
    pub(super) fn plan(
        &self,
        context: &Context<'_>,
        key: &Key,
        allocation: &Allocation,
        runtime_config: CapabilityArgs,
    ) -> Plan {
        plan(self.inputs(context, key, allocation, runtime_config))
    }

    /// The changes that make the recorded attachments of a running pod match the pod's annotation.
    pub(super) fn difference(
        &self,
        context: &Context<'_>,
        header: &Header,
        allocation: &Allocation,
    ) -> Difference {
        let key = header.key();
        let inputs = self.inputs(context, &key, allocation, CapabilityArgs::default());
        difference(inputs, &header.attachments, header.networks.is_none())
    }

    fn inputs<'a>(
        &'a self,
        context: &'a Context<'_>,
        key: &'a Key,
        allocation: &'a Allocation,
        runtime_config: CapabilityArgs,
    ) -> Inputs<'a> {
        Inputs {
            config: &context.request.config,
            container: &key.container,
            ifname: &key.ifname,
            pod: self.pod.as_ref(),
            annotations: &self.annotations,
            answer: &self.answer,
            catalog: &self.catalog,
            allocation,
            until: context.deadline,
            runtime_config,
        }
    }
}
