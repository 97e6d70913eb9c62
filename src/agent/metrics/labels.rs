//! The labels of series.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;

use device_info::printable;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// How many networks, plugins and words have series of their own. Later ones are counted together as
/// [`OTHER`], so that names of definitions cannot fill the agent's memory.
pub(super) const MOST: usize = 256;
/// The longest value of a label, in bytes: a definition's namespace and name.
const LONGEST: usize = 320;
/// The value for everything without series of its own.
pub(super) const OTHER: &str = "other";

/// The value of a label.
pub(super) type Label = Cow<'static, str>;
/// The labels of a series, by their names.
pub(super) type Labels<const N: usize> = [(&'static str, Label); N];
/// Counters with `N` labels each.
pub(super) type Counters<const N: usize> = Family<Labels<N>, Counter>;
/// Gauges with `N` labels each.
pub(super) type Gauges<const N: usize> = Family<Labels<N>, Gauge>;

/// A foreign text as the value of a label.
pub(super) fn label(text: &str) -> Label {
    printable(text, LONGEST).into_owned().into()
}

/// The values that a label has had.
#[derive(Debug, Default)]
pub(super) struct LabelValues(RefCell<BTreeSet<Label>>);

impl LabelValues {
    /// A foreign text as the value of the label, unless it has had [`MOST`] others.
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
