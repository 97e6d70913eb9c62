//! Tests that the JSON of each message has not changed, and that this release can read the messages
//! of the previous release.

use std::collections::BTreeMap;

use super::*;
use crate::cluster::owed_writes::tests::{example as publication, example_without_claims};
use crate::cluster::{
    CheckFigure, Container, OnRecord, Pod, PodAnnotations, PodName, figures::NetworkFigure,
    figures::PhaseFigure, figures::PluginFigure,
};
use crate::golden;
use crate::kubelet::{ContainerDevices, DynamicDevice, PodDevices, Resource, SliceIdentity};
use crate::npwg::{Dialect, IpamClaim, NetworksDigest};

fn pod() -> PodName {
    publication().pod().clone()
}

fn object() -> ObjectRef {
    "demo/n".parse().unwrap()
}

fn definition_of(config: Option<&str>) -> Definition {
    Definition {
        object: object(),
        config: config.map(str::to_owned),
        resource_name: Some("intel.com/sriov".to_owned()),
    }
}

fn question() -> Question {
    Question {
        pod: Some(pod()),
        annotations: Some(PodAnnotations {
            networks: Some("n".to_owned()),
            default_network: Some("kube-system/d".to_owned()),
        }),
        is_static: true,
        networks: vec![object()],
        multus_namespace: "kube-system".to_owned(),
        dialect: Dialect::V1_0,
        kubelet: Some("/var/lib/kubelet/pod-resources/kubelet.sock".into()),
        differing: true,
        parts: true,
        patience: Default::default(),
    }
}

fn answer() -> Answer {
    let dynamic = DynamicDevice {
        claim: "demo/c".to_owned(),
        driver: "d.example.com".to_owned(),
        pool: "p".to_owned(),
        device: "vf0".to_owned(),
        identity: Some(SliceIdentity {
            resource: Some("intel.com/sriov".to_owned()),
            id: Some("0000:01:10.1".to_owned()),
        }),
    };
    Answer {
        pod: Some(Pod {
            uid: Some("u".to_owned()),
            annotations: question().annotations.unwrap(),
            devices: BTreeMap::new(),
            containers: vec![Container {
                name: "app".to_owned(),
                requests: BTreeMap::from([("intel.com/sriov".to_owned(), 1)]),
                ends_first: true,
            }],
            has_claims: true,
        }),
        definitions: vec![
            (object(), Ok(definition_of(Some("{}")))),
            ("demo/missing".parse().unwrap(), Err("not found".to_owned())),
        ],
        claims: vec![(
            "c".to_owned(),
            Ok(IpamClaim {
                object: "demo/c".parse().unwrap(),
                network: "n".to_owned(),
                interface: "net1".to_owned(),
                ips: vec!["10.1.0.7/24".parse().unwrap()],
            }),
        )],
        kubelet: Some(PodDevices {
            containers: vec![ContainerDevices {
                name: "app".to_owned(),
                resources: vec![Resource {
                    name: "intel.com/sriov".to_owned(),
                    ids: vec!["0000:01:10.0".to_owned()],
                }],
                dynamic: vec![dynamic],
            }],
            on_node: Some(vec!["intel.com/sriov".to_owned()]),
            failure: Some("f".to_owned()),
        }),
        differing: vec![sandbox()],
        wants_sandboxes: true,
    }
}

fn sandbox() -> SandboxNetworks {
    SandboxNetworks {
        container: "c1".parse().unwrap(),
        ifname: "eth0".parse().unwrap(),
        pod: Some(pod()),
        networks: NetworksDigest::of("n"),
    }
}

fn figures() -> Figures {
    Figures {
        verb: "ADD".into(),
        pod: Some("demo/web".to_owned()),
        container: Some("c1".to_owned()),
        code: 11,
        failure: Some("f".to_owned()),
        last: Some("plan".into()),
        took: 1_000,
        phases: vec![PhaseFigure {
            phase: "plan".into(),
            took: 10,
        }],
        networks: vec![NetworkFigure {
            network: "demo/n".to_owned(),
            is_unknown: true,
            done: true,
        }],
        plugins: vec![PluginFigure {
            plugin: "sriov".to_owned(),
            verb: "ADD".into(),
            done: true,
            took: 20,
        }],
        on_record: Some(OnRecord {
            attachments: 2,
            owed: 1,
            unrestored: vec!["0000:01:10.0".to_owned()],
        }),
        sandbox: Some(sandbox()),
        agent_silent: Some(30),
    }
}

fn census() -> Census {
    Census {
        version: Some("0.1.0".to_owned()),
        node: "node1".to_owned(),
        listed: true,
        unreachable: Some("refused".to_owned()),
        pods: vec![pod()],
        definitions: vec![object()],
        broken: vec!["b".to_owned()],
    }
}

fn to_agent() -> Vec<ToAgent> {
    vec![
        ToAgent::Question(question()),
        ToAgent::Owed,
        ToAgent::Over(Box::new(figures())),
        ToAgent::Examined(Examination {
            checks: vec![CheckFigure {
                check: "journal".into(),
                findings: 1,
            }],
        }),
        ToAgent::Keep(publication()),
        ToAgent::Census,
        ToAgent::Pods,
        ToAgent::Installation(Installation {
            state: "multus".into(),
            message: "m".to_owned(),
            is_news: true,
        }),
        ToAgent::Sandboxes {
            list: vec![sandbox()],
            is_last: true,
        },
    ]
}

fn from_agent() -> Vec<FromAgent> {
    vec![
        FromAgent::Definition(Box::new((object(), definition_of(Some(r#"{"type":"x"}"#))))),
        FromAgent::Answer(Box::new(answer())),
        FromAgent::Kept,
        FromAgent::Census(Box::new(census())),
        FromAgent::Refused("r".to_owned()),
    ]
}

/// The JSON of each message, one message per line.
fn lines<T: Serialize>(messages: &[T]) -> Vec<u8> {
    let mut lines = Vec::new();
    for message in messages {
        let frame = encode(message, MAX_FROM_AGENT).unwrap();
        lines.extend_from_slice(&frame[HEADER..]);
        lines.push(b'\n');
    }
    lines
}

/// The messages of the previous release.
fn previous<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let text = golden::previous(name);
    let lines = text.split(|byte| *byte == b'\n');
    lines
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

#[test]
fn golden_frame() {
    let frame = encode(&ToAgent::Owed, MAX_TO_AGENT).unwrap();
    assert_eq!(frame, b"JF\x00\x01\x00\x00\x00\x06\"owed\"");
}

#[test]
fn golden_messages() {
    golden::assert_current("to-agent.jsonl", &lines(&to_agent()));
    golden::assert_current("from-agent.jsonl", &lines(&from_agent()));
}

/// The agent passes on the configuration from the API server unchanged.
#[test]
fn golden_definition() {
    let unread = Unread {
        object: object(),
        config: Some(serde_json::from_str(r#""{\"type\":\"x\"}""#).unwrap()),
        resource_name: Some("intel.com/sriov".to_owned()),
    };
    let frame = definition(&object(), &unread).unwrap();
    let expected = lines(&from_agent()[..1]);
    assert_eq!(frame[HEADER..], expected[..expected.len() - 1]);
}

#[test]
fn golden_messages_of_the_previous_release() {
    let mut figures = figures();
    figures.container = None;
    figures.agent_silent = None;
    figures.sandbox = None;
    figures.networks[0].is_unknown = false;
    figures.on_record.as_mut().unwrap().unrestored.clear();
    let is_known = |message: &ToAgent| {
        use ToAgent::{Examined, Installation, Over, Pods, Sandboxes};
        !matches!(
            message,
            Examined(_) | Installation(_) | Over(_) | Pods | Sandboxes { .. }
        )
    };
    let mut expected = to_agent();
    expected.retain(is_known);
    for message in &mut expected {
        match message {
            ToAgent::Question(question) => question.differing = false,
            ToAgent::Keep(publication) => *publication = example_without_claims(),
            _ => {}
        }
    }
    expected.insert(2, ToAgent::Over(Box::new(figures)));
    assert_eq!(previous::<ToAgent>("to-agent.jsonl"), expected);

    let mut expected = from_agent();
    for message in &mut expected {
        match message {
            FromAgent::Census(census) => census.unreachable = None,
            FromAgent::Answer(answer) => {
                answer.differing.clear();
                answer.wants_sandboxes = false;
            }
            _ => {}
        }
    }
    assert_eq!(previous::<FromAgent>("from-agent.jsonl"), expected);
}
