//! What is known of a pod once the cluster was asked, and what follows from it: its devices, its
//! plan.

use std::time::{Duration, Instant};

use super::Context;
use super::inquiry::Inquiry;
use crate::allocation::{Allocation, Sources, gather};
use crate::cluster::{Answer, Catalog, PodAnnotations, PodName, Question};
use crate::cni::CapabilityArgs;
use crate::journal::Key;
use crate::plan::{Inputs, Plan, plan};

/// What is known of a pod.
#[derive(Debug)]
pub(super) struct PodFacts {
    /// Its name, where the runtime gives one. Where that gives no UID, the cluster's: what is told
    /// later is about this very pod.
    pub(super) pod: Option<PodName>,
    annotations: PodAnnotations,
    /// What the cluster knows.
    pub(super) answer: Answer,
    catalog: Catalog,
}

impl PodFacts {
    /// What the runtime says, and the cluster's `answer`. kubelet's own annotations go before the
    /// cluster's.
    pub(super) fn of(context: &Context<'_>, inquiry: Inquiry, answer: Answer) -> PodFacts {
        let clusters = answer.pod.as_ref();
        let is_pod = inquiry.pod.is_some();
        let named = inquiry.pod.map(|pod| PodName {
            uid: pod.uid.or_else(|| clusters?.uid.clone()),
            ..pod
        });
        // Without a pod there is no namespace by which a selection could be restricted.
        let annotations = || Some(clusters?.annotations.clone()).filter(|_| is_pod);
        PodFacts {
            pod: named,
            annotations: inquiry.annotations.or_else(annotations).unwrap_or_default(),
            catalog: Catalog::build(&context.request.config, &answer),
            answer,
        }
    }

    /// What kubelet gave the pod, where one of its networks uses devices; nobody is asked otherwise.
    /// With a `question` it is waited until kubelet knows, and the question is asked again.
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
            None => Instant::now(),
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

    /// The plan for the attachment `key`.
    pub(super) fn plan(
        &self,
        context: &Context<'_>,
        key: &Key,
        allocation: &Allocation,
        runtime_config: CapabilityArgs,
    ) -> Plan {
        plan(Inputs {
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
        })
    }
}
