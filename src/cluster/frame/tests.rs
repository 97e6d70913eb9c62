//! Tests that valid messages are read and written, and that invalid messages are refused.

mod golden;

use super::*;
use crate::cluster::PodName;

fn question() -> ToAgent {
    ToAgent::Question(Question {
        pod: Some(PodName {
            namespace: "default".into(),
            name: "web".into(),
            uid: Some("u".into()),
        }),
        multus_namespace: "kube-system".into(),
        ..Question::default()
    })
}

#[test]
fn an_encoded_message_decodes_unchanged() {
    let installation = Installation {
        state: "multus".into(),
        message: "m".into(),
        is_news: true,
    };
    for message in [
        question(),
        ToAgent::Owed,
        ToAgent::Census,
        ToAgent::Pods,
        ToAgent::Installation(installation),
    ] {
        let frame = encode(&message, MAX_TO_AGENT).unwrap();
        let read: ToAgent = read(&mut frame.as_slice(), MAX_TO_AGENT).unwrap();
        assert_eq!(read, message);
    }
}

#[test]
fn an_undecoded_definition_arrives_decoded() {
    let text = br#"{"metadata":{"name":"a","namespace":"b"},"spec":{"config":"{\"type\":\"x\"}"}}"#;
    let object: ObjectRef = "b/a".parse().unwrap();
    let unread = Unread::of(text).unwrap();
    let frame = definition(&object, &unread).unwrap();
    let Ok(FromAgent::Definition(part)) = read(&mut frame.as_slice(), MAX_FROM_AGENT) else {
        panic!("expected a definition");
    };
    assert_eq!(part.0, object);
    assert_eq!(part.1.config.as_deref(), Some(r#"{"type":"x"}"#));
}

#[test]
fn an_incomplete_frame_shows_that_the_sender_is_gone() {
    let frame = encode(&question(), MAX_TO_AGENT).unwrap();
    for cut in 0..frame.len() {
        let error = read::<ToAgent>(&mut &frame[..cut], MAX_TO_AGENT).unwrap_err();
        assert!(error.is_gone(), "{cut}: {error}");
    }
}

#[test]
fn a_frame_with_an_invalid_header_is_refused() {
    let length = |header: &[u8; 8]| length(*header, MAX_TO_AGENT).unwrap_err();
    assert!(matches!(length(b"GET / HT"), FrameError::Foreign));
    let newer = length(b"JF\x00\x02\x00\x00\x00\x01");
    assert!(matches!(newer, FrameError::Version(2)));
    for (header, too_large) in [
        (b"JF\x00\x01\xff\xff\xff\xff", 4_294_967_295),
        (b"JF\x00\x01\x00\x10\x00\x01", 1_048_577),
    ] {
        let error = length(header);
        assert!(
            matches!(error, FrameError::TooLarge { length, limit: 1_048_576 } if length == too_large),
            "{error}"
        );
    }
    assert!(encode(&"x".repeat(MAX_TO_AGENT), MAX_TO_AGENT).is_err());
}

/// The agent keeps each check in memory and writes it as a line of the metrics page.
#[test]
fn an_examination_with_more_than_64_checks_is_refused() {
    let checks = |count: usize| {
        let check = r#"{"check":"a","findings":1}"#;
        let text = format!(
            r#"{{"examined":{{"checks":[{}]}}}}"#,
            vec![check; count].join(",")
        );
        serde_json::from_str::<ToAgent>(&text)
    };
    assert!(checks(64).is_ok());
    let error = checks(65).unwrap_err().to_string();
    assert!(error.contains("more than 64"), "{error}");
}

/// Another release may have other keys and the same version number in the header.
#[test]
fn a_message_may_have_unknown_and_missing_keys() {
    let newer = r#"{"question":{"pod":{"namespace":"a","name":"b","uid":null,"new":1},"new":[]}}"#;
    let ToAgent::Question(read) = serde_json::from_str(newer).unwrap() else {
        panic!("expected a question");
    };
    assert_eq!(read.pod.unwrap().name, "b");
    assert!(read.networks.is_empty());
    let older = r#"{"answer":{"pod":{"uid":"u"},"definitions":[]}}"#;
    let FromAgent::Answer(answer) = serde_json::from_str(older).unwrap() else {
        panic!("expected an answer");
    };
    assert_eq!(answer.pod.unwrap().uid.as_deref(), Some("u"));
}
