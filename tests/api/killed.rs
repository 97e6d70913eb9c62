//! The agent is ended at any moment, and nobody notices but by the time it takes.

use std::fs;
use std::thread;
use std::time::Duration;

use http::Method;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::lab::{AgentProcess, Fault, Lab, NETWORKS, Sandbox};

#[test]
fn an_agent_ended_at_any_time_of_an_add_or_a_del_fails_neither_and_loses_nothing() {
    let lab = Lab::new();
    lab.definition_with_ips("storage");
    for round in 0..12_u64 {
        let name = format!("web{round}");
        let networks = format!(
            r#"[{{"name":"storage","ips":["10.2.0.{}/24"]}}]"#,
            round + 10
        );
        let uid = lab.pod(&name, &json!({NETWORKS: networks}));
        let sandbox = Sandbox {
            container: &name,
            pod: &name,
            uid: &uid,
            annotations: None,
        };
        let mut agent = lab.start_agent();
        let add = lab.start("ADD", &sandbox);
        // An ADD takes some 50 ms, most of it in the delegates.
        thread::sleep(Duration::from_millis(round * 6));
        agent.kill();
        let mut agent = lab.start_agent();
        add.wait().succeeds();
        let status = lab.wait_for_status(&name);
        assert_eq!(status.as_array().unwrap().len(), 2, "{round}: {status}");
        lab.wait_until_told();
        assert_eq!(lab.events(&name).len(), 1, "{round}");
        let del = lab.start("DEL", &sandbox);
        thread::sleep(Duration::from_millis(round * 3));
        agent.kill();
        let deleted = del.wait().succeeds();
        assert!(deleted.took < Duration::from_secs(2), "{deleted}");
        assert_eq!(lab.interfaces(&name), Vec::<String>::new(), "{round}");
    }
}

#[test]
fn an_agent_ended_at_each_step_of_publishing_tells_everything_once() {
    for (method, passed_on) in [
        (Method::PATCH, false),
        (Method::PATCH, true),
        (Method::POST, false),
        (Method::POST, true),
    ] {
        let lab = Lab::new();
        let uid = lab.pod("web", &json!({}));
        let mut agent = lab.start_agent();
        let (pid, at) = (Pid::from_raw(agent.pid().cast_signed()), method.clone());
        lab.proxy.fault(move |method, _| {
            let hit = *method == at && kill(pid, Signal::SIGKILL).is_ok();
            (hit && !passed_on).then_some(Fault::HangUp)
        });
        lab.add("web", &uid).succeeds();
        assert_eq!(agent.wait(), None, "it was ended at {method}");
        assert_eq!(lab.owed().len(), 1, "{method} {passed_on}");
        lab.proxy.heal();
        let _next: AgentProcess = lab.start_agent();
        lab.wait_until_told();
        assert_eq!(lab.status("web").unwrap()[0]["default"], true);
        assert_eq!(lab.events("web").len(), 1, "{method} {passed_on}");
    }
}

#[test]
fn an_agent_whose_journal_is_removed_finds_the_next_one() {
    let (lab, _agent) = Lab::with_agent();
    fs::remove_dir_all(lab.path("journal")).unwrap();
    let uid = lab.pod("web", &json!({}));
    lab.add("web", &uid).succeeds();
    assert_eq!(lab.wait_for_status("web")[0]["default"], true);
}

#[test]
fn an_agent_whose_mounted_directory_is_removed_ends_to_be_started_again() {
    let lab = Lab::new();
    let (node, container) = (lab.path("journal/publish"), lab.path("container/publish"));
    fs::create_dir_all(&node).unwrap();
    fs::create_dir_all(&container).unwrap();
    let mount = format!("mount --bind {} {}", node.display(), container.display());
    let journal = container.parent().unwrap().to_str().unwrap();
    let inside = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        &format!("{mount} && exec \"$@\""),
        "sh",
    ];
    let mut agent = AgentProcess::start_under(&lab, &inside, &["--journal-dir", journal]);
    agent.wait_until_ready();
    fs::remove_dir_all(lab.path("journal")).unwrap();
    // It looks every 15 seconds, and when a plugin has left something.
    assert_eq!(agent.wait(), Some(1));
    assert!(agent.logged(&[
        "container/publish",
        "removed from the node",
        "start the agent again"
    ]));
}
