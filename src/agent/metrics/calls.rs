//! Metrics of the runtime's calls to the plugin, and of the plugin's calls to delegates.

use std::time::Duration;

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::labels::{Counters, Label, LabelValues, Labels, OTHER};
use super::{add, add_time, count};
use crate::cluster::Figures;

type Times<const N: usize> = Family<Labels<N>, Histogram, fn() -> Histogram>;

/// The metrics of calls, of the networks in a call, and of the delegates that a call runs.
#[derive(Debug)]
pub(super) struct Calls {
    calls: Counters<2>,
    times: Times<1>,
    operations: Counters<3>,
    phases: Times<2>,
    delegates: Counters<3>,
    delegate_times: Times<2>,
    verbs: LabelValues,
    networks: LabelValues,
    words: LabelValues,
    plugins: LabelValues,
}

impl Calls {
    /// Adds the metrics to the registry.
    pub(super) fn new(registry: &mut Registry) -> Calls {
        Calls {
            calls: add(
                registry,
                "calls",
                "Calls that the runtime made to the plugin, and changes of running pods (verb RECONCILE), by CNI code; 0 is success",
            ),
            times: add_times(
                registry,
                "call",
                "Time from the start of a call to its answer",
            ),
            operations: add(
                registry,
                "operations",
                "Operations on attachments; for GC and STATUS, operations on networks. The label `network` has a separate value for each of the first 256 networks that the agent counts after its start. All further networks, and networks without a usable definition, share the value `other`",
            ),
            phases: add_times(registry, "phase", "Time that a call spent on one phase"),
            delegates: add(
                registry,
                "delegate_calls",
                "Calls that the plugin made to delegates",
            ),
            delegate_times: add_times(registry, "delegate", "Time that a delegate took for a call"),
            verbs: LabelValues::default(),
            networks: LabelValues::default(),
            words: LabelValues::default(),
            plugins: LabelValues::default(),
        }
    }

    /// Counts one call.
    pub(super) fn count(&self, figures: &Figures) {
        let verb = ("verb", self.verbs.label(&figures.verb));
        let code = ("code", figures.code.to_string().into());
        count(&self.calls, [verb.clone(), code]);
        observe(&self.times, [verb.clone()], figures.took);
        for of in &figures.phases {
            let phase = ("phase", self.words.label(&of.phase));
            observe(&self.phases, [verb.clone(), phase], of.took);
        }
        for of in &figures.networks {
            let network = match of.is_unknown {
                true => OTHER.into(),
                false => self.networks.label(&of.network),
            };
            let operation = [verb.clone(), ("network", network), result(of.done)];
            count(&self.operations, operation);
        }
        for of in &figures.plugins {
            let plugin = ("plugin", self.plugins.label(&of.plugin));
            let verb = ("verb", self.verbs.label(&of.verb));
            let call = [plugin.clone(), verb.clone()];
            observe(&self.delegate_times, call, of.took);
            count(&self.delegates, [plugin, verb, result(of.done)]);
        }
    }
}

fn add_times<const N: usize>(registry: &mut Registry, name: &str, help: &str) -> Times<N> {
    // The buckets reach from 100 µs to 105 s. An ADD ends within 100 s by default.
    let times = || Histogram::new(exponential_buckets(0.000_1, 2.0, 21));
    add_time(registry, name, help, Family::new_with_constructor(times))
}

fn observe<const N: usize>(times: &Times<N>, labels: Labels<N>, microseconds: u64) {
    let time = Duration::from_micros(microseconds);
    times.get_or_create(&labels).observe(time.as_secs_f64());
}

fn result(done: bool) -> (&'static str, Label) {
    ("result", if done { "done" } else { "failed" }.into())
}
