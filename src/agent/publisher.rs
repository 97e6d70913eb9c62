//! Making the writes that are owed: each as soon as it can be, none twice, none to another pod.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::rc::Rc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::Notify;
use tracing::{info, warn};

use super::knowledge::Knowledge;
use super::metrics::{Metrics, Outcome};
use super::pause::Pause;
use crate::cluster::api::{ApiError, NotPublished, Occasion, PodView, Published, publish};
use crate::cluster::{OwedWrite, OwedWrites, PodName, Publication};
use crate::journal::Journal;
use crate::npwg::ObjectRef;

/// Pods that are told at once.
const AT_ONCE: usize = 4;
/// How often the disk is looked at without a reminder: a plugin may have ended before it gave one.
const RESCAN: Duration = Duration::from_secs(15);
/// The longest pause while the API server is away.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The longest pause for a pod whose status the API server refuses.
const LONGEST_POD_PAUSE: Duration = Duration::from_secs(300);
/// The longest pause for a static pod whose mirror is not there.
const LONGEST_MIRROR_PAUSE: Duration = Duration::from_secs(30);

/// Writes what plugins owe the cluster.
#[derive(Debug)]
pub(super) struct Publisher {
    owed: OwedWrites,
    journal: Journal,
    /// What could not be kept on disk; it is lost with the agent.
    in_memory: RefCell<Vec<OwedWrite>>,
    kept: Cell<u64>,
    knowledge: Rc<Knowledge>,
    metrics: Rc<Metrics>,
    wake: Notify,
    /// Since the API server failed as a whole.
    away: Pause,
    refused: RefCell<BTreeMap<PodName, Rc<Pause>>>,
}

impl Publisher {
    pub(super) fn new(
        owed: OwedWrites,
        journal: Journal,
        knowledge: Rc<Knowledge>,
        metrics: Rc<Metrics>,
    ) -> Publisher {
        Publisher {
            owed,
            journal,
            in_memory: RefCell::default(),
            kept: Cell::new(0),
            knowledge,
            metrics,
            wake: Notify::new(),
            away: Pause::default(),
            refused: RefCell::default(),
        }
    }

    /// Something is owed.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// The API server was heard: no need to wait any longer.
    pub(super) fn api_server_is_back(&self) {
        if self.away.is_set() {
            self.away.clear();
            self.wake();
        }
    }

    /// Keeps what could not be kept on disk.
    pub(super) fn keep(&self, publication: Publication) {
        let number = self.kept.get();
        self.kept.set(number + 1);
        self.in_memory.borrow_mut().push(OwedWrite {
            file: format!("memory-{}-{number}", std::process::id()),
            publication,
        });
    }

    /// Makes writes for ever.
    pub(super) async fn run(self: Rc<Self>) {
        loop {
            let pods = self.owed_by_pod();
            self.metrics.owed(pods.values().map(Vec::len).sum());
            self.refused
                .borrow_mut()
                .retain(|pod, _| pods.contains_key(pod));
            if self.away.is_over() {
                futures_util::stream::iter(pods)
                    .for_each_concurrent(AT_ONCE, |(pod, writes)| self.tell(pod, writes))
                    .await;
            }
            self.metrics
                .owed(self.owed_by_pod().values().map(Vec::len).sum());
            tokio::select! {
                () = self.wake.notified() => {}
                () = tokio::time::sleep(self.next()) => {}
            }
        }
    }

    /// What is owed, each pod's oldest first.
    fn owed_by_pod(&self) -> BTreeMap<PodName, Vec<OwedWrite>> {
        let (mut writes, broken) = self.owed.list().unwrap_or_else(|error| {
            let dir = self.owed.dir().display();
            warn!("owed writes: {dir}: {error}; make it readable to root");
            Default::default()
        });
        for line in broken {
            warn!("an owed write cannot be read: {line}");
        }
        writes.extend(self.in_memory.borrow().iter().cloned());
        let mut pods: BTreeMap<PodName, Vec<OwedWrite>> = BTreeMap::new();
        for write in writes {
            pods.entry(write.publication.pod.clone())
                .or_default()
                .push(write);
        }
        pods.values_mut()
            .for_each(|writes| only_the_newest_status(writes));
        pods
    }

    async fn tell(&self, pod: PodName, writes: Vec<OwedWrite>) {
        let pause = self.refused.borrow().get(&pod).cloned();
        if pause.is_some_and(|pause| !pause.is_over()) || !self.away.is_over() {
            return;
        }
        for write in writes {
            let view = self.known(&pod);
            let server = self.knowledge.server();
            let occasion = Occasion {
                node: &self.knowledge.node,
                period: &write.period(),
            };
            match publish(&server, view.as_ref(), &write.publication, occasion).await {
                // As long as it runs, its mirror may come.
                Ok(Published::NoMirror) if self.journal.has_pod(&pod) => {
                    let cause = "its mirror pod is not in the cluster yet";
                    return self.pause(pod, LONGEST_MIRROR_PAUSE, &cause);
                }
                Ok(published) => {
                    self.away.clear();
                    self.made(&pod, &write, published);
                }
                Err(NotPublished::Status(error) | NotPublished::Events(error)) => {
                    if error.code() == Some(401) {
                        self.knowledge.renew().await;
                    }
                    return self.failed(pod, &error);
                }
            }
        }
        self.refused.borrow_mut().remove(&pod);
    }

    fn known(&self, pod: &PodName) -> Option<PodView> {
        let name = ObjectRef::new(&pod.namespace, &pod.name).ok()?;
        self.knowledge
            .cache
            .pods
            .get(&name)
            .map(|view| PodView::clone(&view))
    }

    fn made(&self, pod: &PodName, write: &OwedWrite, published: Published) {
        match published {
            Published::Told => {
                self.metrics.published(Outcome::Told);
                let statuses = write.publication.status.as_ref().map_or(0, Vec::len);
                let (pod, events) = (pod.to_string(), write.publication.events.len());
                info!(pod, phase = "publish", statuses, events, "told");
            }
            Published::PodGone | Published::NoMirror => {
                self.metrics.published(Outcome::PodGone);
                let uid = pod.uid.as_deref();
                info!(
                    pod = pod.to_string(),
                    uid,
                    phase = "publish",
                    "the pod is gone: nobody is told"
                );
            }
        }
        self.in_memory
            .borrow_mut()
            .retain(|kept| kept.file != write.file);
        if let Err(error) = self.owed.forget(&write.file) {
            // It is told again then, which changes nothing: the status is the same by now, and
            // the event has the same name.
            warn!(
                "owed write {} cannot be removed: {error}; make it writable to root",
                write.file
            );
        }
    }

    fn failed(&self, pod: PodName, error: &ApiError) {
        if !error.is_general() {
            return self.pause(pod, LONGEST_POD_PAUSE, error);
        }
        let least = match error {
            ApiError::Refused { retry_after, .. } => retry_after.unwrap_or_default(),
            _ => Duration::ZERO,
        };
        let pause = self.away.lengthen(LONGEST_PAUSE, least);
        self.still_owed(&pod, pause, error);
    }

    /// One pod cannot be told of; the others can.
    fn pause(&self, pod: PodName, longest: Duration, cause: &dyn Display) {
        let mut refused = self.refused.borrow_mut();
        let pause = Rc::clone(refused.entry(pod.clone()).or_default());
        let pause = pause.lengthen(longest, Duration::ZERO);
        self.still_owed(&pod, pause, cause);
    }

    fn still_owed(&self, pod: &PodName, pause: Duration, cause: &dyn Display) {
        self.metrics.published(Outcome::Failed);
        let (pod, seconds) = (pod.to_string(), pause.as_secs_f32());
        warn!(
            pod,
            phase = "publish",
            "still owed, tried again in {seconds:.1} s: {cause}"
        );
    }

    /// How long nothing is to be done.
    fn next(&self) -> Duration {
        let refused = self.refused.borrow();
        let pauses = refused.values().map(|pause| pause.left());
        let away = self.away.is_set().then(|| self.away.left());
        pauses
            .chain(away)
            .min()
            .unwrap_or(RESCAN)
            .clamp(Duration::from_millis(50), RESCAN)
    }
}

/// Of several statuses of one pod only the newest is told; events are, each.
fn only_the_newest_status(writes: &mut [OwedWrite]) {
    let newest = writes
        .iter()
        .rposition(|write| write.publication.status.is_some());
    for (index, write) in writes.iter_mut().enumerate() {
        if Some(index) != newest {
            write.publication.status = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_statuses_the_newest_is_told_and_of_the_events_each() {
        let write = |file: &str, status: bool| OwedWrite {
            file: file.into(),
            publication: Publication {
                pod: PodName {
                    namespace: "a".into(),
                    name: "b".into(),
                    uid: None,
                },
                status: status.then(Vec::new),
                events: Vec::new(),
            },
        };
        let mut writes = [write("1", true), write("2", true), write("3", false)];
        only_the_newest_status(&mut writes);
        let told: Vec<bool> = writes
            .iter()
            .map(|w| w.publication.status.is_some())
            .collect();
        assert_eq!(told, [false, true, false]);
    }
}
