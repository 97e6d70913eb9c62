//! While the agent is away: nothing is lost, nothing is blocked for long.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::lab::{Lab, NETWORKS, Sandbox, eventually};

#[test]
fn a_pod_that_selects_nothing_needs_no_agent_and_is_told_of_later() {
    let lab = Lab::new();
    let uid = lab.pod("web", &json!({}));
    let sandbox = Sandbox {
        container: "web",
        pod: "web",
        uid: &uid,
        annotations: Some(json!({})),
    };
    let added = lab.call("ADD", &sandbox).succeeds();
    assert!(added.took < Duration::from_secs(3), "{added}");
    assert_eq!(lab.owed().len(), 1);
    assert!(lab.status("web").is_none());
    let _agent = lab.start_agent();
    let status = lab.wait_for_status("web");
    assert_eq!(status[0]["default"], true);
    lab.wait_until_told();
}

#[test]
fn an_add_waits_for_an_agent_that_starts() {
    let lab = Lab::new();
    let uid = lab.pod("web", &json!({}));
    let sandbox = Sandbox {
        container: "web",
        pod: "web",
        uid: &uid,
        annotations: None,
    };
    let add = lab.start("ADD", &sandbox);
    thread::sleep(Duration::from_secs(1));
    let _agent = lab.start_agent();
    let added = add.wait().succeeds();
    assert!(added.took > Duration::from_secs(1), "{added}");
}

#[test]
fn an_add_without_any_agent_is_to_be_tried_again_and_a_del_never_waits() {
    let lab = Lab::new();
    let uid = lab.pod("web", &json!({}));
    let socket = lab.socket().display().to_string();
    let failed = lab
        .add("web", &uid)
        .fails(11, &[&socket, "start it or set kubeconfig"]);
    let waited = failed.took;
    assert!(
        waited > Duration::from_secs(9) && waited < Duration::from_secs(13),
        "{waited:?}"
    );
    let deleted = lab.del("web", &uid).succeeds();
    assert!(deleted.took < Duration::from_secs(2), "{deleted}");
}

#[test]
fn a_del_needs_neither_agent_nor_api_server() {
    let (lab, mut agent) = Lab::with_agent();
    lab.definition("storage", "10.2.0.5/24");
    let uid = lab.pod("web", &json!({NETWORKS: "storage"}));
    lab.add("web", &uid).succeeds();
    agent.kill();
    lab.proxy.down();
    let deleted = lab.del("web", &uid).succeeds();
    assert!(deleted.took < Duration::from_secs(2), "{deleted}");
    assert_eq!(lab.interfaces("web"), Vec::<String>::new());
}

#[test]
fn an_agent_killed_while_it_is_asked_is_asked_again_when_it_is_back() {
    let (lab, mut agent) = Lab::with_agent();
    lab.definition("storage", "10.2.0.5/24");
    let uid = lab.pod("web", &json!({NETWORKS: "storage"}));
    agent.wait_until_it_knows(1, 1);
    // It accepts, and answers nothing any more.
    agent.signal(nix::sys::signal::Signal::SIGSTOP);
    let sandbox = Sandbox {
        container: "web",
        pod: "web",
        uid: &uid,
        annotations: None,
    };
    let add = lab.start("ADD", &sandbox);
    thread::sleep(Duration::from_secs(1));
    agent.kill();
    let _next = lab.start_agent();
    add.wait().succeeds();
    assert_eq!(lab.wait_for_status("web").as_array().unwrap().len(), 2);
}

#[test]
fn what_is_owed_survives_an_agent_that_is_killed_before_it_could_tell() {
    let (lab, mut agent) = Lab::with_agent();
    let uid = lab.pod("web", &json!({}));
    agent.wait_until_it_knows(1, 0);
    lab.proxy.down();
    lab.add("web", &uid).succeeds();
    eventually("a failed attempt", || agent.logged(&["still owed", "/web"]));
    agent.kill();
    assert_eq!(lab.owed().len(), 1);
    lab.proxy.heal();
    let _next = lab.start_agent();
    lab.wait_for_status("web");
    lab.wait_until_told();
    assert_eq!(lab.events("web").len(), 1);
}

#[test]
fn an_agent_that_is_told_to_end_ends_at_once_and_takes_its_socket_along() {
    let (lab, mut agent) = Lab::with_agent();
    assert!(lab.socket().exists());
    agent.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(agent.wait(), Some(0));
    assert!(!lab.socket().exists());
}

/// When calls began to find no agent: the lab's own record of it, among those of other labs.
fn record_of_absence(lab: &Lab) -> PathBuf {
    let socket = crc32fast::hash(lab.socket().as_os_str().as_bytes());
    Path::new("/run/jackfield").join(format!("agent-silent-{socket:08x}"))
}

#[test]
fn an_absence_leaves_the_node_ready_is_counted_and_a_long_one_is_an_event_of_the_node() {
    let (mut lab, mut agent) = Lab::with_agent();
    lab.configure("cniVersion", json!("1.1.0"));
    let uid = lab.pod("web", &json!({}));
    let sandbox = Sandbox {
        container: "web",
        pod: "web",
        uid: &uid,
        annotations: None,
    };
    lab.call("STATUS", &sandbox).succeeds();
    agent.kill();
    let ready = lab.call("STATUS", &sandbox).succeeds();
    assert!(ready.stderr.contains("nothing listens"), "{ready}");
    // Three minutes pass.
    let record = fs::File::open(record_of_absence(&lab)).unwrap();
    let then = SystemTime::now() - Duration::from_secs(180);
    record.set_modified(then).unwrap();
    lab.call("STATUS", &sandbox).succeeds();
    let next = lab.start_agent();
    lab.call("STATUS", &sandbox).succeeds();
    eventually("it is counted", || {
        next.metric("jackfield_agent_absences_total") == Some(1.0)
    });
    let seconds = next.metric("jackfield_agent_absence_seconds_total");
    assert!(seconds >= Some(180.0), "{seconds:?}");
    assert!(!record_of_absence(&lab).exists());
    let mut events = Vec::new();
    eventually("an event of the node", || {
        events = lab.events_of_node();
        !events.is_empty()
    });
    assert_eq!(events[0]["reason"], "AgentAway", "{events:?}");
    let message = events[0]["message"].as_str().unwrap();
    assert!(message.contains("did not answer for 18"), "{message}");
    // An upgrade is shorter.
    drop(next);
    lab.call("STATUS", &sandbox).succeeds();
    let last = lab.start_agent();
    lab.call("STATUS", &sandbox).succeeds();
    eventually("it is counted", || {
        last.metric("jackfield_agent_absences_total") == Some(1.0)
    });
    assert_eq!(lab.events_of_node().len(), 1);
}
