//! The socket against whoever else may talk on it.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use jackfield::cluster::frame::{self, FromAgent, MAX_FROM_AGENT, MAX_TO_AGENT, ToAgent};
use jackfield::cluster::{PodName, Question};
use serde_json::json;

use crate::lab::{AgentProcess, Lab, eventually};

fn question(lab: &Lab, pod: &str, uid: &str) -> ToAgent {
    ToAgent::Question(Question {
        pod: Some(PodName {
            namespace: lab.namespace.clone(),
            name: pod.into(),
            uid: Some(uid.into()),
        }),
        ..Question::default()
    })
}

/// Sends bytes; the answer is what comes before the agent hangs up, or within five seconds.
fn say(lab: &Lab, bytes: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(lab.socket()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let _ = stream.write_all(bytes);
    let mut answer = vec![0; 4096];
    let length = stream.read(&mut answer).unwrap_or_default();
    answer.truncate(length);
    answer
}

fn refusal(answer: &[u8]) -> String {
    match frame::read(&mut &*answer, MAX_FROM_AGENT).unwrap() {
        FromAgent::Refused(cause) => cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nonsense_truncated_and_oversized_messages_harm_nobody() {
    let (lab, agent) = Lab::with_agent();
    let uid = lab.pod("web", &json!({}));
    assert!(refusal(&say(&lab, b"GET / HTTP/1.1\r\n\r\n")).contains("is not Jackfield's"));
    assert!(refusal(&say(&lab, b"JF\x00\x01\xff\xff\xff\xff")).contains("4294967295 bytes"));
    assert!(refusal(&say(&lab, b"JF\x00\x01\x00\x00\x00\x02{]")).contains("cannot be read"));
    let whole = frame::encode(&question(&lab, "web", &uid), MAX_TO_AGENT).unwrap();
    for cut in [1, 7, 8, whole.len() - 1] {
        let mut stream = UnixStream::connect(lab.socket()).unwrap();
        stream.write_all(&whole[..cut]).unwrap();
    }
    // Some who connect and say nothing.
    let silent: Vec<UnixStream> = (0..64)
        .map(|_| UnixStream::connect(lab.socket()).unwrap())
        .collect();
    lab.add("web", &uid).succeeds();
    drop(silent);
    assert_eq!(agent.metric("jackfield_refused_messages_total"), Some(3.0));
}

#[test]
fn a_name_that_would_change_the_url_of_a_request_is_no_pods() {
    let (lab, _agent) = Lab::with_agent();
    let asked = question(&lab, "../../../../v1/secrets?x=", "u");
    let answer = refusal(&say(&lab, &frame::encode(&asked, MAX_TO_AGENT).unwrap()));
    assert!(answer.contains("is not known in the cluster"), "{answer}");
    let seen = lab.proxy.seen();
    assert!(
        seen.iter().all(|request| !request.contains("secrets")),
        "{seen:?}"
    );
}

#[test]
fn a_plugin_of_another_version_gets_a_line_that_says_so() {
    let (lab, _agent) = Lab::with_agent();
    let mut newer = frame::encode(&ToAgent::Owed, MAX_TO_AGENT).unwrap();
    newer[3] = 2;
    let answer = refusal(&say(&lab, &newer));
    assert!(
        answer.contains(
            "it speaks protocol version 2, but this release speaks protocol version 1; use the same"
        ),
        "{answer}"
    );
    let unknown = br#""later-invention""#;
    let mut frame = vec![
        b'J',
        b'F',
        0,
        1,
        0,
        0,
        0,
        u8::try_from(unknown.len()).unwrap(),
    ];
    frame.extend(unknown);
    assert!(refusal(&say(&lab, &frame)).contains("use the same release of plugin and agent"));
}

/// What the first release says, byte for byte, and what a later one may say within one version.
#[test]
fn plugins_of_an_older_and_of_a_newer_release_are_answered() {
    let (lab, agent) = Lab::with_agent();
    let uid = lab.pod("web", &json!({}));
    let pod = json!({"namespace": lab.namespace, "name": "web", "uid": uid});
    let older = json!({"question": {"pod": pod, "annotations": null, "networks": [],
                       "multus_namespace": "kube-system"}});
    let newer = json!({"question": {"pod": pod, "invented": {"later": true}, "networks": []}});
    for message in [&older, &newer] {
        let said = say(&lab, &frame::encode(message, MAX_TO_AGENT).unwrap());
        match frame::read(&mut said.as_slice(), MAX_FROM_AGENT).unwrap() {
            FromAgent::Answer(answer) => {
                assert_eq!(answer.pod.unwrap().uid.as_deref(), Some(uid.as_str()));
            }
            other => panic!("{message}: {other:?}"),
        }
    }
    // A newer one's last words about a call: what is known of them counts.
    let over = json!({"over": {"verb": "MIGRATE", "code": 0, "took": 7, "invented": [1],
                      "phases": [{"phase": "teleport", "took": 5, "energy": 9}]}});
    assert!(say(&lab, &frame::encode(&over, MAX_TO_AGENT).unwrap()).is_empty());
    let phase = r#"jackfield_phase_seconds_count{verb="MIGRATE",phase="teleport"}"#;
    eventually("it is counted", || agent.metric(phase) == Some(1.0));
}

/// A plugin that speaks of the end of calls, and an agent that has never heard of that.
#[test]
fn an_agent_of_an_older_release_is_reminded_all_the_same() {
    let lab = Lab::new();
    let uid = lab.pod("web", &json!({}));
    std::fs::create_dir_all(lab.path("run")).unwrap();
    let listener = UnixListener::bind(lab.socket()).unwrap();
    let answer = json!({"answer": {"pod": {"uid": uid}, "definitions": []}});
    let older = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _: serde_json::Value = frame::read(&mut stream, MAX_TO_AGENT).unwrap();
        let frame = frame::encode(&answer, MAX_FROM_AGENT).unwrap();
        stream.write_all(&frame).unwrap();
        frame::read::<serde_json::Value>(&mut stream, MAX_TO_AGENT).unwrap()
    });
    lab.add("web", &uid).succeeds();
    assert_eq!(
        older.join().unwrap(),
        json!("owed"),
        "before anything that it does not know"
    );
    assert_eq!(lab.owed().len(), 1);
}

#[test]
fn an_agent_of_another_version_gives_the_plugin_a_line_that_says_so() {
    let lab = Lab::new();
    let uid = lab.pod("web", &json!({}));
    std::fs::create_dir_all(lab.path("run")).unwrap();
    let listener = UnixListener::bind(lab.socket()).unwrap();
    let newer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = [0; 64];
        assert!(stream.read(&mut asked).unwrap() > 0);
        stream.write_all(b"JF\x00\x02\x00\x00\x00\x02{}").unwrap();
    });
    let socket = lab.socket().display().to_string();
    lab.add("web", &uid).fails(
        107,
        &[
            "agent at",
            &socket,
            "it speaks protocol version 2, but this release",
        ],
    );
    newer.join().unwrap();
}

#[test]
fn an_agent_that_answers_garbage_or_floods_fails_the_add_in_one_line() {
    for (answer, expected) in [
        (&b"HTTP/1.1 400"[..], "is not Jackfield's"),
        (&b"JF\x00\x01\x7f\xff\xff\xff"[..], "2147483647 bytes"),
        (&b"JF\x00\x01\x00\x00\x00\x02[]"[..], "cannot be read"),
    ] {
        let lab = Lab::new();
        let uid = lab.pod("web", &json!({}));
        std::fs::create_dir_all(lab.path("run")).unwrap();
        let listener = UnixListener::bind(lab.socket()).unwrap();
        let fake = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 64]).unwrap() > 0);
            stream.write_all(answer).unwrap();
            // Until the plugin has read it and goes.
            let _ = stream.read(&mut [0; 4096]);
        });
        lab.add("web", &uid).fails(107, &["agent at", expected]);
        fake.join().unwrap();
    }
}

#[test]
fn nobody_but_root_may_ask() {
    let (lab, agent) = Lab::with_agent();
    let directory = lab.path("run");
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&directory), mode(&lab.socket())), (0o700, 0o600));
    // Even if somebody opened the doors.
    for path in [&lab.path(""), &directory, &lab.socket()] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let child = Command::new("setpriv")
        .args(nobody)
        .args([
            "curl",
            "--silent",
            "--http0.9",
            "http://agent/",
            "--unix-socket",
        ])
        .arg(lab.socket())
        .env_clear()
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        !String::from_utf8_lossy(&output.stdout).contains("answer"),
        "{output:?}"
    );
    eventually("it is refused", || {
        agent.logged(&["only root may use the socket", "65534"])
    });
}

#[test]
fn a_path_that_is_taken_is_named_and_what_is_there_left_alone() {
    let lab = Lab::new();
    std::fs::create_dir_all(lab.path("run")).unwrap();
    std::fs::write(lab.socket(), "precious").unwrap();
    let mut agent = AgentProcess::start(&lab);
    assert_eq!(agent.wait(), Some(1));
    let socket = lab.socket().display().to_string();
    assert!(
        agent.logged(&[
            "socket",
            &socket,
            "not a socket has this name; remove the file"
        ]),
        "{:?}",
        agent.log()
    );
    assert_eq!(std::fs::read_to_string(lab.socket()).unwrap(), "precious");
}

#[test]
fn a_new_agent_waits_for_the_old_one_and_takes_over_without_a_gap_that_fails_an_add() {
    let (lab, mut old) = Lab::with_agent();
    let uid = lab.pod("web", &json!({}));
    let new = AgentProcess::start(&lab);
    eventually("it waits", || new.logged(&["another agent still listens"]));
    lab.add("web", &uid).succeeds();
    lab.del("web", &uid).succeeds();
    old.signal(nix::sys::signal::Signal::SIGTERM);
    lab.add("web", &uid).succeeds();
    assert_eq!(old.wait(), Some(0));
    new.wait_until_ready();
    assert!(lab.socket().exists());
}
