//! What is owed to the cluster: told once, to the right pod, beside what others say.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::lab::{Fault, Lab, NETWORKS, STATUS, Sandbox, Server, eventually};

// clause: NPWG-1.3 §5.1 others: what others write into the status survives
#[test]
fn what_others_wrote_into_the_status_survives_even_when_the_cache_has_not_seen_it() {
    let (lab, agent) = Lab::with_agent();
    let uid = lab.pod("web", &json!({}));
    agent.wait_until_it_knows(1, 0);
    lab.proxy
        .fault(|_, path| path.contains("watch=true").then_some(Fault::HangUp));
    lab.proxy.cut();
    let foreign =
        json!([{"name": "hotplugged", "interface": "plug0", "example.com/by": "somebody"}]);
    lab.admin.merge(
        &format!("{}/web", lab.pods()),
        &json!({"metadata": {"annotations": {STATUS: foreign.to_string(), "own": "kept"}}}),
    );
    lab.add("web", &uid).succeeds();
    lab.wait_until_told();
    let status = lab.status("web").unwrap();
    let names: Vec<&Value> = status
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["name"])
        .collect();
    assert_eq!(names, ["cluster", "hotplugged"]);
    let pod = lab.admin.get(&format!("{}/web", lab.pods())).unwrap();
    assert_eq!(pod["metadata"]["annotations"]["own"], "kept");
}

#[test]
fn a_status_is_never_written_to_another_pod_of_the_same_name() {
    let (lab, agent) = Lab::with_agent();
    let first = lab.pod("web", &json!({}));
    agent.wait_until_it_knows(1, 0);
    // The first write is held up until the pod is another one.
    lab.proxy
        .fault(|method, _| (method == "PATCH").then_some(Fault::Slow(Duration::from_secs(5))));
    lab.add("web", &first).succeeds();
    lab.delete_pod("web");
    let second = lab.pod("web", &json!({"own": "x"}));
    assert_ne!(first, second);
    eventually("the pod is gone", || {
        agent.logged(&["the pod is gone", "/web"])
    });
    lab.wait_until_told();
    assert_eq!(lab.status("web"), None);
    assert_eq!(lab.events("web"), Vec::<Value>::new());
}

#[test]
fn what_is_owed_to_a_pod_that_is_gone_is_dropped() {
    let lab = Lab::new();
    let uid = lab.pod("web", &json!({}));
    let sandbox = Sandbox {
        container: "web",
        pod: "web",
        uid: &uid,
        annotations: Some(json!({})),
    };
    lab.call("ADD", &sandbox).succeeds();
    assert_eq!(lab.owed().len(), 1);
    lab.delete_pod("web");
    let agent = lab.start_agent();
    lab.wait_until_told();
    assert!(agent.logged(&["the pod is gone", "/web"]));
    assert_eq!(
        agent.metric(r#"jackfield_publications_total{outcome="pod_gone"}"#),
        Some(1.0)
    );
}

#[test]
fn of_several_sandboxes_of_one_pod_the_newest_status_is_written_once() {
    let lab = Lab::new();
    lab.definition("storage", "10.2.0.5/24");
    let uid = lab.pod("web", &json!({"own": "x"}));
    for container in ["first", "second", "third"] {
        let sandbox = Sandbox {
            container,
            pod: "web",
            uid: &uid,
            annotations: Some(json!({})),
        };
        lab.call("ADD", &sandbox).succeeds();
        lab.call("DEL", &sandbox).succeeds();
    }
    assert_eq!(lab.owed().len(), 1, "the newest in place of the others");
    let _agent = lab.start_agent();
    lab.wait_until_told();
    let requests = Server::get().requests(&lab.node);
    let patches = requests
        .iter()
        .filter(|it| it.starts_with("patch pods/status"))
        .count();
    assert_eq!(patches, 1, "{requests:?}");
    let events = lab.events("web");
    // The same words three times, on both sides of a step of ten minutes at most.
    assert!((1..=2).contains(&events.len()), "{events:?}");
}

#[test]
fn a_pod_that_is_tried_again_and_again_is_warned_once() {
    let (lab, _agent) = Lab::with_agent();
    let uid = lab.pod("web", &json!({NETWORKS: "nowhere"}));
    for _ in 0..5 {
        lab.add("web", &uid).fails(102, &["nowhere"]);
    }
    lab.wait_until_told();
    let events = lab.events("web");
    // Five tries may lie on both sides of a step of ten minutes.
    assert!((1..=2).contains(&events.len()), "{events:?}");
}

#[test]
fn a_status_that_the_api_server_finds_too_long_is_told_as_an_event() {
    let (lab, agent) = Lab::with_agent();
    lab.definition("storage", "10.2.0.5/24");
    // 256 KiB of annotations are allowed, and the pod leaves no room for ours.
    let networks = format!("storage{}", " ".repeat(262_050));
    let uid = lab.pod("web", &json!({NETWORKS: networks}));
    lab.add("web", &uid).succeeds();
    lab.wait_until_told();
    assert_eq!(lab.status("web"), None);
    let events = lab.events("web");
    let reasons: Vec<_> = events.iter().map(|it| &it["reason"]).collect();
    assert_eq!(reasons.len(), 2, "{events:?}");
    assert!(reasons.contains(&&json!("StatusTooLong")), "{events:?}");
    assert_eq!(agent.metric("jackfield_owed_writes"), Some(0.0));
    lab.del("web", &uid).succeeds();
}

#[test]
fn an_agent_that_dies_between_telling_and_forgetting_tells_nothing_twice() {
    let lab = Lab::new();
    let uid = lab.pod("web", &json!({}));
    let sandbox = Sandbox {
        container: "web",
        pod: "web",
        uid: &uid,
        annotations: Some(json!({})),
    };
    lab.call("ADD", &sandbox).succeeds();
    let file = lab.owed().remove(0);
    let kept = std::fs::read(&file).unwrap();
    let mut agent = lab.start_agent();
    lab.wait_until_told();
    agent.kill();
    std::fs::write(&file, kept).unwrap();
    let _next = lab.start_agent();
    lab.wait_until_told();
    assert_eq!(lab.events("web").len(), 1);
    let requests = Server::get().requests(&lab.node);
    let patches = requests.iter().filter(|it| it.starts_with("patch")).count();
    assert_eq!(patches, 1, "{requests:?}");
}

#[test]
fn an_owed_write_that_cannot_be_read_is_put_aside_and_named() {
    let lab = Lab::new();
    std::fs::create_dir_all(lab.path("journal/publish")).unwrap();
    std::fs::write(lab.path("journal/publish/0.json"), "{\"form\":1,").unwrap();
    let agent = lab.start_agent();
    eventually("it is put aside", || {
        lab.path("journal/publish/0.json.unreadable").exists()
    });
    assert!(agent.logged(&["cannot read the status and events in", "0.json"]));
}

#[test]
fn where_nothing_can_be_kept_on_disk_the_agent_keeps_it() {
    let (lab, _agent) = Lab::with_agent();
    lab.definition("storage", "10.2.0.5/24");
    let uid = lab.pod("web", &json!({NETWORKS: "storage"}));
    // No file can be made in a directory that is a file.
    std::fs::remove_dir(lab.path("journal/publish")).unwrap();
    std::fs::write(lab.path("journal/publish"), "").unwrap();
    lab.add("web", &uid).succeeds();
    assert_eq!(lab.wait_for_status("web").as_array().unwrap().len(), 2);
}

/// No space for owed writes, and some everywhere else.
fn fill(lab: &Lab) {
    let dir = lab.path("journal/publish");
    std::fs::create_dir_all(&dir).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=16k", "tmpfs"])
        .arg(&dir)
        .status();
    assert!(mounted.unwrap().success());
    let full = std::fs::write(dir.join("ballast"), vec![0; 64 << 10]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
}

/// The agent may be looking into it just now.
fn empty(lab: &Lab) {
    eventually("nobody is in it", || {
        let mut umount = Command::new("umount");
        let unmounted = umount.arg(lab.path("journal/publish")).status();
        unmounted.unwrap().success()
    });
}

#[test]
fn where_the_disk_is_full_the_agent_keeps_what_is_owed_until_it_is_told() {
    let lab = Lab::new();
    fill(&lab);
    let agent = lab.start_agent();
    let uid = lab.pod("web", &json!({}));
    lab.proxy.down();
    let annotations = Some(json!({}));
    let sandbox = Sandbox {
        container: "web",
        pod: "web",
        uid: &uid,
        annotations,
    };
    lab.call("ADD", &sandbox).succeeds();
    eventually("a failed attempt", || agent.logged(&["still owed", "/web"]));
    assert_eq!(agent.metric("jackfield_owed_writes"), Some(1.0));
    lab.proxy.heal();
    lab.wait_for_status("web");
    empty(&lab);
}

#[test]
fn where_the_disk_is_full_and_no_agent_is_there_the_add_fails_and_leaves_nothing() {
    let lab = Lab::new();
    fill(&lab);
    let uid = lab.pod("web", &json!({}));
    let sandbox = Sandbox {
        container: "web",
        pod: "web",
        uid: &uid,
        annotations: Some(json!({})),
    };
    let words = [
        "/web",
        "No space left",
        "free space on its disk, or start the agent",
    ];
    lab.call("ADD", &sandbox).fails(107, &words);
    assert_eq!(lab.interfaces("web"), Vec::<String>::new());
    lab.call("DEL", &sandbox).succeeds();
    empty(&lab);
}

#[test]
fn where_nothing_can_be_kept_and_no_agent_is_there_the_add_fails_and_leaves_nothing() {
    let lab = Lab::new();
    let uid = lab.pod("web", &json!({}));
    std::fs::create_dir_all(lab.path("journal")).unwrap();
    std::fs::write(lab.path("journal/publish"), "").unwrap();
    let sandbox = Sandbox {
        container: "web",
        pod: "web",
        uid: &uid,
        annotations: Some(json!({})),
    };
    let directory = lab.path("journal/publish").display().to_string();
    lab.call("ADD", &sandbox).fails(
        107,
        &[
            "/web",
            &directory,
            "free space on its disk, or start the agent",
        ],
    );
    assert_eq!(lab.interfaces("web"), Vec::<String>::new());
}
