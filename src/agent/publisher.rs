//! Publishes owed writes (the statuses and events that plugins left for the agent) as soon as
//! possible. Publishing a write twice changes nothing. A later pod with the same name gets none of
//! the writes for an earlier pod.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Display;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::Notify;
use tracing::{info, warn};

use super::knowledge::Knowledge;
use super::owed_by_pod::OwedByPod;
use super::pause::Pause;
use crate::cluster::api::{ApiError, EventContext, PublishOutcome, publish, publish_claims};
use crate::cluster::{OwedWrites, PodName, Publication};

/// The maximum number of pods for which the agent publishes writes at the same time.
const AT_ONCE: usize = 4;
/// The longest interval between scans of the directory of owed writes. A plugin that dies after it
/// wrote a file does not wake the agent, so the agent finds the file only in its next scan.
const RESCAN: Duration = Duration::from_secs(15);
/// The longest time for which the agent pauses all writes after the API server failed. Does not
/// limit a pause that the API server asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The longest pause for a pod whose writes the API server refuses.
const LONGEST_POD_PAUSE: Duration = Duration::from_secs(300);
/// The longest pause for a static pod without a mirror pod.
const LONGEST_MIRROR_PAUSE: Duration = Duration::from_secs(30);

/// Publishes the owed writes of plugins.
#[derive(Debug)]
pub(super) struct Publisher {
    /// The owed writes.
    pub(super) waiting: OwedByPod,
    knowledge: Rc<Knowledge>,
    wake: Notify,
    /// The pause of all writes after the API server failed.
    away: Pause,
    /// The pauses of pods whose writes the API server refused, or whose mirror pods are missing.
    refused: RefCell<BTreeMap<PodName, Pause>>,
}

impl Publisher {
    pub(super) fn new(owed: OwedWrites, knowledge: Rc<Knowledge>) -> Publisher {
        Publisher {
            waiting: OwedByPod::new(owed),
            knowledge,
            wake: Notify::new(),
            away: Pause::default(),
            refused: RefCell::default(),
        }
    }

    /// Makes [`Publisher::run`] look for owed writes at once.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Ends the pause of all writes, because the API server has answered. Does not end a pause that
    /// the API server asked for.
    pub(super) fn api_server_is_back(&self) {
        if self.away.is_set() && self.away.cut_short() {
            self.wake();
        }
    }

    /// Publishes owed writes and returns only on an error.
    ///
    /// # Errors
    /// If another process removed the directory of owed writes from the node. The agent's container
    /// then still mounts the removed directory, but plugins write to a new one.
    pub(super) async fn run(self: Rc<Self>) -> io::Result<Infallible> {
        self.knowledge.start.wait().await;
        loop {
            self.waiting.look().await?;
            self.knowledge.metrics.owed(self.waiting.len());
            let pods = self.waiting.pods();
            self.refused
                .borrow_mut()
                .retain(|pod, _| pods.contains(pod));
            if !self.away.is_on() {
                futures_util::stream::iter(pods)
                    .for_each_concurrent(AT_ONCE, |pod| self.publish(pod))
                    .await;
            }
            self.knowledge.metrics.owed(self.waiting.len());
            tokio::select! {
                () = self.wake.notified() => {}
                () = tokio::time::sleep(self.next()) => {}
            }
        }
    }

    async fn publish(&self, pod: PodName) {
        let is_refused = self.refused.borrow().get(&pod).is_some_and(Pause::is_on);
        if is_refused || self.away.is_on() {
            return;
        }
        let Some(due) = self.waiting.of(&pod).await else {
            return;
        };
        let metrics = &self.knowledge.metrics;
        match self.send(&due.publication, &due.period).await {
            Ok(PublishOutcome::Written) => {
                metrics.published("told");
                let statuses = due.publication.status().map_or(0, <[_]>::len);
                let (pod, events) = (pod.to_string(), due.publication.events().len());
                info!(pod, phase = "publish", statuses, events, "published");
            }
            Ok(PublishOutcome::PodGone) => {
                metrics.published("pod_gone");
                let (uid, pod) = (pod.uid.as_deref(), pod.to_string());
                info!(
                    pod,
                    uid,
                    phase = "publish",
                    "the pod is gone; the agent drops the pod's owed writes"
                );
            }
            // The mirror pod may appear later. If it never does, the DEL of the pod's last sandbox
            // drops the writes.
            Ok(PublishOutcome::NoMirror) => {
                let pause = self.pause(&pod, LONGEST_MIRROR_PAUSE);
                return self.still_owed(&pod, pause, &"the mirror pod is not in the cluster yet");
            }
            Err(error) => {
                self.knowledge.renew_after(&error).await;
                let pause = if error.is_general() {
                    self.away.lengthen(LONGEST_PAUSE, error.retry_after())
                } else {
                    self.pause(&pod, LONGEST_POD_PAUSE)
                };
                return self.still_owed(&pod, pause, &error);
            }
        }
        self.away.clear();
        self.refused.borrow_mut().remove(&pod);
        self.waiting.made(&due);
    }

    /// Sends a publication to the API server.
    async fn send(
        &self,
        publication: &Publication,
        period: &str,
    ) -> Result<PublishOutcome, ApiError> {
        let pod = publication.pod();
        let server = self.knowledge.server();
        let occasion = EventContext {
            node: &self.knowledge.node,
            period,
        };
        let mut outcome = PublishOutcome::Written;
        if !publication.is_of_claims_alone() {
            let view = self.knowledge.cached_pod(&pod.namespace, &pod.name);
            outcome = publish(&server, view.as_ref(), publication, occasion).await?;
        }
        if outcome != PublishOutcome::NoMirror {
            let is_gone = outcome == PublishOutcome::PodGone;
            publish_claims(&server, &self.knowledge.node, publication, is_gone).await?;
        }
        Ok(outcome)
    }

    /// Pauses the writes of one pod.
    fn pause(&self, pod: &PodName, longest: Duration) -> Duration {
        let mut refused = self.refused.borrow_mut();
        let pause = refused.entry(pod.clone()).or_default();
        pause.lengthen(longest, None)
    }

    fn still_owed(&self, pod: &PodName, pause: Duration, cause: &dyn Display) {
        self.knowledge.metrics.published("failed");
        let (pod, seconds) = (pod.to_string(), pause.as_secs_f32());
        warn!(
            pod,
            phase = "publish",
            "the writes are still owed; the agent retries in {seconds:.1} s: {cause}"
        );
    }

    /// Returns the time until the next attempt or scan.
    fn next(&self) -> Duration {
        let refused = self.refused.borrow();
        let pauses = refused.values().map(Pause::left);
        let away = self.away.is_set().then(|| self.away.left());
        pauses
            .chain(away)
            .min()
            .unwrap_or(RESCAN)
            .clamp(Duration::from_millis(50), RESCAN)
    }
}
