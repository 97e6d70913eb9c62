use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::sync::mpsc::{Receiver, channel};

use super::connection::DescriptorError;
use super::*;
use crate::cluster::frame::MAX_FROM_AGENT;
use crate::cluster::{Figures, Pod, PodName};

/// Starts a fake agent. Each of its answers has the pod's name in place of the pod's UID. For each
/// question, the channel receives the number of the connection and the pod's name.
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
                // The plugin may have closed the connection.
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

fn is_no_agent(error: &ClusterError, is_expected: impl Fn(&AgentProblem) -> bool) -> bool {
    matches!(error, ClusterError::Agent(_, source) if is_expected(source))
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn answered(agent: &Agent, pod: &str) -> Option<String> {
    agent.ask(&question(pod), soon()).unwrap().pod.unwrap().uid
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
fn an_unannounced_question_gets_its_own_answer() {
    let dir = tempfile::tempdir().unwrap();
    let (agent, asked) = agent(dir.path());
    agent.announce(&question("web"));
    assert_eq!(answered(&agent, "db").as_deref(), Some("db"));
    assert_eq!(asked.recv().unwrap(), (0, "web".to_owned()));
    assert_eq!(asked.recv().unwrap(), (1, "db".to_owned()));
}

#[test]
fn a_question_that_could_not_be_announced_is_asked_later() {
    let dir = tempfile::tempdir().unwrap();
    let nobody = Agent::new(&dir.path().join("agent.sock"), None, dir.path());
    nobody.announce(&question("web"));
    assert!(nobody.ask(&question("web"), soon()).is_err());
    let (agent, _asked) = agent(dir.path());
    nobody.announce(&question("web"));
    drop(agent);
    assert_eq!(answered(&nobody, "web").as_deref(), Some("web"));
}

/// Starts a fake agent that sends `words` on every connection, one byte every 50 ms.
fn trickles(dir: &Path, words: Vec<u8>) -> Agent {
    let socket = dir.join("agent.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, words) = (stream.unwrap(), words.clone());
            std::thread::spawn(move || {
                for byte in words {
                    std::thread::sleep(Duration::from_millis(50));
                    if stream.write_all(&[byte]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    Agent::new(&socket, None, dir)
}

#[test]
fn reading_a_slow_answer_stops_at_the_deadline() {
    let dir = tempfile::tempdir().unwrap();
    let mut words = b"JF\x00\x01\x00\x00\x04\x00".to_vec();
    words.resize(frame::HEADER + 1024, b' ');
    let agent = trickles(dir.path(), words);
    for ask in [
        |agent: &Agent, until| agent.ask(&question("web"), until).map(drop),
        |agent: &Agent, until| agent.ready(&Question::default(), until).map(drop),
    ] {
        let begun = Instant::now();
        let error = ask(&agent, begun + Duration::from_secs(1)).unwrap_err();
        assert!(
            is_no_agent(&error, |it| matches!(it, AgentProblem::Late)),
            "{error}"
        );
        // All the bytes would take 50 s.
        assert!(begun.elapsed() < Duration::from_secs(10), "{error}");
    }
}

#[test]
fn a_call_gives_up_at_the_deadline_if_the_agent_is_busy() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("agent.sock");
    let listener = rustix::net::socket(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::STREAM,
        None,
    )
    .unwrap();
    let address = rustix::net::SocketAddrUnix::new(&socket).unwrap();
    rustix::net::bind(&listener, &address).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let _fills_the_queue = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    let agent = Agent::new(&socket, None, dir.path());
    let begun = Instant::now();
    assert!(
        agent
            .ready(&Question::default(), begun + Duration::from_secs(1))
            .is_err()
    );
    agent.announce(&question("web"));
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn the_plugin_refuses_a_symlink_or_file_in_place_of_the_socket() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = dir.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let (agent, _asked) = agent(&elsewhere);
    assert_eq!(answered(&agent, "web").as_deref(), Some("web"));
    let link = dir.path().join("link.sock");
    std::os::unix::fs::symlink(elsewhere.join("agent.sock"), &link).unwrap();
    let file = dir.path().join("file.sock");
    std::fs::write(&file, "").unwrap();
    for path in [&link, &file] {
        let agent = Agent::new(path, None, dir.path());
        let error = agent.ask(&question("web"), soon()).unwrap_err();
        let is_not_socket = is_no_agent(&error, |it| matches!(it, AgentProblem::NotSocket));
        assert!(is_not_socket, "{error}");
    }
}

/// The fake agent sends the descriptor of a socket with `SO_LINGER`. If the plugin closed this
/// descriptor, `close` would block for the linger time, even beyond the deadline of the call. So
/// the plugin leaves the descriptor open until it exits. At the exit, the kernel does not linger.
#[test]
fn a_lingering_socket_from_the_agent_does_not_delay_the_call() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("agent.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        let peer = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let lingering = std::net::TcpStream::connect(peer.local_addr().unwrap()).unwrap();
            let _accepted = peer.accept().unwrap();
            let minute = Some(Duration::from_secs(60));
            rustix::net::sockopt::set_socket_linger(&lingering, minute).unwrap();
            lingering.set_nonblocking(true).unwrap();
            // Fill the buffers of both sockets, because `close` waits only while the send buffer
            // contains data.
            while (&lingering).write(&[0; 65_536]).is_ok() {}
            let _ = connection::send_with(&stream, b"JF\x00\x01", Some(lingering.into()));
            std::mem::forget((_accepted, stream));
        }
    });
    let agent = Agent::new(&socket, None, dir.path());
    let begun = Instant::now();
    let error = agent.ask(&question("web"), soon()).unwrap_err();
    let ClusterError::Agent(_, AgentProblem::Frame(FrameError::Io(source))) = &error else {
        panic!("{error}");
    };
    let sent_descriptor = source
        .get_ref()
        .is_some_and(|it| it.is::<DescriptorError>());
    assert!(sent_descriptor, "{error}");
    drop(agent);
    assert!(begun.elapsed() < Duration::from_secs(20));
}

/// The call closes its connection without reading from it. If the connection contained descriptors,
/// the kernel would close them at the same time, which may take long.
#[test]
fn an_agent_cannot_send_descriptors_to_a_call_that_only_reports() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("agent.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let agent = Agent::new(&socket, None, dir.path());
    agent.over(Figures::default(), &|| None);
    let (stream, _) = listener.accept().unwrap();
    let sent = connection::send_with(
        &stream,
        b"JF",
        Some(std::io::stdin().as_fd().try_clone_to_owned().unwrap()),
    );
    assert_eq!(sent.unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
    let mut told = [0; 2];
    (&stream).read_exact(&mut told).unwrap();
}

#[test]
fn an_answer_with_too_many_elements_is_refused() {
    let parts = vec![r#"["a/b",{"Err":""}]"#; 300].join(",");
    let answer = format!(r#"{{"answer":{{"definitions":[{parts}]}}}}"#);
    let error = serde_json::from_str::<FromAgent>(&answer).unwrap_err();
    assert!(error.to_string().contains("more than 256"), "{error}");
}

#[test]
fn the_definitions_before_an_answer_have_limits() {
    let part = |config: usize, resource: usize| {
        let definition = serde_json::json!({"object": "a/b", "config": "x".repeat(config),
            "resource_name": "r".repeat(resource)});
        let part = serde_json::json!({"definition": ["a/b", definition]});
        frame::encode(&part, MAX_FROM_AGENT).unwrap()
    };
    let answer = frame::encode(&FromAgent::Answer(Box::default()), MAX_FROM_AGENT).unwrap();
    for (part, count, is_received) in [
        (part(2 << 20, 1), 4, true),
        (part(2 << 20, 1), 5, false),
        (part(1, 15 << 20), 1, true),
        (part(1, 15 << 20), 2, false),
        (part(1, 1), 257, false),
    ] {
        let frames = [part.repeat(count), answer.clone()].concat();
        let received = reply::receive(&mut frames.as_slice());
        assert_eq!(received.is_ok(), is_received, "{} {count}", part.len());
        if let Err(error) = received {
            assert!(matches!(error, FrameError::Definitions { .. }), "{error}");
        }
    }
}

#[test]
fn a_removal_is_dropped_if_a_kubeconfig_replaces_the_agent() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("agent.sock");
    let kubeconfig = dir.path().join("kubeconfig");
    let pod = question("web").pod.unwrap();
    let removal = Publication::new(pod, None, Vec::new());
    for (kubeconfig, kept) in [(Some(&*kubeconfig), 0), (None, 1)] {
        let agent = Agent::new(&socket, kubeconfig, dir.path());
        agent.withdraw(&removal);
        assert_eq!(agent.owed.names().unwrap().len(), kept);
    }
}
