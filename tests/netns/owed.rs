//! What could not be detached is tried again, although no runtime asks for it any more.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::lab::{Call, Lab, Outcome, POD, UPLINK};

/// A sandbox whose DEL failed, and whose plugin is well again since.
fn lab_with_a_debt() -> Lab {
    let lab = Lab::new();
    let mut ptp = lab.ptp("10.20.0.0/24");
    ptp["type"] = json!("ptp-rec");
    lab.definition("demo/a", &ptp);
    lab.selects("a");
    let fail = "[ $CNI_COMMAND = DEL ] && { echo '{\"code\":99,\"msg\":\"not now\"}'; exit 1; }";
    lab.recorder("ptp-rec", "ptp", fail);
    lab.add();
    lab.plugin("DEL")
        .run()
        .fails(106, &["demo/a (net1)", "DEL: not now", "code 99"]);
    lab.recorder("ptp-rec", "ptp", "");
    lab
}

/// Makes the debt due, as time would.
pub(crate) fn is_due(lab: &Lab) {
    let mut debts = fs::read_dir(lab.path("journal/owed")).unwrap().flatten();
    let path = debts.next().unwrap().path();
    let mut debt: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    debt["due"] = json!(0);
    fs::write(path, debt.to_string()).unwrap();
}

/// Waits until something is so, which a process of its own makes so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The file of the sandbox's lock, with the process ID of the Jackfield that holds the lock.
fn lock(lab: &Lab) -> PathBuf {
    format!("/run/jackfield/locks/{}.lock", lab.container()).into()
}

/// Whether somebody has the sandbox's lock.
fn is_at_work(lab: &Lab) -> bool {
    lock(lab).exists()
}

/// Waits until nothing is owed any more.
pub(crate) fn is_settled(lab: &Lab) {
    until("the debt is settled", || {
        lab.leftovers().with("/owed/").is_empty() && !is_at_work(lab)
    });
}

/// The DEL of a sandbox that has nothing to do with the debt.
fn other_del(lab: &Lab) -> Outcome {
    call_of_other_del(lab).run()
}

/// The same, about to be made.
pub(crate) fn call_of_other_del(lab: &Lab) -> Call {
    let other = format!("{}-other", lab.container());
    lab.plugin("DEL").env("CNI_CONTAINERID", &other)
}

#[test]
fn a_del_of_another_sandbox_settles_a_debt_that_is_due() {
    let lab = lab_with_a_debt();
    assert_eq!(other_del(&lab).exit, 0);
    assert_eq!(lab.pod.links(), ["net1"], "it is not due yet");
    is_due(&lab);
    let outcome = other_del(&lab);
    assert_eq!(
        (outcome.exit, outcome.stdout.as_str()),
        (0, ""),
        "{outcome}"
    );
    is_settled(&lab);
    lab.assert_nothing_left();
}

#[test]
fn a_status_settles_a_debt_that_is_due() {
    let mut lab = lab_with_a_debt();
    lab.configure("cniVersion", json!("1.1.0"));
    is_due(&lab);
    assert_eq!(lab.plugin("STATUS").run().exit, 0);
    is_settled(&lab);
    lab.assert_nothing_left();
}

/// sriov-cni takes most of a second on a busy node, and more where a driver is slow.
#[test]
fn a_debt_that_takes_long_delays_nobody_and_is_not_ended_half_way() {
    let mut lab = lab_with_a_debt();
    lab.configure("cniVersion", json!("1.1.0"));
    let slow = "[ $CNI_COMMAND = DEL ] && { touch $LAB/begun; sleep 4; touch $LAB/finished; }";
    lab.recorder("ptp-rec", "ptp", slow);
    is_due(&lab);
    let outcome = other_del(&lab);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert!(outcome.took < Duration::from_secs(3), "{:?}", outcome.took);
    until("begun", || lab.path("begun").exists());
    let status = lab.plugin("STATUS").run();
    assert_eq!(status.exit, 0, "{status}");
    assert!(!lab.path("finished").exists(), "{:?}", status.took);
    is_settled(&lab);
    assert!(lab.path("finished").exists(), "the plugin was let finish");
    assert_eq!(
        lab.recorded("ptp-rec", "DEL").len(),
        2,
        "tried once, by one"
    );
    for file in ["begun", "finished"] {
        fs::remove_file(lab.path(file)).unwrap();
    }
    lab.assert_nothing_left();
}

#[test]
fn a_retry_that_is_killed_is_repeated_although_its_plugin_still_hangs() {
    let mut lab = lab_with_a_debt();
    lab.configure("deadlines", json!({"delegate": "5s"}));
    let hang = "[ $CNI_COMMAND = DEL ] && mkdir $LAB/hung && exec sleep 1000";
    lab.recorder("ptp-rec", "ptp", hang);
    is_due(&lab);
    assert_eq!(other_del(&lab).exit, 0);
    until("the plugin hangs", || lab.path("hung").exists());
    let retry = fs::read_to_string(lock(&lab)).unwrap().parse().unwrap();
    kill(Pid::from_raw(retry), Signal::SIGKILL).unwrap();
    is_due(&lab);
    assert_eq!(other_del(&lab).exit, 0);
    assert!(is_at_work(&lab), "the plugin still has time");
    until("the debt is settled", || {
        other_del(&lab);
        !is_at_work(&lab)
    });
    is_settled(&lab);
    fs::remove_dir(lab.path("hung")).unwrap();
    lab.assert_nothing_left();
}

#[test]
fn a_debt_that_fails_again_stays_and_waits_longer() {
    let lab = lab_with_a_debt();
    let fail = "[ $CNI_COMMAND = DEL ] && { echo '{\"code\":99,\"msg\":\"not now\"}'; exit 1; }";
    lab.recorder("ptp-rec", "ptp", fail);
    is_due(&lab);
    let tried = || lab.recorded("ptp-rec", "DEL").len();
    let before = tried();
    assert_eq!(other_del(&lab).exit, 0);
    until("tried again", || tried() > before && !is_at_work(&lab));
    assert_eq!(lab.leftovers().with("/owed/").len(), 1);
    assert_eq!(other_del(&lab).exit, 0, "and it is not due at once");
    lab.recorder("ptp-rec", "ptp", "");
    lab.del();
    lab.assert_nothing_left();
}

/// The runtime did send a DEL.
#[test]
fn an_add_after_a_del_that_failed_settles_the_debt_first() {
    let lab = lab_with_a_debt();
    let fail = "[ $CNI_COMMAND = DEL ] && { echo '{\"code\":99,\"msg\":\"not now\"}'; exit 1; }";
    lab.recorder("ptp-rec", "ptp", fail);
    lab.call("ADD").fails(106, &["demo/a (net1)", "not now"]);
    lab.recorder("ptp-rec", "ptp", "");
    lab.add();
    assert_eq!(lab.pod.links(), ["eth0", "net1"]);
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn the_runtimes_own_del_needs_no_waiting() {
    let lab = lab_with_a_debt();
    lab.del();
    lab.assert_nothing_left();
}

// clause: NPWG-1.3 §6.1.2 detachment is blocked until the cluster network is ready
#[test]
fn a_del_waits_for_the_cluster_network_and_is_owed_when_it_does_not_come() {
    let mut lab = Lab::new();
    lab.add();
    lab.configure("readinessindicatorfile", json!(lab.path("ready")));
    lab.configure("deadlines", json!({ "del": "3s" }));
    let outcome = lab.plugin("DEL").run();
    outcome.fails(
        106,
        &["not ready", &lab.path("ready").display().to_string()],
    );
    assert_eq!(lab.pod.links(), ["eth0"]);
    // A sandbox never seen has nothing to wait for.
    assert_eq!(other_del(&lab).exit, 0);
    lab.write("ready", "");
    lab.del();
    lab.assert_nothing_left();
}

/// Makes the debt older than anything is tried for.
fn is_old(lab: &Lab) {
    let mut debts = fs::read_dir(lab.path("journal/owed")).unwrap().flatten();
    let path = debts.next().unwrap().path();
    let mut debt: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    debt["since"] = json!(1);
    debt["attempts"] = json!(5);
    fs::write(path, debt.to_string()).unwrap();
}

/// A definition that host-local refuses, on ADD and on DEL.
fn lab_with_a_refusal() -> Lab {
    let lab = Lab::new();
    let mut macvlan = lab.macvlan();
    macvlan["ipam"] = json!({ "type": "host-local" });
    lab.definition("demo/a", &macvlan);
    lab.selects("a");
    lab.call("ADD").fails(100, &["no IP ranges", "still owed"]);
    lab.call("DEL")
        .fails(106, &["demo/a (net1)", "no IP ranges"]);
    lab
}

// clause: CNI-1.1.0 §2 DEL missing: what its ADD never made, by a configuration that was wrong
#[test]
fn a_refused_configuration_that_is_corrected_is_detached_by_the_new_one() {
    let lab = lab_with_a_refusal();
    // Another network knows nothing of what this one may hold.
    let mut other = lab.ptp("10.20.0.0/24");
    lab.definition("demo/a", &other);
    lab.call("DEL").fails(106, &["no IP ranges"]);
    other["type"] = json!("macvlan");
    other["master"] = json!(UPLINK);
    lab.definition("demo/a", &other);
    let outcome = lab.call("DEL");
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert!(
        outcome
            .stderr
            .contains("with the network's current configuration"),
        "{outcome}"
    );
    lab.assert_nothing_left();
}

#[test]
fn what_was_never_attached_and_is_refused_for_long_is_given_up() {
    let lab = lab_with_a_refusal();
    lab.definition_text("demo/a", "{ broken");
    is_old(&lab);
    let outcome = lab.call("DEL");
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert!(
        outcome.stderr.contains(
            "gives up the detachment, because the ADD failed and the plugins keep refusing DEL"
        ),
        "{outcome}"
    );
    // As its runtime would.
    lab.pod.delete();
    lab.assert_none_left(&["file", "veth", "journal"]);
}

// Injects a fault: a plugin takes an address, fails, and refuses DEL as long as a file is there.
#[test]
fn the_clusters_network_of_today_settles_nothing_of_what_a_pod_chose_instead() {
    let lab = Lab::new();
    let refuse = r#"if [ $CNI_COMMAND = ADD ]; then $REAL/ptp <<<"$stdin" >/dev/null; fi
        if [ $CNI_COMMAND = ADD ] || [ -e $LAB/stuck ]; then
            echo '{"cniVersion":"1.0.0","code":100,"msg":"controller away"}'; exit 1; fi"#;
    lab.recorder("ctl", "ptp", refuse);
    let mut ctl = lab.ptp("10.20.0.0/24");
    ctl["type"] = json!("ctl");
    lab.definition("demo/d", &ctl);
    lab.pod_with(POD, json!({ "v1.multus-cni.io/default-network": "demo/d" }));
    lab.write("stuck", "");
    lab.call("ADD")
        .fails(100, &["controller away", "still owed"]);
    lab.call("DEL")
        .fails(106, &["demo/d (eth0)", "controller away"]);
    fs::remove_file(lab.path("stuck")).unwrap();
    lab.del();
    lab.assert_none_left(&["/ipam/", "veth", "journal"]);
}

#[test]
fn what_was_attached_is_never_given_up() {
    let lab = lab_with_a_debt();
    is_old(&lab);
    let fail = "[ $CNI_COMMAND = DEL ] && { echo '{\"code\":99,\"msg\":\"not now\"}'; exit 1; }";
    lab.recorder("ptp-rec", "ptp", fail);
    lab.pod.ip("link delete net1");
    lab.call("DEL").fails(106, &["not now"]);
    lab.recorder("ptp-rec", "ptp", "");
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn a_cluster_network_that_was_wrong_for_a_while_strands_no_sandbox() {
    let lab = Lab::new();
    let mut bridge = lab.bridge("cni0", "10.10.0.0/24");
    bridge["mtu"] = json!("1500");
    lab.cluster_network("1.0.0", &[bridge]);
    lab.call("ADD").fails(100, &["still owed", "mtu"]);
    lab.call("DEL").fails(106, &["mtu"]);
    lab.cluster_network("1.0.0", &[lab.bridge("cni0", "10.10.0.0/24")]);
    assert_eq!(lab.call("DEL").exit, 0);
    lab.assert_nothing_left();
}

#[test]
fn a_plugin_that_the_add_did_not_reach_holds_nothing() {
    let lab = Lab::new();
    let chain = json!({ "cniVersion": "1.0.0", "plugins": [
        { "type": "macvlan", "master": "nope" }, { "type": "tuning", "mtu": "9000" },
    ]});
    lab.definition("demo/a", &chain);
    lab.selects("a");
    let line = lab.call("ADD").fails(
        100,
        &[
            "macvlan",
            "Link not found",
            "the plugin's key \"master\" has the value \"nope\"",
        ],
    );
    assert!(!line.contains("owed"), "{line}");
    lab.assert_nothing_left();
}
