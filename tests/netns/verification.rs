//! Proof: what was requested has to be there, whatever the delegates say.

use serde_json::{Value, json};

use crate::lab::Lab;

/// A lab whose definition `storage` is run by `liar`: macvlan, and then `script`, which may change
/// what it made (`in_pod ip …`) and what it answers (`$result`).
fn lab_with_a_liar(script: &str) -> Lab {
    let lab = Lab::new();
    // Injects a fault: a plugin that does or answers something else than it was told.
    let text = format!(
        "stdin=$(cat)\n\
         in_pod() {{ nsenter --net=$CNI_NETNS \"$@\"; }}\n\
         if [ $CNI_COMMAND != ADD ]; then exec $REAL/macvlan <<<\"$stdin\"; fi\n\
         result=$($REAL/macvlan <<<\"$stdin\") || {{ echo \"$result\"; exit 1; }}\n\
         {script}\n\
         echo \"$result\""
    );
    lab.delegate("liar", &text);
    let mut config = lab.macvlan();
    config["type"] = json!("liar");
    lab.definition("demo/storage", &config);
    lab.selects_json(&json!([
        { "name": "storage", "ips": ["10.20.0.5/24"], "mac": "02:00:00:00:20:05" }
    ]));
    lab
}

const OTHER_ADDRESS: &str =
    "in_pod ip addr del 10.20.0.5/24 dev net1; in_pod ip addr add 10.20.0.6/24 dev net1";
const OTHER_ADDRESS_IN_THE_ANSWER: &str = "in_pod ip addr del 10.20.0.5/24 dev net1; \
     in_pod ip addr add 10.20.0.6/24 dev net1; result=$(sed 's/10.20.0.5/10.20.0.6/' <<<\"$result\")";
const OTHER_MAC: &str = "in_pod ip link set net1 address 02:00:00:00:20:06";
const DOWN: &str = "in_pod ip link set net1 down";
const NO_LINK: &str = "in_pod ip link del net1";
const MORE_THAN_THERE: &str =
    r#"result=$(jq -c '.ips += [{"address":"10.20.0.99/24","interface":0}]' <<<"$result")"#;

// clause: NPWG-1.3 §4.1.2.1.3 assigned: else the attachment fails
// clause: NPWG-1.3 §4.1.2.1.4 assigned: else the attachment fails
#[test]
fn what_was_requested_and_is_not_there_fails_and_is_unwound() {
    let cases: [(&str, &[&str]); 6] = [
        (OTHER_ADDRESS, &["10.20.0.5"]),
        (OTHER_ADDRESS_IN_THE_ANSWER, &["10.20.0.5"]),
        (OTHER_MAC, &["02:00:00:00:20:05", "02:00:00:00:20:06"]),
        (DOWN, &["down"]),
        (NO_LINK, &["net1"]),
        (MORE_THAN_THERE, &["10.20.0.99"]),
    ];
    for (script, words) in cases {
        let lab = lab_with_a_liar(script);
        let line = lab.call("ADD").fails(105, words);
        assert!(line.starts_with("network demo/storage (net1): "), "{line}");
        lab.assert_nothing_left();
    }
}

#[test]
fn warn_makes_an_event_of_it_and_off_says_nothing() {
    for (verify, warned) in [("warn", true), ("off", false)] {
        let mut lab = lab_with_a_liar(OTHER_MAC);
        lab.configure("verify", json!(verify));
        lab.add();
        let events = lab.events();
        let found = events.iter().any(|event| {
            event.starts_with("Warning ")
                && event.contains("demo/storage (net1)")
                && event.contains("02:00:00:00:20:05")
        });
        assert_eq!(found, warned, "{events:?}");
        lab.del();
        lab.assert_nothing_left();
    }
}

/// A cluster network that answers an address which is not there.
fn lab_with_a_boasting_cluster_network() -> Lab {
    let lab = Lab::new();
    // Injects a fault: a cluster network whose answer has an address that the pod does not get.
    lab.delegate(
        "boaster",
        "stdin=$(cat)\n\
         if [ $CNI_COMMAND != ADD ]; then [ $CNI_COMMAND = CHECK ] && exit 0; exec $REAL/bridge <<<\"$stdin\"; fi\n\
         $REAL/bridge <<<\"$stdin\" | jq -c '.ips += [{\"address\":\"10.10.0.99/24\",\"interface\":2}]'",
    );
    let mut bridge = lab.bridge("cni0", "10.10.0.0/24");
    bridge["type"] = json!("boaster");
    lab.cluster_network("1.0.0", &[bridge]);
    lab
}

#[test]
fn what_the_cluster_network_merely_answers_falls_under_verify_cluster() {
    let cases: [(Value, bool, usize); 4] = [
        (Value::Null, true, 1),
        (json!("warn"), true, 1),
        (json!("off"), true, 0),
        (json!("strict"), false, 0),
    ];
    for (strictness, succeeds, warnings) in cases {
        let mut lab = lab_with_a_boasting_cluster_network();
        lab.configure("verifyCluster", strictness.clone());
        let outcome = lab.call("ADD");
        if !succeeds {
            outcome.fails(105, &["cluster (eth0)", "10.10.0.99"]);
            lab.assert_nothing_left();
            continue;
        }
        outcome.success();
        let events = lab.events();
        let found = events
            .iter()
            .filter(|event| event.contains("10.10.0.99") && event.starts_with("Warning "));
        assert_eq!(found.count(), warnings, "{strictness}: {events:?}");
        let check = lab.call("CHECK");
        assert_eq!(check.exit, 0, "{check}");
        assert_eq!(
            check.stderr.contains("10.10.0.99"),
            warnings == 1,
            "{check}"
        );
        lab.del();
        lab.assert_nothing_left();
    }
}

// clause: NPWG-1.0 §4.1.2.1.3.2 assigned: else the attachment fails
#[test]
fn an_address_that_was_asked_for_by_args_is_verified_too() {
    let mut lab = Lab::new();
    lab.configure("undeclared", json!("args"));
    let mut config = lab.macvlan();
    config["capabilities"] = json!({});
    config["ipam"] = lab.host_local(&["10.21.0.0/24"], false);
    lab.definition("demo/deaf", &config);
    // host-local honours IP= of CNI_ARGS; macvlan knows MAC= as well.
    lab.selects_json(
        &json!([{ "name": "deaf", "ips": ["10.21.0.7/24"], "mac": "02:00:00:00:20:07" }]),
    );
    lab.add();
    assert_eq!(lab.pod.addresses("net1"), ["10.21.0.7/24"]);
    assert_eq!(lab.pod.mac("net1"), "02:00:00:00:20:07");
    lab.del();
    // static knows no IP= without a prefix, and the definition's address is another one.
    config["ipam"] = json!({ "type": "static", "addresses": [{ "address": "10.21.0.8/24" }] });
    lab.recorder("deaf", "macvlan", "CNI_ARGS=IgnoreUnknown=1");
    config["type"] = json!("deaf");
    lab.definition("demo/deaf", &config);
    lab.selects_json(&json!([{ "name": "deaf", "mac": "02:00:00:00:20:07" }]));
    lab.call("ADD")
        .fails(105, &["demo/deaf (net1)", "02:00:00:00:20:07"]);
    lab.assert_nothing_left();
}

/// The failing verification of one attachment comes before the next one runs.
#[test]
fn each_attachment_is_verified_before_the_next_one_runs() {
    let lab = lab_with_a_liar(OTHER_MAC);
    lab.recorder("later", "ptp", "");
    let mut later = lab.ptp("10.30.0.0/24");
    later["type"] = json!("later");
    lab.definition("demo/later", &later);
    lab.selects_json(&json!([
        { "name": "storage", "ips": ["10.20.0.5/24"], "mac": "02:00:00:00:20:05" }, { "name": "later" }
    ]));
    lab.call("ADD").fails(105, &["demo/storage (net1)"]);
    assert!(lab.log("calls").is_empty());
    lab.assert_nothing_left();
}

/// Somebody else has the address: duplicate address detection says so.
#[test]
fn an_address_that_somebody_else_has_fails() {
    let mut lab = Lab::new();
    lab.node.ip("addr add 2001:db8:20::5/64 dev switch0 nodad");
    lab.set_out();
    lab.definition("demo/storage", &lab.macvlan());
    lab.selects_json(&json!([{ "name": "storage", "ips": ["2001:db8:20::5/64"] }]));
    let words = [
        "demo/storage (net1)",
        "2001:db8:20::5/64",
        "in use by another host",
        "choose another",
    ];
    lab.call("ADD").fails(105, &words);
    lab.assert_nothing_left();
}
