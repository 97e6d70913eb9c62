//! The results: printed while the cases run, counted at the end, written as JUnit.

use std::io::{self, Write};
use std::path::Path;

pub(crate) use event::{CaseResult, Event, Verdict};
pub(crate) use junit::JunitError;

use crate::case::Case;
use crate::feature::Feature;

mod event;
mod junit;

/// The results so far.
#[derive(Debug)]
pub(crate) struct Report {
    required: Vec<Feature>,
    finished: Vec<CaseResult>,
}

impl Report {
    /// A skip because of one of the `required` features will count as a failure.
    pub(crate) const fn new(required: Vec<Feature>) -> Self {
        Self {
            required,
            finished: Vec::new(),
        }
    }

    /// Returns whether the case has a result.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.finished.iter().any(|finished| finished.case == name)
    }

    /// Adds and prints a result.
    pub(crate) fn add(&mut self, case: &Case, finished: CaseResult) -> io::Result<()> {
        let finished = self.judge(case, finished);
        let mut out = io::stdout().lock();
        writeln!(out, "{finished}")?;
        out.flush()?;
        self.finished.push(finished);
        Ok(())
    }

    fn judge(&self, case: &Case, mut finished: CaseResult) -> CaseResult {
        let Verdict::Skipped { reason, lacks } = &finished.verdict else {
            return finished;
        };
        // A case that skips itself lacks part of what it needs.
        let wanting = match lacks {
            Some(feature) => std::slice::from_ref(feature),
            None => case.needs,
        };
        if let Some(feature) = wanting.iter().find(|need| self.required.contains(need)) {
            finished.verdict = Verdict::Failed {
                reason: format!("{feature} is required, but the case was skipped: {reason}"),
            };
        }
        finished
    }

    /// Writes all results to a file.
    pub(crate) fn write_junit(&self, file: &Path) -> Result<(), JunitError> {
        junit::write(&self.finished, file)
    }

    /// Prints the summary. Returns true if nothing failed.
    pub(crate) fn close(&self) -> io::Result<bool> {
        let count = |wanted: fn(&Verdict) -> bool| {
            self.finished
                .iter()
                .filter(|finished| wanted(&finished.verdict))
                .count()
        };
        let passed = count(|verdict| matches!(verdict, Verdict::Passed));
        let failed = count(|verdict| matches!(verdict, Verdict::Failed { .. }));
        let skipped = count(|verdict| matches!(verdict, Verdict::Skipped { .. }));
        writeln!(
            io::stdout(),
            "{passed} passed, {failed} failed, {skipped} skipped"
        )?;
        Ok(failed == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: Case = Case {
        name: "group/behaviour",
        needs: &[Feature::Vduse],
        run: |_| Ok(()),
    };

    const CASE_NEEDS_TWO: Case = Case {
        needs: &[Feature::Vduse, Feature::Sriov],
        ..CASE
    };

    fn skipped(lacks: Option<Feature>) -> CaseResult {
        CaseResult {
            case: CASE.name.to_owned(),
            verdict: Verdict::Skipped {
                reason: "no module vduse".to_owned(),
                lacks,
            },
            millis: 1,
            notes: Vec::new(),
        }
    }

    fn fails(required: Feature, case: &Case, lacks: Option<Feature>) -> bool {
        let judged = Report::new(vec![required]).judge(case, skipped(lacks));
        match judged.verdict {
            Verdict::Failed { reason } => {
                assert!(
                    reason.contains(&format!("{required} is required")),
                    "{reason}"
                );
                assert!(reason.ends_with("no module vduse"), "{reason}");
                true
            }
            _ => false,
        }
    }

    #[test]
    fn a_skip_because_of_a_required_feature_fails() {
        let vduse = Some(Feature::Vduse);
        assert!(fails(Feature::Vduse, &CASE, vduse));
        assert!(fails(Feature::Vduse, &CASE_NEEDS_TWO, vduse));
    }

    #[test]
    fn a_skip_because_of_another_feature_stays_a_skip() {
        let vduse = Some(Feature::Vduse);
        assert!(!fails(Feature::Sriov, &CASE, vduse));
        assert!(!fails(Feature::Sriov, &CASE_NEEDS_TWO, vduse));
    }

    #[test]
    fn a_case_that_skips_itself_fails_if_any_of_its_needs_is_required() {
        assert!(fails(Feature::Sriov, &CASE_NEEDS_TWO, None));
        assert!(!fails(Feature::RdmaShared, &CASE_NEEDS_TWO, None));
    }
}
