//! One pod: what its users and its runtime do.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::cluster::Cluster;
use super::container::Container;
use super::fault::{ADD_AND_DEL, DelegateFault, Fault};
use super::node::{Kind, Node};
use super::report::Report;
use super::selection::{Selection, annotation};
use super::status;
use super::story::{Act, End, Story};
use crate::lab::NETWORKS;

/// How often a runtime tries to attach a pod that something goes wrong with.
const ATTEMPTS: u32 = 10;
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a change is awaited. It may fail meanwhile, so this is no promise.
const CHANGED_WITHIN: Duration = Duration::from_secs(10);

/// The pod that a sandbox is of.
pub(super) struct OfPod<'a> {
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
    /// What the runtime passes on.
    pub(super) annotations: Option<Value>,
}

impl<'a> OfPod<'a> {
    /// The pod, whose annotations the runtime may pass on.
    pub(super) fn new(name: &'a str, uid: &'a str, passed: Option<&[Selection]>) -> OfPod<'a> {
        let annotations = passed.map(|selections| json!({NETWORKS: annotation(selections)}));
        OfPod {
            name,
            uid,
            annotations,
        }
    }
}

/// A pod that is attached.
pub(super) struct Pod<'a> {
    pub(super) node: &'a Node,
    pub(super) name: String,
    pub(super) number: u32,
    uid: String,
    /// What it selects now.
    pub(super) networks: Vec<Selection>,
    pub(super) container: Container<'a>,
    attempt: u32,
    passes_annotations: bool,
    /// Faults of its changes that may not have struck yet.
    armed: Vec<DelegateFault>,
}

impl<'a> Pod<'a> {
    /// Creates the pod of a story and attaches it. None if that does not succeed in time, which happens
    /// while the API server is away; nothing is left of it then.
    pub(super) fn begin(node: &'a Node, cluster: &dyn Cluster, story: &Story) -> Option<Pod<'a>> {
        let name = format!("p{}", story.number);
        let uid = cluster.create(&name, &story.networks);
        let passed = story.passes_annotations.then_some(&*story.networks);
        for attempt in 0..ATTEMPTS {
            let container = Container::new(node, &OfPod::new(&name, &uid, passed), attempt);
            let fault = story.add.as_ref().filter(|_| attempt == 0);
            if container.add(fault) {
                Report::count(&node.report.attached);
                return Some(Pod {
                    node,
                    name,
                    number: story.number,
                    uid,
                    networks: story.networks.clone(),
                    container,
                    attempt,
                    passes_annotations: story.passes_annotations,
                    armed: Vec::new(),
                });
            }
            container.del(None, story.del_has_netns);
            if fault.is_none() {
                thread::sleep(PAUSE);
            }
        }
        cluster.delete(&name);
        None
    }

    /// Something happens to the running pod.
    pub(super) fn act(&mut self, cluster: &dyn Cluster, act: &Act) {
        match act {
            Act::Pause(time) => thread::sleep(*time),
            Act::Status => self.node.status(),
            // An interrupted change leaves less than the record says, until the next one.
            Act::Check if self.container.was_changed() => {}
            Act::Check => self.container.check(),
            Act::Change {
                networks,
                fault,
                is_awaited,
                killed_after,
            } => {
                if let Some(fault) = fault {
                    self.node.arm(&self.container.name, fault);
                    self.armed.push(fault.clone());
                }
                if fault.is_some() || killed_after.is_some() {
                    self.container.takes_fault();
                }
                self.networks.clone_from(networks);
                self.container.changes();
                cluster.select(&self.name, networks);
                self.begin_change(*killed_after);
                if *is_awaited {
                    self.await_change();
                }
            }
        }
    }

    /// Starts the change as the runtime does, or as an administrator. Kills it after a while if that is
    /// given.
    fn begin_change(&self, killed_after: Option<Duration>) {
        if self.node.kind == Kind::Api {
            // The agent hears of the annotation a moment later; the runtime's next STATUS is soon.
            self.node.status();
            if let Some(after) = killed_after {
                thread::sleep(after);
                self.node.kill_change(&self.container.name);
            }
            return;
        }
        let mut change = self.node.reconcile(&self.name);
        if let Some(after) = killed_after {
            thread::sleep(after);
            if let Ok(None) = change.try_wait() {
                let _ = change.kill();
                self.node.report.fault("change killed");
            }
        }
        let _ = change.wait();
    }

    fn await_change(&self) {
        let until = Instant::now() + CHANGED_WITHIN;
        let expected = self.networks.len() + 1;
        while Instant::now() < until && !self.node.is_over() {
            if status::links(&self.container.id()).len() == expected {
                Report::count(&self.node.report.changed);
                break;
            }
            thread::sleep(Duration::from_millis(250));
        }
    }

    /// Nothing goes wrong with it any more.
    pub(super) fn disarm(&mut self) {
        for fault in self.armed.drain(..) {
            self.node.disarm(&self.container.name, &fault);
        }
    }

    /// Detaches the pod, as the story says.
    pub(super) fn end(mut self, cluster: &dyn Cluster, story: &Story) {
        self.disarm();
        let objects = || {
            let status = cluster.delete(&self.name);
            self.look_at(status.as_ref());
        };
        match story.end {
            End::Forgotten => {
                objects();
                self.container.lose();
                return;
            }
            End::ObjectFirst => objects(),
            End::ObjectLast => {}
        }
        match &story.del {
            Some(Fault::AddAndDel(after)) if story.end == End::ObjectLast => self.restart(*after),
            fault => self.container.del(fault.as_ref(), story.del_has_netns),
        }
        if story.end == End::ObjectLast {
            let status = cluster.delete(&self.name);
            self.look_at(status.as_ref());
        }
    }

    /// The pod gets another sandbox while this one is detached. Then both are.
    fn restart(&mut self, after: Duration) {
        let passed = self.passes_annotations.then_some(&*self.networks);
        let pod = OfPod::new(&self.name, &self.uid, passed);
        let next = Container::new(self.node, &pod, self.attempt + 1);
        thread::scope(|scope| {
            scope.spawn(|| self.container.del(None, true));
            thread::sleep(after);
            // The requested MACs may still be taken.
            next.try_add();
        });
        self.node.report.fault(ADD_AND_DEL);
        next.del(None, true);
    }

    /// The network-status at the pod's end is nobody else's.
    fn look_at(&self, status: Option<&Value>) {
        let foreign = status.and_then(|status| status::foreign(status, self.number));
        if let Some(entry) = foreign {
            let finding = format!("{}: network-status of another pod: {entry}", self.name);
            self.node.report.finding(finding);
        }
    }
}
