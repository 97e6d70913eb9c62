//! Tests the client with recorded answers of kubelet v1.36.3, and with a fake server that injects
//! faults.

use std::time::{Duration, Instant};

use prost::Message;

use super::message::{AllocatableResponse, GetResponse, ListResponse};
use super::*;

#[path = "../../tests/fakes/pod_resources.rs"]
mod fake;
use fake::{FakeKubelet, NOT_FOUND, Reply, TOO_OFTEN};

/// The answer to `Get` for a pod with one VF of a device plugin.
const GET: &[u8] = include_bytes!("tests/get.pb");
/// The answer to `Get` for a pod with a ResourceClaim (DRA).
const GET_DRA: &[u8] = include_bytes!("tests/get-dra.pb");
/// The answer to `List`, with these two pods.
const LIST: &[u8] = include_bytes!("tests/list.pb");
/// The answer to `GetAllocatableResources`: four VFs on two NUMA nodes.
const ALLOCATABLE: &[u8] = include_bytes!("tests/allocatable.pb");

const VF: &str = "example.com/vf";

fn of_get(bytes: &[u8]) -> PodDevices {
    let answer = GetResponse::decode(bytes).unwrap();
    answer.pod_resources.unwrap().into()
}

fn vf1() -> DynamicDevice {
    DynamicDevice {
        claim: "default/drapod--vf1".to_owned(),
        driver: "vf.example.com".to_owned(),
        pool: "pool-a".to_owned(),
        device: "vf1".to_owned(),
        identity: None,
    }
}

#[test]
fn a_recorded_answer_about_one_pod_is_read() {
    let devices = of_get(GET);
    assert_eq!(devices.containers.len(), 1);
    assert_eq!(devices.containers[0].name, "c");
    assert_eq!(devices.ids_of(VF).collect::<Vec<_>>(), ["0000:01:10.1"]);
    assert_eq!(devices.dynamic().count(), 0);
}

#[test]
fn a_recorded_claim_without_a_pci_address_is_read() {
    let devices = of_get(GET_DRA);
    assert_eq!(devices.dynamic().collect::<Vec<_>>(), [&vf1()]);
    assert_eq!(devices.containers[0].resources, []);
}

#[test]
fn the_recorded_lists_of_pods_and_of_resources_are_read() {
    let list = ListResponse::decode(LIST).unwrap();
    let names: Vec<&str> = list
        .pod_resources
        .iter()
        .map(|pod| pod.name.as_str())
        .collect();
    assert_eq!(names, ["web", "drapod"]);
    let all = AllocatableResponse::decode(ALLOCATABLE).unwrap();
    assert_eq!(all.devices.len(), 4);
    assert!(all.devices.iter().all(|it| it.resource_name == VF));
}

#[test]
fn a_truncated_or_invalid_answer_causes_no_panic() {
    for length in 0..LIST.len() {
        let _ = ListResponse::decode(&LIST[..length]);
    }
    assert!(GetResponse::decode(&GET[..GET.len() - 1]).is_err());
    assert!(GetResponse::decode(&b"\xff\xff\xff"[..]).is_err());
}

#[test]
fn entries_of_one_resource_in_a_container_are_merged() {
    let pieces = [(VF, "0000:02:00.3"), ("x.com/y", "z"), (VF, "0000:02:00.2")];
    let pod = fake::pod("demo", "web", &[fake::container("c", &pieces, &[])]);
    let Reply::Message(bytes) = fake::pods(&[pod]) else {
        panic!("the fake kubelet must answer with a message");
    };
    let devices = of_get(&bytes);
    assert_eq!(devices.containers[0].resources.len(), 2);
    let ids: Vec<&str> = devices.ids_of(VF).collect();
    assert_eq!(ids, ["0000:02:00.3", "0000:02:00.2"]);
}

/// Asks a fake kubelet for `resources` of the pod `default/web`. Returns the devices and the names
/// of the calls.
fn asked(
    resources: &[&str],
    reply: impl Fn(&str, usize) -> Reply + Send + Sync + 'static,
) -> (PodDevices, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("kubelet.sock");
    let server = FakeKubelet::serve(&socket, reply);
    let devices = ask(&socket, "default", "web", resources);
    (devices, server.asked())
}

fn captured(method: &str) -> Reply {
    Reply::Message(match method {
        "Get" => GET.to_vec(),
        "List" => LIST.to_vec(),
        _ => ALLOCATABLE.to_vec(),
    })
}

#[test]
fn the_client_makes_one_call_if_the_pod_has_every_resource() {
    let (devices, calls) = asked(&[VF], |method, _| captured(method));
    assert_eq!(devices, of_get(GET));
    assert_eq!(calls, ["Get"]);
}

#[test]
fn the_client_lists_all_pods_if_kubelet_does_not_offer_get() {
    for refusal in [
        Reply::Refusal(12, "unknown method Get for service v1.PodResourcesLister"),
        Reply::Refusal(2, "PodResources API Get method disabled"),
    ] {
        let (devices, calls) = asked(&[VF], move |method, _| match method {
            "Get" => refusal.clone(),
            method => captured(method),
        });
        assert_eq!(devices.ids_of(VF).collect::<Vec<_>>(), ["0000:01:10.1"]);
        assert_eq!(calls, ["Get", "List"]);
    }
}

#[test]
fn a_pod_that_kubelet_does_not_know_is_no_failure() {
    let (devices, calls) = asked(&[VF], |method, _| match method {
        "Get" => NOT_FOUND,
        method => captured(method),
    });
    assert!(!devices.is_known());
    assert_eq!(devices.failure, None);
    assert_eq!(devices.is_on_node(VF), Some(true));
    assert_eq!(calls, ["Get", "GetAllocatableResources"]);
}

#[test]
fn the_client_asks_for_node_resources_only_if_the_pod_lacks_one() {
    let (devices, calls) = asked(&[VF, "bridge.network.kubevirt.io/br1"], |method, _| {
        captured(method)
    });
    assert_eq!(
        devices.is_on_node("bridge.network.kubevirt.io/br1"),
        Some(false)
    );
    assert_eq!(devices.is_on_node(VF), Some(true));
    assert_eq!(calls, ["Get", "GetAllocatableResources"]);
    let (devices, _) = asked(&["x.com/y"], |method, _| match method {
        "Get" => captured(method),
        _ => Reply::Refusal(2, "PodResources API GetAllocatableResources disabled"),
    });
    assert_eq!(devices.is_on_node("x.com/y"), None);
    assert_eq!(devices.failure, None, "a disabled method is not a failure");
}

#[test]
fn a_call_that_kubelet_rejects_as_too_frequent_is_retried() {
    let (devices, calls) = asked(&[VF], |method, before| match before {
        0..3 => TOO_OFTEN,
        _ => captured(method),
    });
    assert_eq!(devices, of_get(GET));
    assert_eq!(calls.len(), 4);
    // The last call may begin too late to get an answer. The refusal is still the error.
    let (devices, _) = asked(&[VF], |_, before| match before {
        0..3 => TOO_OFTEN,
        _ => Reply::Silence,
    });
    let is_refusal =
        |line: &str| line.contains("rejected by rate limit") && line.contains("too often");
    let line = devices.failure.unwrap();
    assert!(is_refusal(&line), "{line}");
    let begin = Instant::now();
    let (devices, calls) = asked(&[VF], |_, _| TOO_OFTEN);
    let line = devices.failure.unwrap();
    assert!(is_refusal(&line), "{line}");
    assert!(calls.len() > 5, "{}", calls.len());
    assert!(
        begin.elapsed() >= Duration::from_secs(1),
        "the client gave up early"
    );
}

#[test]
fn every_failure_of_kubelet_is_one_line_with_socket_and_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("none.sock");
    let away = ask(&socket, "default", "web", &[VF]).failure.unwrap();
    std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let dead = ask(&socket, "default", "web", &[VF]).failure.unwrap();
    let slow = asked(&[VF], |_, _| Reply::Silence).0.failure.unwrap();
    let garbage = |bytes: &'static [u8]| {
        let devices = asked(&[VF], move |_, _| Reply::Garbage(bytes)).0;
        devices.failure.unwrap()
    };
    let table = [
        (away, "the socket does not exist"),
        (dead, "no process listens on the socket"),
        (slow, "no answer within 2000 ms"),
        (garbage(b""), "cut off"),
        (garbage(b"\x01\0\0\0\x01x"), "compressed"),
        (garbage(b"\0\0\0\0\x05x"), "length"),
        (garbage(b"\0\0\0\0\x02\xff\xff"), "broken"),
        (
            asked(&[VF], |_, _| Reply::Refusal(13, "internal"))
                .0
                .failure
                .unwrap(),
            "gRPC code 13: internal",
        ),
    ];
    for (line, words) in table {
        assert!(line.contains(words), "{words}: {line}");
        assert!(line.starts_with("kubelet's pod-resources at /"), "{line}");
        assert!(line.contains(".sock: ") && line.contains("; "), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }
}

#[test]
fn the_client_reconnects_after_kubelet_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("kubelet.sock");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let kubelet = PodResources::at(&socket);
    for _ in 0..2 {
        let server = FakeKubelet::serve(&socket, |method, _| captured(method));
        for _ in 0..2 {
            let devices = runtime.block_on(kubelet.devices_of("default", "web", &[VF]));
            assert_eq!(devices, of_get(GET));
        }
        assert_eq!(server.asked(), ["Get", "Get"]);
        drop(server);
    }
}

#[test]
fn a_connection_without_an_answer_in_time_is_not_used_again() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("kubelet.sock");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let server = FakeKubelet::serve(&socket, |method, before| match before {
        0 => TOO_OFTEN,
        1 => Reply::Silence,
        _ => captured(method),
    });
    let kubelet = PodResources::at(&socket);
    let devices = || runtime.block_on(kubelet.devices_of("default", "web", &[VF]));
    assert!(devices().failure.is_some());
    assert_eq!(devices(), of_get(GET));
    assert_eq!(server.connections(), 2);
}
