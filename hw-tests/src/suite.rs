//! Runs cases one after another and reports how each ended.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::bare_metal::Interrupt;
use crate::case::{Case, Outcome, Stop};
use crate::feature::Feature;
use crate::node::Node;
use crate::probe;
use crate::report::{CaseResult, Event, Verdict};
use crate::shared_vfs::SharedVfs;
use crate::traces::Traces;

/// More than ten times the longest case in the guest on an idle machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// Runs the cases and passes each event to `tell`.
///
/// A case that hangs ends the suite, because what it holds in the kernel would invalidate later
/// results. The remaining cases then fail with its name. No further case begins after an interrupt.
pub(crate) fn run(
    cases: &[Case],
    node: &Node,
    interrupt: &Interrupt,
    tell: &mut dyn FnMut(Event) -> io::Result<()>,
) -> io::Result<()> {
    run_within(DEADLINE, cases, node, interrupt, tell)
}

fn run_within(
    deadline: Duration,
    cases: &[Case],
    node: &Node,
    interrupt: &Interrupt,
    tell: &mut dyn FnMut(Event) -> io::Result<()>,
) -> io::Result<()> {
    let mut features = Features::default();
    let mut shared_vfs = SharedVfs::default();
    let mut node = node.clone();
    let mut hanging: Option<&str> = None;
    for case in cases {
        if interrupt.is_asked() {
            break;
        }
        tell(Event::Started {
            case: case.name.to_owned(),
        })?;
        let started = Instant::now();
        let missing = features.missing(case, &node);
        let lacks = missing.as_ref().map(|(feature, _)| *feature);
        let ended = match (hanging, missing) {
            (Some(name), _) => {
                CaseEnd::Finished(Err(Stop::failed(format!("not run: {name} hung before it"))))
            }
            (None, Some((_, reason))) => CaseEnd::Finished(Err(Stop::Skipped(reason))),
            (None, None) => match shared_vfs.ready(case, &mut node) {
                Ok(()) => supervised(case, &node, deadline),
                Err(stop) => CaseEnd::Finished(Err(stop)),
            },
        };
        let outcome = match ended {
            CaseEnd::Finished(outcome) => outcome,
            CaseEnd::Hung => {
                hanging = Some(case.name);
                Err(Stop::failed(format!(
                    "did not end within {}s",
                    deadline.as_secs()
                )))
            }
        };
        tell(Event::Finished(CaseResult {
            case: case.name.to_owned(),
            verdict: match outcome {
                Ok(()) => Verdict::Passed,
                Err(Stop::Failed(reason)) => Verdict::Failed { reason },
                Err(Stop::Skipped(reason)) => Verdict::Skipped { reason, lacks },
            },
            millis: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            notes: node.notes.take(),
        }))?;
    }
    Ok(())
}

enum CaseEnd {
    Finished(Outcome),
    Hung,
}

/// Runs a case in its own thread, because it may hang in the kernel or panic.
fn supervised(case: &Case, node: &Node, deadline: Duration) -> CaseEnd {
    let before = Traces::of(node);
    let (sender, outcome) = mpsc::channel();
    let (run, its_node) = (case.run, node.clone());
    // The thread is not joined. It sends its outcome, or drops the sender when it panics.
    thread::spawn(move || sender.send(run(&its_node)));
    let outcome = match outcome.recv_timeout(deadline) {
        Ok(outcome) => outcome,
        Err(RecvTimeoutError::Disconnected) => {
            Err(Stop::failed("it panicked; its message is in the log"))
        }
        Err(RecvTimeoutError::Timeout) => return CaseEnd::Hung,
    };
    CaseEnd::Finished(match (outcome, before.left_behind(node)) {
        (outcome, None) => outcome,
        (Err(Stop::Failed(reason)), Some(left)) => Err(Stop::failed(format!(
            "{reason}; and it left behind: {left}"
        ))),
        (_, Some(left)) => Err(Stop::failed(format!("it left behind: {left}"))),
    })
}

/// The machine's features, each probed once.
#[derive(Default)]
struct Features(Vec<(Feature, Result<(), String>)>);

impl Features {
    fn missing(&mut self, case: &Case, node: &Node) -> Option<(Feature, String)> {
        case.needs.iter().find_map(|feature| {
            let answer = match self.0.iter().find(|(probed, _)| probed == feature) {
                Some((_, answer)) => answer.clone(),
                None => {
                    let answer = probe::probe(*feature, node);
                    self.0.push((*feature, answer.clone()));
                    answer
                }
            };
            let reason = answer.err()?;
            Some((*feature, format!("no {feature}: {reason}")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict_of(run: fn(&Node) -> Outcome) -> Verdict {
        let case = Case {
            name: "a/b",
            needs: &[],
            run,
        };
        let mut events = Vec::new();
        super::run(
            &[case],
            &Node::default(),
            &Interrupt::default(),
            &mut |event| {
                events.push(event);
                Ok(())
            },
        )
        .unwrap();
        match events.pop() {
            Some(Event::Finished(finished)) => finished.verdict,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_case_passes_fails_or_is_skipped_with_a_reason() {
        assert_eq!(verdict_of(|_| Ok(())), Verdict::Passed);
        assert_eq!(
            verdict_of(|_| Err(Stop::failed("no"))),
            Verdict::Failed {
                reason: "no".to_owned()
            }
        );
        assert_eq!(
            verdict_of(|_| Err(Stop::Skipped("not here".to_owned()))),
            Verdict::Skipped {
                reason: "not here".to_owned(),
                lacks: None,
            }
        );
    }

    #[test]
    fn a_panic_fails_the_case_and_not_the_suite() {
        let Verdict::Failed { reason } = verdict_of(|_| panic!("on purpose")) else {
            panic!("it did not fail");
        };
        assert!(reason.contains("panicked"), "{reason}");
    }

    #[test]
    fn a_hanging_case_fails_and_so_do_all_later_ones() {
        let case = |name, run| Case {
            name,
            needs: &[],
            run,
        };
        let cases = [
            case("a/first", |_| Ok(())),
            case("a/hangs", |_| {
                thread::sleep(Duration::from_secs(600));
                Ok(())
            }),
            case("a/last", |_| Ok(())),
        ];
        let mut verdicts = Vec::new();
        run_within(
            Duration::from_millis(200),
            &cases,
            &Node::default(),
            &Interrupt::default(),
            &mut |event| {
                if let Event::Finished(finished) = event {
                    verdicts.push(finished.verdict);
                }
                Ok(())
            },
        )
        .unwrap();
        let failed = |reason: &str| Verdict::Failed {
            reason: reason.to_owned(),
        };
        assert_eq!(
            verdicts,
            [
                Verdict::Passed,
                failed("did not end within 0s"),
                failed("not run: a/hangs hung before it"),
            ]
        );
    }

    #[test]
    fn a_missing_feature_skips_the_case_with_a_reason() {
        let case = Case {
            name: "a/b",
            needs: &[Feature::Sriov],
            run: |_| Err(Stop::failed("it ran")),
        };
        let mut last = None;
        super::run(
            &[case],
            &Node::default(),
            &Interrupt::default(),
            &mut |event| {
                last = Some(event);
                Ok(())
            },
        )
        .unwrap();
        let Some(Event::Finished(finished)) = last else {
            panic!("{last:?}")
        };
        assert_eq!(
            finished.verdict,
            Verdict::Skipped {
                reason: "no sriov: no PF was given; name one by --pf".to_owned(),
                lacks: Some(Feature::Sriov),
            }
        );
    }
}
