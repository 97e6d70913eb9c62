//! The labels of the metrics.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;

use device_info::printable;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// How many values of one label get their own series. All further values share the series with the
/// value [`OTHER`]. Without this limit, the names of definitions could fill the agent's memory.
pub(super) const MOST: usize = 256;
/// The longest value of a label, in bytes. The namespace and name of a definition fit.
const LONGEST: usize = 320;
/// The label value that replaces every value after the first [`MOST`].
pub(super) const OTHER: &str = "other";

/// The value of a label.
pub(super) type Label = Cow<'static, str>;
/// The labels of a series: name and value.
pub(super) type Labels<const N: usize> = [(&'static str, Label); N];
/// Counters with `N` labels each.
pub(super) type Counters<const N: usize> = Family<Labels<N>, Counter>;
/// Gauges with `N` labels each.
pub(super) type Gauges<const N: usize> = Family<Labels<N>, Gauge>;

/// Escapes and shortens an untrusted text for the value of a label.
pub(super) fn label(text: &str) -> Label {
    printable(text, LONGEST).into_owned().into()
}

/// The values that a label has had.
#[derive(Debug, Default)]
pub(super) struct LabelValues(RefCell<BTreeSet<Label>>);

impl LabelValues {
    /// Returns the label value for an untrusted text. If the label has already had [`MOST`] values,
    /// returns [`OTHER`] for a new value.
    pub(super) fn label(&self, text: &str) -> Label {
        let label = label(text);
        let mut known = self.0.borrow_mut();
        if known.len() >= MOST && !known.contains(&label) {
            return OTHER.into();
        }
        known.insert(label.clone());
        label
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_series_has_a_limit() {
        let known = LabelValues::default();
        let words: BTreeSet<Label> = (0..MOST * 4)
            .map(|number| known.label(&format!("a/n{number}")))
            .collect();
        assert_eq!(words.len(), MOST + 1);
        assert!(words.contains(OTHER));
        assert_eq!(known.label("a/n0"), "a/n0");
        assert_eq!(LabelValues::default().label("a\u{9b}\n"), r"a\u{9b}\n");
    }
}
