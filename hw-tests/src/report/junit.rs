//! Writes the results as JUnit XML for CI systems.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::report::{CaseResult, Verdict};

/// Writes the results to `file`, with one test suite per group (the part of the name before the
/// slash).
pub(crate) fn write(finished: &[CaseResult], file: &Path) -> Result<(), JunitError> {
    let broken = |source| JunitError::File {
        file: file.to_owned(),
        source,
    };
    let out = File::create(file).map_err(broken)?;
    document(finished)
        .serialize(out)
        .map_err(|source| JunitError::Xml {
            file: file.to_owned(),
            source,
        })
}

fn document(finished: &[CaseResult]) -> Report {
    let mut report = Report::new("hw-tests");
    let mut suites: Vec<TestSuite> = Vec::new();
    for result in finished {
        let (group, name) = result.case.split_once('/').unwrap_or(("", &result.case));
        let mut status = match &result.verdict {
            Verdict::Passed => TestCaseStatus::success(),
            Verdict::Failed { .. } => TestCaseStatus::non_success(NonSuccessKind::Failure),
            Verdict::Skipped { .. } => TestCaseStatus::skipped(),
        };
        if let Verdict::Failed { reason } | Verdict::Skipped { reason, .. } = &result.verdict {
            status.set_message(reason.as_str());
        }
        let mut case = TestCase::new(name, status);
        case.set_classname(group)
            .set_time(Duration::from_millis(result.millis));
        if !result.notes.is_empty() {
            case.set_system_out(result.notes.join("\n"));
        }
        if let Some(suite) = suites.iter_mut().find(|suite| suite.name.as_str() == group) {
            suite.add_test_case(case);
        } else {
            let mut suite = TestSuite::new(group);
            suite.add_test_case(case);
            suites.push(suite);
        }
    }
    report.add_test_suites(suites);
    report
}

/// Why the results could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JunitError {
    #[error("{}: cannot write it: {source}; name a file in an existing folder", file.display())]
    File { file: PathBuf, source: io::Error },
    #[error("{}: {source}", file.display())]
    Xml {
        file: PathBuf,
        source: quick_junit::SerializeError,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_become_suites_and_reasons_messages() {
        let result = |case: &str, verdict| CaseResult {
            case: case.to_owned(),
            verdict,
            millis: 1500,
            notes: vec!["0.1 ms per VF".to_owned()],
        };
        let xml = document(&[
            result("sriov/first", Verdict::Passed),
            result(
                "sriov/second",
                Verdict::Failed {
                    reason: "found <1> & \u{1}".to_owned(),
                },
            ),
            result(
                "vduse/third",
                Verdict::Skipped {
                    reason: "no module".to_owned(),
                    lacks: None,
                },
            ),
        ])
        .to_string()
        .unwrap();
        assert!(
            xml.contains(r#"tests="3" skipped="1" failures="1""#),
            "{xml}"
        );
        assert!(
            xml.contains(r#"<testsuite name="sriov" tests="2" skipped="0""#),
            "{xml}"
        );
        assert!(xml.contains(r#"classname="sriov" time="1.500""#), "{xml}");
        assert!(xml.contains("found &lt;1&gt; &amp; "), "{xml}");
        assert!(!xml.contains('\u{1}'), "{xml}");
        assert!(xml.contains(r#"<skipped message="no module"/>"#), "{xml}");
        assert!(xml.contains("0.1 ms per VF"), "{xml}");
    }
}
