//! Pods come and go, thirty at a time, while everything goes wrong that can. At the end nothing is left.
//!
//! ```text
//! seed ▶ story of each pod ▶ 30 workers ──▶ plugin, delegates ◀── faults
//!                            runtime: STATUS, GC   agent, API server ◀── disturbances
//! gauge: memory and descriptors of the agent       inventory: before the first pod = after the last
//! ```
//!
//! The seed decides all that the soak does; what time that takes is as real as everything else. Here it
//! is short; `scripts/soak` runs it for as long as somebody wants.

mod calm;
mod cluster;
mod container;
mod disturbances;
mod fault;
mod gauge;
mod inventory;
mod netns;
mod node;
mod pod;
mod processes;
mod report;
mod selection;
mod settings;
mod status;
mod story;
mod survivors;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use self::disturbances::Disturbances;
use self::gauge::Gauge;
use self::inventory::Inventory;
use self::node::{Kind, Node};
use self::pod::Pod;
use self::report::Report;
use self::selection::{DEFINITIONS, Selection};
use self::settings::{AT_A_TIME, Settings};
use self::story::{End, Story};
use crate::lab::{Server, eventually};

/// How often the runtime calls STATUS, and a sample is taken.
const TICK: Duration = Duration::from_secs(1);
/// How many ticks there are between two calls of GC.
const GC_EVERY: u32 = 10;
/// How many ticks there are between two lines of progress.
const LINE_EVERY: u32 = 10;
/// How much nicer a soak is than the tests beside it, whose time counts.
const NICER: i32 = 10;

#[test]
fn api_pods_come_and_go_and_nothing_is_left() {
    soak(Kind::Api, Duration::from_secs(12));
}

#[test]
fn folder_pods_come_and_go_and_nothing_is_left() {
    soak(Kind::Folder, Duration::from_secs(5));
}

/// Runs a soak, which takes `time` unless the environment says otherwise.
#[track_caller]
fn soak(kind: Kind, time: Duration) {
    let settings = Settings::of_environment(time);
    // Before this thread is nice: the API server is everybody's.
    Server::get();
    if settings.is_beside_others {
        let _ = rustix::process::nice(NICER);
    }
    let node = Node::new(kind, settings);
    let agent = (kind == Kind::Api).then(|| Disturbances::new(&node));
    prime(&node);
    let before = Inventory::of(&node);
    let gauge = Gauge::default();
    let idle = agent.as_ref().map(|agent| gauge.read(agent));
    let pods = run(&node, agent.as_ref(), &gauge);
    let progress = node.report.progress();
    let cluster = node.cluster();
    survivors::judge(&node, cluster.as_ref(), pods);
    for difference in before.wait_for(&node) {
        node.report.finding(difference);
    }
    let mut verdict = "there is no agent".to_owned();
    if let (Some(agent), Some(idle)) = (&agent, idle) {
        verdict = judge_agent(&node, agent, &gauge, idle);
    }
    let report = &node.report;
    let attached = report.attached.load(Ordering::Relaxed);
    let done = report.done.load(Ordering::Relaxed);
    if attached < done / 2 {
        report.finding(format!("only {attached} of {done} pods were attached"));
    }
    let faults = report.faults();
    let last = format!(
        "soak {}: {progress}, seed {}; faults: {faults}; {verdict}",
        kind.name(),
        settings.seed
    );
    eprintln!("{last}");
    let command = settings.command(kind.name());
    assert!(
        report.is_clean(),
        "{}{last}\nrepeat it with {command}",
        report.findings()
    );
}

/// One pod with every network comes and goes: what the plugins themselves keep from then on is there.
fn prime(node: &Node) {
    let all = DEFINITIONS.map(|(definition, _)| Selection {
        definition,
        interface: None,
        request: None,
    });
    let story = Story {
        number: 0,
        networks: all.to_vec(),
        passes_annotations: false,
        add: None,
        acts: Vec::new(),
        end: End::ObjectLast,
        del: None,
        del_has_netns: true,
    };
    let cluster = node.cluster();
    match Pod::begin(node, cluster.as_ref(), &story) {
        Some(pod) => pod.end(cluster.as_ref(), &story),
        None => panic!("a pod without any fault: {}", node.report.findings()),
    }
    node.gc().succeeds();
    if node.kind == Kind::Api {
        eventually("nothing is owed", || node.lab.owed().is_empty());
    }
    assert!(node.report.is_clean(), "{}", node.report.findings());
}

/// Runs all workers until the soak is over. Returns the pods that are attached then.
fn run<'a>(node: &'a Node, agent: Option<&Disturbances<'_>>, gauge: &Gauge) -> Vec<Pod<'a>> {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        if let Some(agent) = agent {
            scope.spawn(|| agent.run());
        }
        scope.spawn(|| tick(node, agent, gauge, &is_done));
        let workers: Vec<_> = (0..AT_A_TIME).map(|_| scope.spawn(|| work(node))).collect();
        let pods = workers.into_iter().filter_map(|it| it.join().unwrap());
        let pods = pods.collect();
        is_done.store(true, Ordering::Relaxed);
        pods
    })
}

/// One worker: a pod after the other. Returns the one that is attached when the soak is over.
fn work(node: &Node) -> Option<Pod<'_>> {
    let cluster = node.cluster();
    while let Some(number) = node.next_pod() {
        let story = Story::of(node.settings.seed, number);
        if let Some(mut pod) = Pod::begin(node, cluster.as_ref(), &story) {
            for act in &story.acts {
                pod.act(cluster.as_ref(), act);
            }
            if node.is_over() {
                return Some(pod);
            }
            pod.end(cluster.as_ref(), &story);
        }
        Report::count(&node.report.done);
    }
    None
}

/// What a runtime does from time to time, and the lines of progress.
fn tick(node: &Node, agent: Option<&Disturbances<'_>>, gauge: &Gauge, is_done: &AtomicBool) {
    let mut next = Instant::now();
    for number in 1.. {
        next += TICK;
        thread::sleep(next.saturating_duration_since(Instant::now()));
        if is_done.load(Ordering::Relaxed) {
            return;
        }
        let sample = agent.map(|agent| gauge.read(agent));
        node.status();
        if number % GC_EVERY == 0 {
            // It may meet a delegate that fails.
            node.gc();
        }
        if number % LINE_EVERY == 0 {
            let agent = sample.map_or_else(String::new, |it| format!("; agent: {it}"));
            eprintln!(
                "soak {}: {}, {} faults; {}{agent}",
                node.kind.name(),
                node.report.progress(),
                node.report.fault_count(),
                Inventory::of(node).summary()
            );
        }
    }
}

/// The agent after the last pod: as before the first.
fn judge_agent(
    node: &Node,
    agent: &Disturbances<'_>,
    gauge: &Gauge,
    idle: gauge::Sample,
) -> String {
    let report = &node.report;
    let verdict = gauge.verdict();
    for name in [
        r#"jackfield_cached_objects{kind="pod"}"#,
        "jackfield_owed_writes",
        "jackfield_owed_detachments",
    ] {
        let value = agent
            .with_agent(|agent| agent.metric(name))
            .unwrap_or_default();
        if value != 0.0 {
            report.finding(format!("{name} is {value} after the last pod"));
        }
    }
    if let Err(difference) = gauge::compare_idle(idle, agent) {
        report.finding(difference);
    }
    match verdict {
        Ok(verdict) => verdict,
        Err(verdict) => {
            report.finding(format!("the agent grows: {verdict}"));
            verdict
        }
    }
}
