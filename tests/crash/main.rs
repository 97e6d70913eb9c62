//! The crash walk: a run is killed at each of its steps in turn, then detached, and nothing is left.
//!
//! The steps are not listed but found: `strace` records one run, every system call in it that
//! changes something (or that marks a time in which a delegate works alone) is a point, and the run
//! is repeated once per point with SIGKILL in place of that call. Then comes what a runtime does, a
//! DEL: by turns in the sandbox's network namespace and, that being gone, without one. After it
//! the links of every network namespace, routes, leases, files and processes are what they were.
//!
//! Only Jackfield's main thread is traced, and by that only Jackfield is killed: its delegates go
//! on alone, as they would when the kernel's memory killer comes. Its one other thread only
//! opens a socket in the pod's namespace.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]
#![allow(
    clippy::disallowed_methods,
    reason = "what the tests run ends by itself, and its output is small"
)]

mod call;
mod lab;
mod leftovers;
mod node;
mod points;
mod walk;

use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use call::{Call, Verb};
use lab::Lab;
use walk::{Story, walk};

/// Says something even when the test runner keeps a test's output to itself.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "crash walk: {line}");
}

// clause: CNI-1.1.0 §2 DEL missing
#[test]
fn an_add_killed_at_any_step_leaves_nothing_after_a_del() {
    let killed = walk(&Story {
        name: "ADD",
        before: &[],
        walked: Call::of(Verb::Add),
        repair: &[],
        after_killed_add: false,
    });
    assert!(
        killed >= 40,
        "{killed} points are too few for three networks"
    );
}

// clause: CNI-1.1.0 §2 DEL again
#[test]
fn a_del_killed_at_any_step_is_finished_by_the_next() {
    let killed = walk(&Story {
        name: "DEL",
        before: &[Call::of(Verb::Add)],
        walked: Call::of(Verb::Del),
        repair: &[],
        after_killed_add: false,
    });
    assert!(
        killed >= 20,
        "{killed} points are too few for three networks"
    );
}

#[test]
fn an_add_killed_while_it_unwinds_leaves_nothing_after_a_del() {
    let killed = walk(&Story {
        name: "failing ADD",
        before: &[Call::of(Verb::Break)],
        walked: Call::of(Verb::Add),
        repair: &[Call::of(Verb::Mend)],
        after_killed_add: false,
    });
    assert!(
        killed >= 40,
        "{killed} points are too few for an ADD that unwinds"
    );
}

#[test]
fn a_del_killed_while_it_writes_down_what_it_owes_is_finished_by_the_next() {
    let killed = walk(&Story {
        name: "failing DEL",
        before: &[Call::of(Verb::Add), Call::of(Verb::Break)],
        walked: Call::of(Verb::Del),
        repair: &[Call::of(Verb::Mend)],
        after_killed_add: false,
    });
    assert!(
        killed >= 20,
        "{killed} points are too few for three networks"
    );
}

#[test]
fn a_del_killed_after_a_killed_add_is_finished_by_the_next() {
    let killed = walk(&Story {
        name: "DEL after a killed ADD",
        before: &[],
        walked: Call::of(Verb::Del),
        repair: &[],
        after_killed_add: true,
    });
    assert!(killed >= 20, "{killed} points are too few");
}

/// What comes before a change that is walked.
const RUNNING: &[Call] = &[
    Call::of(Verb::SelectFirst),
    Call::of(Verb::Add),
    Call::of(Verb::SelectOthers),
];

#[test]
fn a_change_killed_at_any_step_leaves_nothing_after_a_del() {
    let killed = walk(&Story {
        name: "change",
        before: RUNNING,
        walked: Call::of(Verb::Change),
        repair: &[Call::of(Verb::SelectFirst)],
        after_killed_add: false,
    });
    assert!(killed >= 60, "{killed} points are too few for a change");
}

#[test]
fn a_change_killed_at_any_step_is_finished_by_the_next() {
    let killed = walk(&Story {
        name: "change, and the change after it",
        before: RUNNING,
        walked: Call::of(Verb::Change),
        repair: &[
            Call::of(Verb::Change),
            Call::of(Verb::Check),
            Call::of(Verb::SelectFirst),
        ],
        after_killed_add: false,
    });
    assert!(killed >= 60, "{killed} points are too few for a change");
}

#[test]
fn a_change_killed_while_it_is_rolled_back_leaves_nothing_after_a_del() {
    let killed = walk(&Story {
        name: "failing change",
        before: &[
            Call::of(Verb::SelectOthers),
            Call::of(Verb::Add),
            Call::of(Verb::SelectFirst),
            Call::of(Verb::BreakAdd),
        ],
        walked: Call::of(Verb::Change),
        repair: &[Call::of(Verb::Mend), Call::of(Verb::SelectFirst)],
        after_killed_add: false,
    });
    assert!(
        killed >= 60,
        "{killed} points are too few for a change that is rolled back"
    );
}

/// Between two steps of Jackfield its delegates take theirs, so time is walked too.
#[test]
fn an_add_killed_at_any_time_leaves_nothing_after_a_del() {
    const TIMES: u32 = 60;
    let times: Vec<u32> = (0..TIMES).collect();
    let killed = AtomicUsize::new(0);
    walk::in_parallel(&times, |lab: &Lab, number| {
        let after = lab.add_takes() * *number / TIMES;
        let mut add = lab.command(Call::of(Verb::Add)).spawn().unwrap();
        std::thread::sleep(after);
        add.kill().unwrap();
        let ended = add.wait().unwrap();
        killed.fetch_add(usize::from(!ended.success()), Ordering::Relaxed);
        lab.detach(
            &format!("ADD killed after {after:?}"),
            number.is_multiple_of(2),
        )
    });
    let killed = killed.into_inner();
    say(&format!("{killed} times killed at some time of an ADD"));
    assert!(
        killed >= 20,
        "{killed} times are too few: the others were over"
    );
}

/// A delegate that sleeps before it makes its link would make it after the DEL, were it not ended.
#[test]
fn a_delegate_that_sleeps_when_its_add_is_killed_makes_no_link_after_the_del() {
    const SLEEP: Duration = Duration::from_secs(3);
    let sleepers = ["cluster", "storage", "management"];
    let turns = sleepers
        .iter()
        .flat_map(|network| [(*network, true), (*network, false)]);
    let turns: Vec<(&str, bool)> = turns.collect();
    walk::in_parallel(&turns, |lab: &Lab, (network, with_netns)| {
        lab.put_to_sleep(Some((network, SLEEP)));
        let mut add = lab.command(Call::of(Verb::Add)).spawn().unwrap();
        let since = Instant::now();
        while !lab.is_asleep() {
            assert!(
                since.elapsed() < Duration::from_secs(20),
                "{network} never slept"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        let asleep = Instant::now();
        add.kill().unwrap();
        add.wait().unwrap();
        let story = format!("killed while the delegate of {network} slept");
        let mut findings = lab.detach(&story, *with_netns);
        if asleep.elapsed() > SLEEP {
            findings.push(format!("{story}: the DEL waited for the sleeper"));
        }
        std::thread::sleep((SLEEP + Duration::from_millis(300)).saturating_sub(asleep.elapsed()));
        findings.extend(lab.leftovers(&story));
        lab.put_to_sleep(None);
        findings
    });
    say(&format!(
        "{} times killed beside a sleeping delegate",
        turns.len()
    ));
}

#[test]
fn the_tools_are_there() {
    for (tool, package) in [("strace", "strace"), ("ip", "iproute2")] {
        let found = Command::new(tool).arg("-V").output();
        assert!(
            found.is_ok(),
            "{tool} is missing: apt-get install {package}"
        );
    }
}
