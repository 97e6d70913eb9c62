//! The API server as it is on bad days: down, slow, refusing, forgetful.

use std::fs;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::json;

use crate::lab::{AgentProcess, Fault, Lab, NETWORKS, eventually};

/// A fault on the first `count` patches.
fn first_patches(lab: &Lab, count: usize, fault: Fault) {
    let mut left = count;
    lab.proxy.fault(move |method, _| {
        let hit = *method == Method::PATCH && left > 0;
        left -= usize::from(hit);
        hit.then(|| fault.clone())
    });
}

#[test]
fn while_the_api_server_is_down_known_pods_are_attached_and_told_of_afterwards() {
    let (lab, agent) = Lab::with_agent();
    lab.definition("storage", "10.2.0.5/24");
    let uid = lab.pod("web", &json!({NETWORKS: "storage"}));
    agent.wait_until_it_knows(1, 1);
    lab.proxy.down();
    lab.add("web", &uid).succeeds();
    eventually("a failed attempt", || {
        agent.logged(&["still owed", "/web", "does not answer"])
    });
    assert_eq!(agent.metric("jackfield_owed_writes"), Some(1.0));
    lab.proxy.heal();
    assert_eq!(lab.wait_for_status("web").as_array().unwrap().len(), 2);
    lab.wait_until_told();
    assert_eq!(lab.events("web").len(), 1);
}

#[test]
fn while_the_api_server_is_down_the_watches_ask_ever_less_often() {
    let (lab, agent) = Lab::with_agent();
    lab.proxy.down();
    std::thread::sleep(Duration::from_secs(10));
    for kind in ["pod", "definition", "slice"] {
        let name = format!("jackfield_watch_failures_total{{kind=\"{kind}\"}}");
        let failures = agent.metric(&name).unwrap_or_default();
        assert!((2.0..=6.0).contains(&failures), "{name}: {failures}");
    }
    let url = lab.proxy.url();
    assert!(agent.logged(&["the watch failed", &url, "does not answer a watch of Pod"]));
    lab.proxy.heal();
    let uid = lab.pod("web", &json!({}));
    lab.add("web", &uid).succeeds();
    lab.wait_for_status("web");
}

#[test]
fn while_the_api_server_is_down_an_unknown_pod_is_refused_in_one_line() {
    let (lab, _agent) = Lab::with_agent();
    lab.proxy.down();
    let uid = lab.pod("web", &json!({}));
    let url = lab.proxy.url();
    lab.add("web", &uid).fails(
        107,
        &["API server", &url, "does not answer GET", "/pods/web"],
    );
}

#[test]
fn an_agent_that_starts_while_the_api_server_is_down_serves_as_soon_as_it_is_up() {
    let lab = Lab::new();
    lab.proxy.down();
    let agent = AgentProcess::start(&lab);
    eventually("it lives", || {
        agent.get("/healthz").starts_with("HTTP/1.1 200")
    });
    assert!(agent.get("/readyz").starts_with("HTTP/1.1 503"));
    lab.proxy.heal();
    agent.wait_until_ready();
}

#[test]
fn a_slow_api_server_delays_no_add() {
    let (lab, agent) = Lab::with_agent();
    let uid = lab.pod("web", &json!({}));
    agent.wait_until_it_knows(1, 0);
    lab.proxy
        .fault(|method, _| (method != Method::GET).then_some(Fault::Slow(Duration::from_secs(3))));
    let added = lab.add("web", &uid).succeeds();
    assert!(added.took < Duration::from_secs(2), "{added}");
    lab.wait_until_told();
    assert!(lab.status("web").is_some());
}

#[test]
fn a_conflict_is_resolved_by_reading_again() {
    for code in [409, 422] {
        let (lab, agent) = Lab::with_agent();
        let uid = lab.pod("web", &json!({}));
        first_patches(&lab, 2, Fault::Answer(code, "changed in between"));
        lab.add("web", &uid).succeeds();
        lab.wait_until_told();
        assert!(lab.status("web").is_some(), "{code}");
        assert!(!agent.logged(&["still owed"]), "{code}: no pause is needed");
    }
}

#[test]
fn a_busy_or_broken_api_server_is_asked_again_later() {
    for code in [429, 500, 503] {
        let (lab, agent) = Lab::with_agent();
        let uid = lab.pod("web", &json!({}));
        first_patches(&lab, 1, Fault::Answer(code, "not now"));
        lab.add("web", &uid).succeeds();
        lab.wait_until_told();
        assert!(lab.status("web").is_some(), "{code}");
        assert!(
            agent.logged(&["still owed", "/web", &format!("{code} not now")]),
            "{code}"
        );
    }
}

/// Without the header, the first pause is 1.25 s at most.
#[test]
fn a_busy_api_server_gets_no_request_before_retry_after() {
    const AFTER: u32 = 4;
    let (lab, agent) = Lab::with_agent();
    let uid = lab.pod("web", &json!({}));
    agent.wait_until_it_knows(1, 0);
    first_patches(&lab, 1, Fault::Busy(AFTER));
    lab.add("web", &uid).succeeds();
    let (began, least) = (Instant::now(), Duration::from_secs(AFTER.into()));
    eventually("it is refused", || agent.logged(&["still owed", "/web"]));
    // The event of a watch shows that the API server answers, but not that it has time.
    lab.pod("other", &json!({}));
    lab.wait_until_told();
    assert!(
        began.elapsed() + Duration::from_secs(1) > least,
        "{:?}",
        began.elapsed()
    );
    assert!(agent.logged(&["still owed", "/web", "429 Too many requests"]));

    // So does the first list of another agent.
    let mut asked = Vec::new();
    let (tell, told) = std::sync::mpsc::channel();
    lab.proxy.fault(move |_, path| {
        let is_list = path.contains("/pods?") && path.contains("limit=");
        if is_list {
            asked.push(Instant::now());
            let _ = tell.send(asked.clone());
        }
        (is_list && asked.len() == 1).then_some(Fault::Busy(AFTER))
    });
    drop(agent);
    lab.start_agent();
    let asked = told.try_iter().last().unwrap();
    assert!(asked[1] - asked[0] >= least, "{asked:?}");
}

#[test]
fn a_pod_that_cannot_be_told_of_keeps_no_other_waiting() {
    let (lab, agent) = Lab::with_agent();
    let bad = lab.pod("bad", &json!({}));
    let good = lab.pod("good", &json!({}));
    lab.proxy.fault(|method, path| {
        (*method == Method::PATCH && path.contains("/pods/bad/"))
            .then_some(Fault::Answer(403, "a webhook says no"))
    });
    lab.add("bad", &bad).succeeds();
    lab.del("bad", &bad).succeeds();
    lab.add("good", &good).succeeds();
    lab.wait_for_status("good");
    eventually("one is owed", || lab.owed().len() == 1);
    assert!(agent.logged(&[
        "still owed",
        "/bad",
        "403 a webhook says no; apply deploy/rbac.yaml"
    ]));
}

#[test]
fn watches_that_are_closed_or_refused_begin_again() {
    let (lab, agent) = Lab::with_agent();
    for fault in [
        Fault::HangUp,
        Fault::Answer(410, "too old"),
        Fault::Answer(500, "etcd"),
    ] {
        let mut left = 2;
        lab.proxy.fault(move |_, path| {
            let hit = path.contains("watch=true") && left > 0;
            left -= usize::from(hit);
            hit.then(|| fault.clone())
        });
        lab.proxy.cut();
        std::thread::sleep(Duration::from_secs(1));
    }
    lab.proxy.heal();
    let uid = lab.pod("web", &json!({}));
    let cached = r#"jackfield_cached_objects{kind="pod"}"#;
    eventually("the watch shows the pod", || {
        agent.metric(cached) == Some(1.0)
    });
    lab.add("web", &uid).succeeds();
    let from_api = agent.metric(r#"jackfield_lookups_total{what="pod",from="api"}"#);
    assert_eq!(from_api, None, "no read was needed");
}

#[test]
fn an_expired_token_is_replaced_by_the_one_in_the_file() {
    let (lab, agent) = Lab::with_agent();
    let uid = lab.pod("web", &json!({}));
    agent.wait_until_it_knows(1, 0);
    lab.proxy
        .fault(|_, _| Some(Fault::Answer(401, "the token has expired")));
    lab.proxy.cut();
    lab.add("web", &uid).succeeds();
    eventually("it is refused", || {
        agent.logged(&["401 the token has expired; renew the credentials"])
    });
    lab.renew_token();
    lab.proxy.heal();
    lab.wait_for_status("web");
    assert!(agent.logged(&["refused the credentials; the agent has read them again"]));
}

#[test]
fn a_token_that_really_expires_is_replaced_by_the_one_in_the_file() {
    let (lab, agent) = {
        let lab = Lab::new();
        lab.token_that_ends_in(8);
        let agent = lab.start_agent();
        (lab, agent)
    };
    let uid = lab.pod("web", &json!({}));
    // The API server remembers a good token for some seconds past its end.
    eventually("it is refused", || {
        lab.proxy.cut();
        std::thread::sleep(Duration::from_millis(500));
        agent.logged(&["watch failed", "nauthorized"])
    });
    lab.add("web", &uid).succeeds();
    lab.renew_token();
    lab.wait_for_status("web");
    assert!(agent.logged(&["refused the credentials; the agent has read them again"]));
}

#[test]
fn a_token_from_a_clock_that_is_ahead_is_tried_until_its_time_has_come() {
    let lab = Lab::new();
    lab.token_that_begins_in(8);
    let agent = AgentProcess::start(&lab);
    eventually("it is refused", || {
        agent.logged(&["watch failed", "nauthorized"])
    });
    agent.wait_until_ready();
}

#[test]
fn a_token_that_was_wrong_from_the_start_is_read_again_until_it_is_right() {
    let lab = Lab::new();
    fs::write(lab.path("token"), "expired").unwrap();
    let agent = AgentProcess::start(&lab);
    eventually("it is refused", || {
        agent.logged(&["watch failed", "nauthorized"])
    });
    lab.renew_token();
    agent.wait_until_ready();
}

#[test]
fn a_kubeconfig_that_cannot_be_used_is_named() {
    let lab = Lab::new();
    fs::write(lab.path("kubeconfig"), "clusters: 7").unwrap();
    let mut agent = AgentProcess::start(&lab);
    assert_eq!(agent.wait(), Some(1));
    let path = lab.path("kubeconfig").display().to_string();
    assert!(
        agent.logged(&["kubeconfig", &path, "correct or remount"]),
        "{:?}",
        agent.log()
    );
}

#[test]
fn an_idle_agent_with_250_pods_and_1000_definitions_has_less_than_10_mib_of_its_own() {
    let lab = Lab::new();
    lab.many_definitions(1_000);
    for number in 0..250 {
        lab.pod(
            &format!("p{number}"),
            &json!({NETWORKS: "a, b", "note": "x".repeat(2_000)}),
        );
    }
    let agent = lab.start_agent();
    let pods = agent
        .metric(r#"jackfield_cached_objects{kind="pod"}"#)
        .unwrap_or_default();
    assert!(pods >= 250.0, "{pods}");
    let own: u32 = agent.status("RssAnon").parse().unwrap();
    eprintln!("RssAnon {own} kB, VmRSS {} kB", agent.status("VmRSS"));
    assert!(own <= 10 * 1024, "{own} kB");
}
