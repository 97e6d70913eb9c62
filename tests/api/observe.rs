//! What the agent shows of the node: metrics, health, the log, and that it makes records durable.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::lab::{AgentProcess, Lab, NETWORKS, eventually};

/// Waits until a metric has a value: a plugin tells of its call after the runtime has its answer.
#[track_caller]
fn shows(agent: &AgentProcess, metric: &str, value: f64) {
    let mut last = None;
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while std::time::Instant::now() < until {
        last = agent.metric(metric);
        if last == Some(value) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!(
        "{metric} is {last:?}, not {value}:\n{}",
        agent.get("/metrics")
    );
}

#[test]
fn calls_are_counted_by_verb_code_network_phase_and_plugin() {
    let (lab, agent) = Lab::with_agent();
    lab.definition("storage", "10.2.0.5/24");
    let uid = lab.pod("web", &json!({NETWORKS: "storage"}));
    let lost = lab.pod("lost", &json!({NETWORKS: "nowhere"}));
    agent.wait_until_it_knows(2, 1);
    lab.add("web", &uid).succeeds();
    lab.add("lost", &lost).fails(102, &["nowhere"]);
    let space = &lab.namespace;
    shows(&agent, r#"jackfield_calls_total{verb="ADD",code="0"}"#, 1.0);
    shows(
        &agent,
        r#"jackfield_calls_total{verb="ADD",code="102"}"#,
        1.0,
    );
    let operation = |verb: &str, network: &str, result: &str| {
        format!(
            r#"jackfield_operations_total{{verb="{verb}",network="{network}",result="{result}"}}"#
        )
    };
    let storage = format!("{space}/storage");
    shows(&agent, &operation("ADD", "cluster", "done"), 1.0);
    shows(&agent, &operation("ADD", &storage, "done"), 1.0);
    shows(&agent, &operation("ADD", "other", "failed"), 1.0);
    for phase in [
        "question",
        "plan",
        "journal",
        "delegates",
        "verify",
        "publish",
    ] {
        let count = format!(r#"jackfield_phase_seconds_count{{verb="ADD",phase="{phase}"}}"#);
        assert!(agent.metric(&count) >= Some(1.0), "{phase}");
    }
    let sum = |metric: &str| agent.metric(metric).unwrap();
    let delegates = sum(r#"jackfield_phase_seconds_sum{verb="ADD",phase="delegates"}"#);
    let bridges = sum(r#"jackfield_delegate_seconds_sum{plugin="bridge",verb="ADD"}"#);
    let calls = sum(r#"jackfield_call_seconds_sum{verb="ADD"}"#);
    assert!(bridges > 0.0 && bridges <= delegates * 1.01 && delegates < calls);
    let bridge = r#"jackfield_delegate_calls_total{plugin="bridge",verb="ADD",result="done"}"#;
    shows(&agent, bridge, 2.0);
    shows(&agent, "jackfield_attachments", 1.0);

    lab.del("web", &uid).succeeds();
    shows(&agent, r#"jackfield_calls_total{verb="DEL",code="0"}"#, 1.0);
    shows(&agent, &operation("DEL", &storage, "done"), 1.0);
    shows(&agent, "jackfield_attachments", 0.0);

    // The DEL above counted the records. The next one does not.
    let uid = lab.pod("again", &json!({NETWORKS: "storage"}));
    agent.wait_until_it_knows(3, 1);
    lab.add("again", &uid).succeeds();
    shows(&agent, "jackfield_attachments", 1.0);
    lab.del("again", &uid).succeeds();
    shows(&agent, "jackfield_attachments", 0.0);
}

#[test]
fn a_call_that_failed_is_one_line_with_pod_container_network_and_phase() {
    let (lab, agent) = Lab::with_agent();
    let lost = lab.pod("lost", &json!({NETWORKS: "nowhere"}));
    agent.wait_until_it_knows(1, 0);
    lab.add("lost", &lost).fails(102, &[]);
    let of = |separator: &str, name: &str| format!("{}{separator}{name}", lab.namespace);
    let (pod, container, network) = (of("/", "lost"), of("-", "lost"), of("/", "nowhere"));
    eventually("the line", || {
        agent.log().iter().any(|line| {
            let fields = &line["fields"];
            fields["pod"] == pod.as_str()
                && fields["container"] == container.as_str()
                && fields["network"] == network.as_str()
                && fields["phase"] == "plan"
                && fields["verb"] == "ADD"
                && fields["code"] == 102
                && fields["message"].as_str().unwrap().contains(&network)
        })
    });
}

#[test]
fn a_log_for_people_has_the_same_on_one_line() {
    let lab = Lab::new();
    let agent = AgentProcess::start_with(&lab, &["--log", "text"]);
    agent.wait_until_ready();
    let lost = lab.pod("lost", &json!({NETWORKS: "nowhere"}));
    lab.add("lost", &lost).fails(102, &[]);
    let pod = format!("pod=\\\"{}/lost\\\"", lab.namespace);
    eventually("the line", || {
        agent.logged(&["WARN", &pod, "phase=", "nowhere"])
    });
}

#[test]
fn a_hung_agent_holds_up_no_del_and_no_end_of_an_add() {
    let (lab, agent) = Lab::with_agent();
    let uid = lab.pod("web", &json!({}));
    agent.wait_until_it_knows(1, 0);
    lab.add("web", &uid).succeeds();
    agent.signal(Signal::SIGSTOP);
    // More than its queue holds.
    let ends: Vec<_> = (0..8).map(|_| lab.del("web", &uid).succeeds()).collect();
    agent.signal(Signal::SIGCONT);
    for end in ends {
        assert!(end.took < Duration::from_secs(2), "{end}");
    }
    shows(&agent, r#"jackfield_calls_total{verb="DEL",code="0"}"#, 8.0);
}

#[test]
fn a_record_is_on_the_disk_as_soon_as_the_answer_is_given() {
    let (lab, agent) = Lab::with_agent();
    let uid = lab.pod("web", &json!({}));
    agent.wait_until_it_knows(1, 0);
    let trace = lab.path("trace");
    let mut strace = Command::new("strace")
        .args(["-f", "-y", "-e", "trace=fsync", "-o"])
        .arg(&trace)
        .args(["-p", &agent.pid().to_string()])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("each thread is traced", || {
        let threads = fs::read_dir(format!("/proc/{}/task", agent.pid())).unwrap();
        threads.flatten().all(|thread| {
            let status = fs::read_to_string(thread.path().join("status"));
            status.is_ok_and(|text| !text.contains("TracerPid:\t0\n"))
        })
    });
    lab.add("web", &uid).succeeds();
    shows(&agent, "jackfield_synced_records_total", 1.0);
    strace.kill().unwrap();
    strace.wait().unwrap();
    let trace = fs::read_to_string(trace).unwrap();
    let record = format!("journal/sandboxes/{}-web@eth0>) = 0", lab.namespace);
    let synced: Vec<&str> = trace
        .lines()
        .filter(|line| line.contains("fsync("))
        .collect();
    assert!(synced[0].contains(&record), "{synced:?}");
    assert_eq!(synced.len(), 1, "{synced:?}");
}

#[test]
fn health_is_of_the_process_and_readiness_of_what_it_knows() {
    let lab = Lab::new();
    lab.proxy.down();
    let agent = AgentProcess::start(&lab);
    eventually("it lives", || {
        agent.get("/healthz").starts_with("HTTP/1.1 200")
    });
    let ready = agent.get("/readyz");
    assert!(
        ready.starts_with("HTTP/1.1 503") && ready.contains("pods, definitions"),
        "{ready}"
    );
    let age = r#"jackfield_cache_age_seconds{kind="pod"}"#;
    assert_eq!(agent.metric(age), None, "nothing has been heard");
    lab.proxy.heal();
    agent.wait_until_ready();
    let age = agent.metric(age).unwrap();
    assert!((0.0..30.0).contains(&age), "{age}");
}
