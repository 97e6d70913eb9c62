//! The metrics of the agent, for Prometheus (`docs/metrics.md`).

mod calls;
mod doctor;
mod exposition;
mod labels;
mod process;

use std::time::{Duration, Instant};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry, Unit};

use super::cache::Cache;
use crate::cluster::{Examination, Figures};
use crate::cni::Verb;
use crate::kubelet::Usage;
use calls::Calls;
use doctor::Doctor;
pub(crate) use exposition::Exposition;
use labels::{Counters, Gauges, Labels, MOST, label};
use process::Process;

/// The metrics of the agent.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    questions: Counters<1>,
    answer_time: Histogram,
    /// Messages that the agent refused.
    pub(super) refused: Counter,
    lookups: Counters<2>,
    publications: Counters<1>,
    owed: Gauge,
    cached: Gauges<1>,
    cache_age: Gauges<1>,
    attachments: Gauge,
    detachments: Gauge,
    unrestored: Gauges<1>,
    devices: Gauges<2>,
    /// Journal records that the agent has synced to disk.
    pub(super) synced: Counter,
    watch_failures: Counters<1>,
    absences: Counter,
    absent: Counter,
    installation: Gauges<1>,
    changes: Histogram,
    calls: Calls,
    doctor: Doctor,
}

impl Metrics {
    /// Creates and registers all metrics.
    pub(super) fn new() -> Metrics {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Process::start()));
        let ours = registry.sub_registry_with_prefix("jackfield");
        let build = add(ours, "build_info", "Release of the agent; the value is 1");
        let version = ("version", env!("CARGO_PKG_VERSION").into());
        let arch = ("arch", std::env::consts::ARCH.into());
        set(&build, [version, arch], 1);
        // The upper bounds of the buckets are 50 µs to 1.6 s.
        let answer_times = Histogram::new(exponential_buckets(0.000_05, 2.0, 16));
        // The upper bounds of the buckets are 0.125 s to 17 minutes. STATUS starts most changes of
        // networks, and the runtime calls STATUS every few seconds. If a change fails, each retry
        // may wait for 5 minutes.
        let changes = Histogram::new(exponential_buckets(0.125, 2.0, 14));
        Metrics {
            questions: add(ours, "questions", "Questions that the plugin asked"),
            answer_time: add_time(ours, "answer", "Time to answer a question", answer_times),
            refused: add(ours, "refused_messages", "Messages that the agent refused"),
            lookups: add(ours, "lookups", "Objects that the agent looked up"),
            publications: add(ours, "publications", "Writes to the API server, by outcome"),
            owed: add(
                ours,
                "owed_writes",
                "Writes to the API server that the agent still has to make",
            ),
            cached: add(ours, "cached_objects", "Objects that the agent keeps"),
            cache_age: add_time(
                ours,
                "cache_age",
                "Time since the last list or event of the watch",
                Gauges::default(),
            ),
            attachments: add(
                ours,
                "attachments",
                "Sandboxes with attachments; several networks of a sandbox count once",
            ),
            detachments: add(
                ours,
                "owed_detachments",
                "Failed detachments that Jackfield still retries, as the plugin last counted them in the journal",
            ),
            unrestored: add(
                ours,
                "unrestored_devices",
                "Devices that Jackfield could not restore, as the plugin last read them from the journal; each device has a series with the value 1",
            ),
            devices: add(
                ours,
                "devices",
                "Devices of device plugins, as kubelet reports them",
            ),
            synced: add(
                ours,
                "synced_records",
                "Journal records that the agent synced to disk",
            ),
            watch_failures: add(
                ours,
                "watch_failures",
                "Failed watches, including failed restarts",
            ),
            absences: add(
                ours,
                "agent_absences",
                "Periods in which calls found no agent",
            ),
            absent: add_time(
                ours,
                "agent_absence",
                "Total time in which calls found no agent",
                Counter::default(),
            ),
            installation: add(
                ours,
                "installation",
                "State of the installation on this node, as the installer last reported it",
            ),
            changes: add_time(
                ours,
                "network_change",
                "Time from the change of a running pod's annotation to the change of its networks",
                changes,
            ),
            calls: Calls::new(ours),
            doctor: Doctor::new(ours),
            registry,
        }
    }

    /// Counts a change of the networks of a running pod. `took` is the time since the annotation
    /// changed.
    pub(super) fn changed(&self, took: Duration) {
        self.changes.observe(took.as_secs_f64());
    }

    /// Sets the number of findings of each check, after a run of `doctor`.
    pub(super) fn examined(&self, examination: &Examination) {
        self.doctor.ran(examination);
    }

    /// Sets the state of the installation. Removes the series of the previous state.
    pub(super) fn installation(&self, state: &str) {
        self.installation.clear();
        set(&self.installation, [("state", label(state))], 1);
    }

    /// Counts a failed watch.
    pub(super) fn watch_failed(&self, kind: &'static str) {
        count(&self.watch_failures, [("kind", kind.into())]);
    }

    /// Counts a finished call of the plugin.
    pub(super) fn over(&self, figures: &Figures) {
        self.calls.count(figures);
        if let Some(seconds) = figures.agent_silent {
            self.absences.inc();
            self.absent.inc_by(seconds);
        }
        // Only some calls count the records of the journal.
        if let Some(on_record) = &figures.on_record {
            self.unrestored.clear();
            for device in on_record.unrestored.iter().take(MOST) {
                set(&self.unrestored, [("device", label(device))], 1);
            }
            self.attachments.set(gauge(on_record.attachments));
            self.detachments.set(gauge(on_record.owed));
        } else if figures.code == 0 && figures.verb == Verb::Add.as_str() {
            self.attachments.inc();
        } else if figures.code == 0
            && figures.verb == Verb::Del.as_str()
            && !figures.networks.is_empty()
            && self.attachments.get() > 0
        {
            // A repeated DEL may have nothing to detach. Such a DEL does not change the gauge.
            self.attachments.dec();
        }
    }

    pub(super) fn answered(&self, answered: bool, time: Duration) {
        let answered = answered.to_string().into();
        count(&self.questions, [("answered", answered)]);
        self.answer_time.observe(time.as_secs_f64());
    }

    /// Counts the look-up of an object of the kind `what`. `from` is `cache` or `api`.
    pub(super) fn looked_up(&self, what: &'static str, from: &'static str) {
        let lookup = [("what", what.into()), ("from", from.into())];
        count(&self.lookups, lookup);
    }

    /// Counts an attempt to publish, with its outcome: `told` if the agent wrote the publication,
    /// `pod_gone` if its pod no longer exists, and `failed` if the publication is still owed.
    pub(super) fn published(&self, outcome: &'static str) {
        count(&self.publications, [("outcome", outcome.into())]);
    }

    pub(super) fn owed(&self, writes: usize) {
        self.owed.set(gauge(writes));
    }

    /// Returns the whole page, with the devices that kubelet reports.
    pub(super) fn page(&self, cache: &Cache, devices: &[Usage], form: Exposition) -> String {
        self.devices.clear();
        for usage in devices {
            let free = usage.all.saturating_sub(usage.in_use);
            for (state, count) in [("in use", usage.in_use), ("free", free)] {
                let resource = ("resource", label(&usage.resource));
                set(&self.devices, [resource, ("state", state.into())], count);
            }
        }
        let (pods, definitions, slices) = (&cache.pods, &cache.definitions, &cache.slices);
        self.cached("pod", pods.len(), pods.heard());
        self.cached("definition", definitions.len(), definitions.heard());
        self.cached("slice", slices.len(), slices.heard());
        form.of(&self.registry)
    }

    fn cached(&self, kind: &'static str, count: usize, heard: Option<Instant>) {
        let kind = [("kind", kind.into())];
        set(&self.cached, kind.clone(), count);
        if let Some(heard) = heard {
            set(&self.cache_age, kind, heard.elapsed().as_secs());
        }
    }
}

/// Adds a metric to the registry.
fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// Adds a metric in seconds to the registry.
fn add_time<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register_with_unit(name, help, Unit::Seconds, metric.clone());
    metric
}

/// Adds one to the counter with these labels.
fn count<const N: usize>(counters: &Counters<N>, labels: Labels<N>) {
    counters.get_or_create(&labels).inc();
}

/// Sets the gauge with these labels.
fn set<const N: usize>(gauges: &Gauges<N>, labels: Labels<N>, value: impl TryInto<i64>) {
    gauges.get_or_create(&labels).set(gauge(value));
}

fn gauge(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
