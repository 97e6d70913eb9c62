//! The guest's messages to the host, one line of JSON each.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::feature::Feature;

/// One line of the guest's report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(crate) enum Event {
    /// The case has begun.
    Started { case: String },
    /// The case has ended.
    Finished(CaseResult),
}

/// How one case ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CaseResult {
    pub(crate) case: String,
    #[serde(flatten)]
    pub(crate) verdict: Verdict,
    /// The duration, by the clock of the case's machine.
    pub(crate) millis: u64,
    /// Its measurements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
}

/// The outcome, with a reason unless it passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "lowercase")]
pub(crate) enum Verdict {
    Passed,
    Failed {
        reason: String,
    },
    Skipped {
        reason: String,
        /// The missing feature; `None` if the case skipped itself.
        lacks: Option<Feature>,
    },
}

impl fmt::Display for CaseResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            case,
            verdict,
            millis,
            notes,
        } = self;
        match verdict {
            Verdict::Passed => write!(f, "pass  {case} ({millis} ms)"),
            Verdict::Failed { reason } => write!(f, "FAIL  {case} ({millis} ms): {reason}"),
            Verdict::Skipped { reason, .. } => write!(f, "skip  {case}: {reason}"),
        }?;
        notes
            .iter()
            .try_for_each(|note| write!(f, "\n      {note}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_survives_its_line() {
        for event in [
            Event::Started {
                case: "a/b".to_owned(),
            },
            Event::Finished(CaseResult {
                case: "a/b".to_owned(),
                verdict: Verdict::Failed {
                    reason: "found 1,\nexpected \"2\"".to_owned(),
                },
                millis: 12,
                notes: vec!["0.1 ms per VF".to_owned()],
            }),
            Event::Finished(CaseResult {
                case: "a/b".to_owned(),
                verdict: Verdict::Skipped {
                    reason: "no module".to_owned(),
                    lacks: Some(Feature::VpVdpa),
                },
                millis: 0,
                notes: Vec::new(),
            }),
            Event::Finished(CaseResult {
                case: "a/b".to_owned(),
                verdict: Verdict::Passed,
                millis: 0,
                notes: Vec::new(),
            }),
        ] {
            let line = serde_json::to_string(&event).unwrap();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
        }
    }
}
