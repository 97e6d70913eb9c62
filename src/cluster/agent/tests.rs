use std::os::unix::net::UnixListener;
use std::sync::mpsc::{Receiver, channel};

use super::*;
use crate::cluster::{Pod, PodName};

/// An agent that answers each question with the pod's name for its UID, and tells what it was asked,
/// by the number of the connection.
fn agent(dir: &Path) -> (Agent, Receiver<(usize, String)>) {
    let socket = dir.join("agent.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let (heard, asked) = channel();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            while let Ok(ToAgent::Question(question)) = frame::read(&mut stream, MAX_TO_AGENT) {
                let name = question.pod.unwrap().name;
                let answer = Answer {
                    pod: Some(Pod {
                        uid: Some(name.clone()),
                        ..Pod::default()
                    }),
                    ..Answer::default()
                };
                let answer = FromAgent::Answer(Box::new(answer));
                heard.send((number, name)).unwrap();
                let frame = frame::encode(&answer, MAX_FROM_AGENT).unwrap();
                // Nobody may want it any more.
                let _ = stream.write_all(&frame);
            }
        }
    });
    (Agent::new(&socket, None, dir), asked)
}

fn question(pod: &str) -> Question {
    Question {
        pod: Some(PodName {
            namespace: "default".into(),
            name: pod.into(),
            uid: None,
        }),
        ..Question::default()
    }
}

fn answered(agent: &Agent, pod: &str) -> Option<String> {
    agent.ask(&question(pod)).unwrap().pod.unwrap().uid
}

#[test]
fn a_question_that_was_announced_is_sent_once() {
    let dir = tempfile::tempdir().unwrap();
    let (agent, asked) = agent(dir.path());
    agent.announce(&question("web"));
    assert_eq!(asked.recv().unwrap(), (0, "web".to_owned()));
    assert_eq!(answered(&agent, "web").as_deref(), Some("web"));
    assert_eq!(answered(&agent, "web").as_deref(), Some("web"));
    assert_eq!(asked.recv().unwrap(), (0, "web".to_owned()));
    assert!(asked.try_recv().is_err());
}

#[test]
fn the_answer_to_another_question_than_the_announced_is_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let (agent, asked) = agent(dir.path());
    agent.announce(&question("web"));
    assert_eq!(answered(&agent, "db").as_deref(), Some("db"));
    assert_eq!(asked.recv().unwrap(), (0, "web".to_owned()));
    assert_eq!(asked.recv().unwrap(), (1, "db".to_owned()));
}

#[test]
fn what_cannot_be_announced_is_asked_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let nobody = Agent::new(&dir.path().join("agent.sock"), None, dir.path());
    nobody.announce(&question("web"));
    assert!(nobody.ask(&question("web")).is_err());
    let (agent, _asked) = agent(dir.path());
    nobody.announce(&question("web"));
    drop(agent);
    assert_eq!(answered(&nobody, "web").as_deref(), Some("web"));
}
