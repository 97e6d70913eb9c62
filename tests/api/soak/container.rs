//! One sandbox of a pod, as the runtime treats it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::fault::{ADD_AND_DEL, DelegateFault, Fault, NETNS_DELETED, PLUGIN_KILLED, TWO_DELS};
use super::netns::Netns;
use super::node::Node;
use super::pod::OfPod;
use super::report::Report;
use super::status;
use crate::lab::{Outcome, Running, Sandbox};

/// How long a runtime repeats a DEL.
const DEL_WITHIN: Duration = Duration::from_secs(90);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(300);

/// A container and its network namespace.
pub(super) struct Container<'a> {
    node: &'a Node,
    netns: Netns,
    pub(super) name: String,
    pod: String,
    uid: String,
    annotations: Option<Value>,
    /// Whether something went wrong. A plugin that is killed halfway may leave a link in the network
    /// namespace.
    had_fault: AtomicBool,
    /// Whether its networks may have been changed. A change may meet a fault that is meant for a DEL.
    was_changed: AtomicBool,
}

impl<'a> Container<'a> {
    /// The sandbox number `attempt` of a pod. Makes its network namespace.
    pub(super) fn new(node: &'a Node, pod: &OfPod<'_>, attempt: u32) -> Container<'a> {
        let name = format!("{}-{attempt}", pod.name);
        Container {
            node,
            netns: node.spare.name(&node.container_id(&name)),
            name,
            pod: pod.name.to_owned(),
            uid: pod.uid.to_owned(),
            annotations: pod.annotations.clone(),
            had_fault: AtomicBool::new(false),
            was_changed: AtomicBool::new(false),
        }
    }

    /// What it is called by all, its network namespace too.
    pub(super) fn id(&self) -> String {
        self.node.container_id(&self.name)
    }

    /// ADD. Returns whether the pod is attached; if not, DEL must follow.
    pub(super) fn add(&self, fault: Option<&Fault>) -> bool {
        let _no_gc = self.node.no_gc();
        let since = Instant::now();
        if fault.is_some() {
            self.takes_fault();
        }
        let mut running = self.begin_add(delegate(fault));
        let report = &self.node.report;
        match fault {
            Some(Fault::PluginKilled(after)) => {
                thread::sleep(*after);
                kill(&mut running, report);
            }
            Some(Fault::NetnsDeleted(after)) => {
                thread::sleep(*after);
                self.netns.delete();
                running.wait();
                report.fault(NETNS_DELETED);
                return false;
            }
            Some(Fault::AddAndDel(after)) => {
                thread::sleep(*after);
                let del = self.start("DEL");
                running.wait();
                del.wait();
                report.fault(ADD_AND_DEL);
                return false;
            }
            Some(Fault::Delegate(_)) | None => {}
        }
        let outcome = running.wait();
        let is_attached = outcome.exit == Some(0);
        let struck = delegate(fault).filter(|fault| self.node.disarm(&self.name, fault));
        match (is_attached, struck) {
            (true, Some(fault)) => self.finding(&format!("ADD succeeds, but {fault:?}"), &outcome),
            // One that a signal ended was killed by this test.
            (false, None) if outcome.exit.is_some() && self.node.calm.was_there_since(since) => {
                self.finding("ADD fails without a fault", &outcome);
            }
            _ => {}
        }
        is_attached
    }

    /// Starts an ADD. From now on the runtime knows the sandbox.
    fn begin_add(&self, fault: Option<&DelegateFault>) -> Running {
        if let Some(fault) = fault {
            self.node.arm(&self.name, fault);
        }
        self.node.list(&self.name);
        self.start("ADD")
    }

    /// ADD, which may fail.
    pub(super) fn try_add(&self) {
        let _no_gc = self.node.no_gc();
        self.takes_fault();
        self.begin_add(None).wait();
    }

    /// DEL as often as it takes. Then the runtime forgets the sandbox.
    pub(super) fn del(&self, fault: Option<&Fault>, has_netns: bool) {
        if !has_netns {
            self.netns.delete();
        }
        if let Some(fault) = fault {
            self.faulty_del(fault);
        }
        let until = Instant::now() + DEL_WITHIN;
        loop {
            let no_gc = self.node.no_gc();
            let outcome = self.start("DEL").wait();
            if outcome.exit == Some(0) {
                self.node.forget(&self.name);
                break;
            }
            drop(no_gc);
            self.finding("DEL fails without a fault", &outcome);
            if Instant::now() > until {
                break;
            }
            thread::sleep(PAUSE);
        }
        if !has_netns || fault.is_some() || self.had_fault.load(Ordering::Relaxed) {
            self.netns.delete();
        } else {
            let left = status::links(&self.id());
            if !left.is_empty() {
                let finding = format!("{}: the DEL leaves {left:?}", self.name);
                self.node.report.finding(finding);
            }
            self.node.spare.take_back(&self.netns);
        }
    }

    /// A DEL that something happens to.
    fn faulty_del(&self, fault: &Fault) {
        let _no_gc = self.node.no_gc();
        let report = &self.node.report;
        let delegate = delegate(Some(fault));
        if let Some(fault) = delegate {
            self.node.arm(&self.name, fault);
        }
        let mut running = self.start("DEL");
        match fault {
            Fault::PluginKilled(after) => {
                thread::sleep(*after);
                kill(&mut running, report);
            }
            Fault::NetnsDeleted(after) => {
                thread::sleep(*after);
                self.netns.delete();
                report.fault(NETNS_DELETED);
            }
            Fault::AddAndDel(after) => {
                thread::sleep(*after);
                let other = self.start("DEL").wait();
                report.fault(TWO_DELS);
                if other.exit != Some(0) {
                    self.finding("DEL fails beside another DEL", &other);
                }
            }
            Fault::Delegate(_) => {}
        }
        let outcome = running.wait();
        let struck = delegate.filter(|fault| self.node.disarm(&self.name, fault));
        let struck = struck.filter(|_| !self.was_changed());
        if let (Some(0), Some(fault)) = (outcome.exit, struck) {
            self.finding(&format!("DEL succeeds, but {fault:?}"), &outcome);
        }
    }

    /// Its network namespace is for no other sandbox.
    pub(super) fn takes_fault(&self) {
        self.had_fault.store(true, Ordering::Relaxed);
    }

    /// Its networks change, from now on or soon.
    pub(super) fn changes(&self) {
        self.was_changed.store(true, Ordering::Relaxed);
    }

    /// Whether they may have changed.
    pub(super) fn was_changed(&self) -> bool {
        self.was_changed.load(Ordering::Relaxed)
    }

    /// CHECK, which must succeed.
    pub(super) fn check(&self) {
        let outcome = self.start("CHECK").wait();
        if outcome.exit != Some(0) {
            self.finding("CHECK fails", &outcome);
        }
    }

    /// The runtime loses it: no DEL comes, and the next GC does not name it.
    pub(super) fn lose(&self) {
        self.netns.delete();
        self.node.forget(&self.name);
        self.node.report.fault("sandbox forgotten");
    }

    fn start(&self, verb: &str) -> Running {
        let sandbox = Sandbox {
            container: &self.name,
            pod: &self.pod,
            uid: &self.uid,
            annotations: self.annotations.clone(),
        };
        self.node.lab.start(verb, &sandbox)
    }

    fn finding(&self, what: &str, outcome: &Outcome) {
        let (name, took) = (&self.name, outcome.took.as_secs_f64());
        let finding = format!("{name}: {what}, after {took:.1} s: {outcome}");
        self.node.report.finding(finding);
    }
}

fn delegate(fault: Option<&Fault>) -> Option<&DelegateFault> {
    match fault {
        Some(Fault::Delegate(fault)) => Some(fault),
        _ => None,
    }
}

/// Kills a plugin, if it still runs.
fn kill(running: &mut Running, report: &Report) {
    if let Ok(None) = running.child.try_wait() {
        let _ = running.child.kill();
        report.fault(PLUGIN_KILLED);
    }
}
