//! Metrics of the plugin's calls.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use device_info::printable;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::cluster::Figures;

/// How many networks, plugins and words have series of their own. Later ones are counted together as
/// [`OTHER`], so that names of definitions cannot fill the agent's memory.
pub(super) const MOST: usize = 256;
/// The longest value of a label, in bytes: a definition's namespace and name.
const LONGEST: usize = 320;
const OTHER: &str = "other";

type Label = Cow<'static, str>;
type Times<L> = Family<L, Histogram, fn() -> Histogram>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    verb: Label,
    code: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbLabels {
    verb: Label,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    verb: Label,
    network: Label,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabels {
    verb: Label,
    phase: Label,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DelegateLabels {
    plugin: Label,
    verb: Label,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PluginLabels {
    plugin: Label,
    verb: Label,
}

/// Counters and times of calls, networks and plugins.
#[derive(Debug)]
pub(super) struct Calls {
    calls: Family<CallLabels, Counter>,
    times: Times<VerbLabels>,
    operations: Family<OperationLabels, Counter>,
    phases: Times<PhaseLabels>,
    delegates: Family<DelegateLabels, Counter>,
    delegate_times: Times<PluginLabels>,
    verbs: LabelValues,
    networks: LabelValues,
    words: LabelValues,
    plugins: LabelValues,
}

impl Default for Calls {
    fn default() -> Self {
        Calls {
            calls: Family::default(),
            times: Family::new_with_constructor(times),
            operations: Family::default(),
            phases: Family::new_with_constructor(times),
            delegates: Family::default(),
            delegate_times: Family::new_with_constructor(times),
            verbs: LabelValues::default(),
            networks: LabelValues::default(),
            words: LabelValues::default(),
            plugins: LabelValues::default(),
        }
    }
}

/// From 100 µs to 105 s, which is past an ADD's longest deadline.
fn times() -> Histogram {
    Histogram::new(exponential_buckets(0.000_1, 2.0, 21))
}

impl Calls {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "calls",
            "Calls of the runtime, by CNI code; 0 is success",
            self.calls.clone(),
        );
        registry.register_with_unit(
            "call",
            "Time from the start of a call to its answer",
            Unit::Seconds,
            self.times.clone(),
        );
        registry.register(
            "operations",
            "Operations on attachments, by network; `other` where no definition was found",
            self.operations.clone(),
        );
        registry.register_with_unit(
            "phase",
            "Time that a call spent on one phase",
            Unit::Seconds,
            self.phases.clone(),
        );
        registry.register(
            "delegate_calls",
            "Calls of delegates",
            self.delegates.clone(),
        );
        registry.register_with_unit(
            "delegate",
            "Time that a delegate took for a call",
            Unit::Seconds,
            self.delegate_times.clone(),
        );
    }

    /// Counts one call.
    pub(super) fn count(&self, figures: &Figures) {
        let verb = self.verbs.word(&figures.verb);
        let code = figures.code;
        let call = CallLabels {
            verb: verb.clone(),
            code,
        };
        self.calls.get_or_create(&call).inc();
        let call = VerbLabels { verb: verb.clone() };
        self.times
            .get_or_create(&call)
            .observe(seconds(figures.took));
        for of in &figures.phases {
            let labels = PhaseLabels {
                verb: verb.clone(),
                phase: self.words.word(&of.phase),
            };
            self.phases.get_or_create(&labels).observe(seconds(of.took));
        }
        for of in &figures.networks {
            let labels = OperationLabels {
                verb: verb.clone(),
                network: match of.is_unknown {
                    true => OTHER.into(),
                    false => self.networks.word(&of.network),
                },
                result: result(of.done),
            };
            self.operations.get_or_create(&labels).inc();
        }
        for of in &figures.plugins {
            let (plugin, verb) = (self.plugins.word(&of.plugin), self.verbs.word(&of.verb));
            let labels = PluginLabels {
                plugin: plugin.clone(),
                verb: verb.clone(),
            };
            let time = self.delegate_times.get_or_create(&labels);
            time.observe(seconds(of.took));
            let labels = DelegateLabels {
                plugin,
                verb,
                result: result(of.done),
            };
            self.delegates.get_or_create(&labels).inc();
        }
    }
}

fn result(done: bool) -> &'static str {
    if done { "done" } else { "failed" }
}

fn seconds(microseconds: u64) -> f64 {
    Duration::from_micros(microseconds).as_secs_f64()
}

/// A foreign text as the value of a label.
pub(super) fn label(text: &str) -> Cow<'_, str> {
    printable(text, LONGEST)
}

/// The values that a label has had.
#[derive(Debug, Default)]
struct LabelValues(RefCell<BTreeSet<String>>);

impl LabelValues {
    fn word(&self, word: &str) -> Label {
        let word = label(word);
        let mut known = self.0.borrow_mut();
        if !known.contains(word.as_ref()) {
            if known.len() >= MOST {
                return OTHER.into();
            }
            known.insert(word.to_string());
        }
        word.into_owned().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_series_has_a_limit() {
        let known = LabelValues::default();
        let words: BTreeSet<Label> = (0..MOST * 4)
            .map(|number| known.word(&format!("a/n{number}")))
            .collect();
        assert_eq!(words.len(), MOST + 1);
        assert!(words.contains(OTHER));
        assert_eq!(known.word("a/n0"), "a/n0");
        assert_eq!(LabelValues::default().word("a\u{9b}\n"), r"a\u{9b}\n");
    }
}
