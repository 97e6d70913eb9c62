//! Agents that start at the same time do not ask the API server at the same time.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::lab::{AgentProcess, Lab, NETWORKS, Server, eventually};

const LONGEST: &str = "255";

#[test]
fn an_agent_that_waits_for_its_start_answers_the_first_add_and_then_waits_no_longer() {
    let lab = Lab::new();
    lab.definition("storage", "10.2.0.5/24");
    let uid = lab.pod("web", &json!({NETWORKS: "storage"}));
    let agent = AgentProcess::start_with(&lab, &["--spread", LONGEST]);
    eventually("it lives", || {
        agent.get("/healthz").starts_with("HTTP/1.1 200")
    });
    // A random wait is shorter than this in one of 85 runs.
    thread::sleep(Duration::from_secs(3));
    let is_waiting = Server::get().lists(&lab.node) == 0;
    assert_eq!(is_waiting, agent.get("/readyz").starts_with("HTTP/1.1 503"));
    let began = Instant::now();
    lab.add("web", &uid).succeeds();
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    lab.wait_for_status("web");
    agent.wait_until_ready();
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "{:?}",
        began.elapsed()
    );
}
