//! The columns of the fault matrix that concern the API server and the agent (`tests/matrix/table.rs`).
//!
//! Each row runs with a pod in a real API server, and with an agent. A proxy between the two injects
//! the fault into one kind of request until the walked call has ended and has met the fault. Then
//! come the clean-up and the look at everything, as in `tests/crash`. In addition, the pod's
//! network-status must come to list what is attached.

mod node;

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::Value;

use node::Node;

use crate::lab::Outcome;
use crate::table::call::Verb;
use crate::table::cell::{Cell, Visit};
use crate::table::faults::{FAULTS, Kind, Trouble};
use crate::table::matrix::Matrix;
use crate::table::stories::{End, STORIES, Story};

/// The longest time in which the walked call must meet the fault.
const MEETS_WITHIN: Duration = Duration::from_secs(3);
/// The longest time in which the agent recovers.
const RECOVERS_WITHIN: Duration = Duration::from_secs(60);
/// The cells that run at once. Most of their time, they wait for the agent.
const AT_ONCE: usize = 8;

/// The kind of request that meets the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Read,
    Status,
    Event,
}

#[test]
fn after_any_fault_of_the_api_server_or_the_agent_nothing_is_left_and_the_status_is_right() {
    let mut matrix = Matrix::new();
    let stories = STORIES.iter().filter(|story| story.end != End::Uninstalled);
    for story in stories
        .filter(|story| matrix.wants_story(story))
        .collect::<Vec<_>>()
    {
        for fault in FAULTS {
            if let Kind::Cluster(_) = fault.kind {
                matrix.add(story, fault, places(story));
            }
        }
    }
    let cells = matrix.cells();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(cells.len()) {
            scope.spawn(|| {
                let mut node = Node::set_up();
                while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !matrix.run(cell, |cell| visit(cell, &mut node)) {
                        node = Node::set_up();
                    }
                }
            });
        }
    });
    matrix.end();
}

/// The requests that a call leads to. Only an ADD and a change publish.
fn places(story: &Story) -> Vec<Request> {
    match story.walked {
        Verb::Add | Verb::Change | Verb::Reconcile => {
            vec![Request::Read, Request::Status, Request::Event]
        }
        _ => vec![Request::Read],
    }
}

/// Runs a cell.
fn visit(cell: &Cell<Request>, node: &mut Node) -> Visit {
    let Kind::Cluster(trouble) = cell.fault.kind else {
        unreachable!("{:?}", cell.fault);
    };
    let story = cell.story;
    node.new_pod();
    let before = story
        .before
        .iter()
        .filter_map(|verb| node.attempt(*verb).err());
    let mut findings: Vec<String> = before.collect();
    node.lab.wait_until_told();
    let happened = node.inject(trouble, cell.place);
    let done = node.call(story.walked);
    within(MEETS_WITHIN, || happened.load(Ordering::Relaxed));
    node.lab.proxy.heal();
    let met = happened.load(Ordering::Relaxed);
    node.recover(met && matches!(trouble, Trouble::AgentKilled));
    findings.extend(bad_end(story.walked, &done));
    let is_again = || story.again.iter().all(|verb| node.attempt(*verb).is_ok());
    let selected = match story.walked {
        Verb::Add if done.exit == Some(0) => Some(["storage", "management"]),
        // An agent that has not seen the new annotation yet changes nothing.
        Verb::Change | Verb::Reconcile if !story.again.is_empty() => Some(["backup", "management"]),
        _ => None,
    };
    let is_right = || is_again() && selected.is_none_or(|networks| node.shows(networks));
    if !within(RECOVERS_WITHIN, is_right) {
        let shown = node.lab.status(&node.pod());
        findings.push(format!("the network-status stays {shown:?}"));
    }
    let repair = story
        .repair
        .iter()
        .filter_map(|verb| node.attempt(*verb).err());
    findings.extend(repair);
    findings.extend(node.clean_up(cell.place));
    Visit {
        happened: met,
        findings: findings.iter().map(|it| format!("{cell}: {it}")).collect(),
    }
}

impl Request {
    fn is(self, method: &Method, path: &str) -> bool {
        match self {
            Request::Read => *method == Method::GET,
            Request::Status => *method == Method::PATCH,
            Request::Event => *method == Method::POST && path.contains("/events"),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Request::Read => "read",
            Request::Status => "status",
            Request::Event => "event",
        })
    }
}

/// What is wrong with the way in which a call ended: a panic, or a failure without a CNI error.
fn bad_end(verb: Verb, done: &Outcome) -> Option<String> {
    let answer: Value = serde_json::from_str(&done.stdout).unwrap_or_default();
    let is_error = answer["code"].is_u64() && answer["code"] != 999;
    let is_command = matches!(verb, Verb::Change | Verb::Retry | Verb::Reconcile);
    match done.exit {
        Some(0) => None,
        Some(1) if is_command || is_error => None,
        _ => Some(format!("the walked {verb:?}: {done}")),
    }
}

/// Waits until something is so. Returns whether it is.
fn within(time: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + time;
    while !is_so() {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}
