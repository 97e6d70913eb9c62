//! The metrics of the agent, for Prometheus (`docs/metrics.md`).

mod calls;
mod doctor;
mod exposition;
mod labels;
mod process;

use std::time::{Duration, Instant};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use super::cache::Cache;
use crate::cluster::{Examination, Figures};
use crate::cni::Verb;
use crate::kubelet::Usage;
use calls::Calls;
use doctor::Doctor;
pub(crate) use exposition::Exposition;
use labels::{
    BuildLabels, DeviceLabels, KindLabels, LookupLabels, PublicationLabels, QuestionLabels,
    StateLabels, UnrestoredLabels,
};
pub(super) use labels::{LookupKind, LookupOrigin, PublicationOutcome};
use process::Process;

/// The agent's counters and gauges.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    questions: Family<QuestionLabels, Counter>,
    answer_time: Histogram,
    refused: Counter,
    lookups: Family<LookupLabels, Counter>,
    publications: Family<PublicationLabels, Counter>,
    owed: Gauge,
    cached: Family<KindLabels, Gauge>,
    cache_age: Family<KindLabels, Gauge>,
    attachments: Gauge,
    detachments: Gauge,
    unrestored: Family<UnrestoredLabels, Gauge>,
    devices: Family<DeviceLabels, Gauge>,
    synced: Counter,
    watch_failures: Family<KindLabels, Counter>,
    absences: Counter,
    absent: Counter,
    installation: Family<StateLabels, Gauge>,
    calls: Calls,
    doctor: Doctor,
}

impl Metrics {
    /// Metrics at zero.
    pub(super) fn new() -> Metrics {
        let mut metrics = Metrics {
            registry: Registry::default(),
            questions: Family::default(),
            // 50 µs to 1.6 s.
            answer_time: Histogram::new(exponential_buckets(0.000_05, 2.0, 16)),
            refused: Counter::default(),
            lookups: Family::default(),
            publications: Family::default(),
            owed: Gauge::default(),
            cached: Family::default(),
            cache_age: Family::default(),
            attachments: Gauge::default(),
            detachments: Gauge::default(),
            unrestored: Family::default(),
            devices: Family::default(),
            synced: Counter::default(),
            watch_failures: Family::default(),
            absences: Counter::default(),
            absent: Counter::default(),
            installation: Family::default(),
            calls: Calls::default(),
            doctor: Doctor::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        self.registry.register_collector(Box::new(Process::start()));
        let registry = self.registry.sub_registry_with_prefix("jackfield");
        let build = Family::<BuildLabels, Gauge>::default();
        build.get_or_create(&BuildLabels::ours()).set(1);
        registry.register("build_info", "Release of the agent; the value is 1", build);
        registry.register(
            "questions",
            "Questions that plugins asked",
            self.questions.clone(),
        );
        registry.register_with_unit(
            "answer",
            "Time to answer a question",
            Unit::Seconds,
            self.answer_time.clone(),
        );
        registry.register(
            "refused_messages",
            "Messages that the agent refused",
            self.refused.clone(),
        );
        registry.register("lookups", "Objects looked up", self.lookups.clone());
        registry.register(
            "publications",
            "Writes to the API server, by outcome",
            self.publications.clone(),
        );
        registry.register(
            "owed_writes",
            "Writes to the API server still owed",
            self.owed.clone(),
        );
        registry.register(
            "cached_objects",
            "Objects that the agent keeps",
            self.cached.clone(),
        );
        registry.register_with_unit(
            "cache_age",
            "Time since the watch last brought a change",
            Unit::Seconds,
            self.cache_age.clone(),
        );
        registry.register(
            "attachments",
            "Sandboxes on record, each with all its networks, as the last call counted them",
            self.attachments.clone(),
        );
        registry.register(
            "owed_detachments",
            "Detachments still owed, as the last call counted them",
            self.detachments.clone(),
        );
        registry.register(
            "unrestored_devices",
            "Devices that could not be restored after a pod, 1 each, as the last call found them",
            self.unrestored.clone(),
        );
        registry.register(
            "devices",
            "Devices of device plugins, as kubelet reports them",
            self.devices.clone(),
        );
        registry.register(
            "synced_records",
            "Journal records synced to disk",
            self.synced.clone(),
        );
        registry.register(
            "watch_failures",
            "Watches that failed, failed restarts included",
            self.watch_failures.clone(),
        );
        registry.register(
            "agent_absences",
            "Periods in which calls found no agent",
            self.absences.clone(),
        );
        registry.register_with_unit(
            "agent_absence",
            "Total time in which calls found no agent",
            Unit::Seconds,
            self.absent.clone(),
        );
        registry.register(
            "installation",
            "State of the installation on this node, as the installer last reported it",
            self.installation.clone(),
        );
        self.calls.register(registry);
        self.doctor.register(registry);
    }

    /// Sets the findings of `doctor`.
    pub(super) fn examined(&self, examination: &Examination) {
        self.doctor.ran(examination);
    }

    /// Sets the state of the installation, in one series.
    pub(super) fn installation(&self, state: &str) {
        self.installation.clear();
        let state = calls::label(state).into_owned();
        self.installation
            .get_or_create(&StateLabels { state })
            .set(1);
    }

    /// Counts a failed watch.
    pub(super) fn watch_failed(&self, kind: &'static str) {
        self.watch_failures
            .get_or_create(&KindLabels { kind })
            .inc();
    }

    /// Counts a finished call of the plugin.
    pub(super) fn over(&self, figures: &Figures) {
        self.calls.count(figures);
        if let Some(seconds) = figures.agent_silent {
            self.absences.inc();
            self.absent.inc_by(seconds);
        }
        if let Some(on_record) = &figures.on_record {
            self.unrestored.clear();
            for device in on_record.unrestored.iter().take(calls::MOST) {
                let device = calls::label(device).into_owned();
                let labels = UnrestoredLabels { device };
                self.unrestored.get_or_create(&labels).set(1);
            }
            self.attachments.set(gauge(on_record.attachments));
            self.detachments.set(gauge(on_record.owed));
        } else if figures.verb == Verb::Add.as_str() && figures.code == 0 {
            self.attachments.inc();
        }
    }

    /// The counter of records that are on the disk.
    pub(super) fn synced(&self) -> Counter {
        self.synced.clone()
    }

    pub(super) fn answered(&self, answered: bool, time: Duration) {
        self.questions
            .get_or_create(&QuestionLabels { answered })
            .inc();
        self.answer_time.observe(time.as_secs_f64());
    }

    pub(super) fn refused(&self) {
        self.refused.inc();
    }

    pub(super) fn looked_up(&self, what: LookupKind, from: LookupOrigin) {
        self.lookups
            .get_or_create(&LookupLabels {
                what: what.label(),
                from: from.label(),
            })
            .inc();
    }

    pub(super) fn published(&self, outcome: PublicationOutcome) {
        self.publications
            .get_or_create(&PublicationLabels {
                outcome: outcome.label(),
            })
            .inc();
    }

    pub(super) fn owed(&self, writes: usize) {
        self.owed.set(gauge(writes));
    }

    /// The whole page, with the devices that kubelet reports.
    pub(super) fn page(&self, cache: &Cache, devices: &[Usage], form: Exposition) -> String {
        self.devices.clear();
        for usage in devices {
            let free = usage.all.saturating_sub(usage.in_use);
            for (state, count) in [("in use", usage.in_use), ("free", free)] {
                let resource = calls::label(&usage.resource).into_owned();
                let labels = DeviceLabels { resource, state };
                self.devices.get_or_create(&labels).set(gauge(count));
            }
        }
        let (pods, definitions, slices) = (&cache.pods, &cache.definitions, &cache.slices);
        self.shelf("pod", pods.len(), pods.heard());
        self.shelf("definition", definitions.len(), definitions.heard());
        self.shelf("slice", slices.len(), slices.heard());
        form.of(&self.registry)
    }

    fn shelf(&self, kind: &'static str, count: usize, heard: Option<Instant>) {
        let labels = KindLabels { kind };
        self.cached.get_or_create(&labels).set(gauge(count));
        if let Some(heard) = heard {
            let age = Instant::now().duration_since(heard).as_secs();
            let age = i64::try_from(age).unwrap_or(i64::MAX);
            self.cache_age.get_or_create(&labels).set(age);
        }
    }
}

fn gauge(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
