//! A pod whose networks Jackfield attaches. The suite calls Jackfield as a runtime does.

use std::cell::{Cell, RefCell};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::case::{Outcome, Stop, holds, present, same};
use crate::rig::command::run;
use crate::rig::{Cluster, Link, Netns};

/// A pod and its network namespace. Dropping it detaches it.
#[derive(Debug)]
pub(crate) struct Pod<'a> {
    cluster: &'a Cluster,
    name: &'static str,
    netns: RefCell<Option<Netns>>,
    attached: Cell<bool>,
}

/// Jackfield's answer.
struct Answer {
    failure: Option<(u64, String)>,
    took: Duration,
}

impl<'a> Pod<'a> {
    pub(super) fn new(cluster: &'a Cluster, name: &'static str) -> Result<Self, Stop> {
        Ok(Self {
            cluster,
            name,
            netns: RefCell::new(Some(Netns::add(name)?)),
            attached: Cell::new(false),
        })
    }

    /// Runs ADD, which must succeed. Returns its duration.
    pub(crate) fn add(&self) -> Result<Duration, Stop> {
        self.attached.set(true);
        self.succeeds("ADD")
    }

    /// Runs CHECK, which must succeed.
    pub(crate) fn check(&self) -> Outcome {
        self.succeeds("CHECK").map(drop)
    }

    /// Runs DEL, which must succeed. Returns its duration.
    pub(crate) fn del(&self) -> Result<Duration, Stop> {
        let took = self.succeeds("DEL")?;
        self.attached.set(false);
        Ok(took)
    }

    /// Runs a verb, which must fail with this code and these words in its message.
    pub(crate) fn is_refused(&self, verb: &str, code: u64, words: &[&str]) -> Outcome {
        if verb == "ADD" {
            self.attached.set(true);
        }
        let answer = self.call(verb)?;
        let (found, message) = present(format!("{verb}'s failure"), answer.failure)?;
        same(format!("{verb}'s code, with '{message}'"), found, code)?;
        for word in words {
            holds(
                format!("{verb}: '{word}' in: {message}"),
                message.contains(word),
            )?;
        }
        Ok(())
    }

    fn succeeds(&self, verb: &str) -> Result<Duration, Stop> {
        let answer = self.call(verb)?;
        match answer.failure {
            None => Ok(answer.took),
            Some((code, message)) => Err(Stop::failed(format!("{verb}: code {code}: {message}"))),
        }
    }

    fn call(&self, verb: &str) -> Result<Answer, Stop> {
        // containerd passes an empty path if the namespace is gone.
        let netns = match &*self.netns.borrow() {
            Some(netns) => format!("/run/netns/{}", netns.name()),
            None => String::new(),
        };
        let mut jackfield = Command::new(&self.cluster.jackfield);
        jackfield
            .env("CNI_COMMAND", verb)
            .env("CNI_CONTAINERID", self.name)
            .env("CNI_NETNS", netns)
            .env("CNI_IFNAME", "eth0")
            .env("CNI_PATH", &self.cluster.cni_bin)
            .env("CNI_ARGS", Cluster::args(self.name));
        let started = Instant::now();
        let ended = run(&mut jackfield, &self.cluster.configuration().to_string())
            .map_err(|cause| Stop::failed(format!("jackfield {verb}: {cause}")))?;
        let took = started.elapsed();
        if ended.status.success() {
            return Ok(Answer {
                failure: None,
                took,
            });
        }
        let error: Value = serde_json::from_str(&ended.out).map_err(|_| {
            Stop::failed(format!(
                "jackfield {verb}: {}: {} {}",
                ended.status, ended.out, ended.err
            ))
        })?;
        let message = format!(
            "{} {}",
            error["msg"].as_str().unwrap_or_default(),
            error["details"].as_str().unwrap_or_default()
        );
        Ok(Answer {
            failure: Some((error["code"].as_u64().unwrap_or(0), message)),
            took,
        })
    }

    /// Returns the entry of an interface in the pod's network-status.
    pub(crate) fn status(&self, interface: &str) -> Result<Value, Stop> {
        let entries = self.cluster.status(self.name)?;
        let mut entries = entries.into_iter();
        let entry = entries.find(|entry| entry["interface"] == interface);
        present(format!("{interface} in network-status"), entry)
    }

    /// Returns an interface of the pod, as netlink shows it.
    pub(crate) fn link(&self, interface: &str) -> Result<Link, Stop> {
        Link::show(self.netns.borrow().as_ref(), interface)
    }

    /// Runs a program in the pod.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<String, Stop> {
        let netns = self.netns.borrow();
        let netns = present("the pod's network namespace", netns.as_ref())?;
        Ok(netns.run(arguments)?)
    }

    /// Removes the network namespace before DEL, as some runtimes do.
    pub(crate) fn lose_netns(&self) {
        self.netns.borrow_mut().take();
    }
}

impl Drop for Pod<'_> {
    fn drop(&mut self) {
        if self.attached.get() {
            // The check of traces after each case finds what stays.
            let _ = self.call("DEL");
        }
    }
}
