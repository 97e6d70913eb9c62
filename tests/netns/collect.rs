//! GC frees what the runtime no longer names, and nothing else.

use serde_json::{Value, json};

use crate::lab::{Call, Lab, Outcome, real_plugins};

/// A node whose runtime speaks 1.1.0 and whose pod has a cluster network, `demo/a` and `demo/b`,
/// every plugin of which is recorded.
fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.configure("cniVersion", json!("1.1.0"));
    lab.recorder("bridge-rec", "bridge", "");
    lab.recorder("ptp-rec", "ptp", "");
    let mut bridge = lab.bridge("cni0", "10.10.0.0/24");
    bridge["type"] = json!("bridge-rec");
    lab.cluster_network("1.1.0", &[bridge]);
    lab.definition("demo/a", &ptp(&lab, "1.1.0", "shared", "10.20.0.0/24"));
    lab.definition("demo/b", &ptp(&lab, "1.1.0", "shared", "10.21.0.0/24"));
    lab.selects("a,b");
    lab
}

fn ptp(lab: &Lab, version: &str, name: &str, subnet: &str) -> Value {
    let mut ptp = lab.ptp(subnet);
    ptp["type"] = json!("ptp-rec");
    ptp["cniVersion"] = json!(version);
    ptp["name"] = json!(name);
    ptp
}

/// A GC whose configuration has `key` with `list`.
fn gc(lab: &Lab, key: &str, list: &str) -> Outcome {
    call_of_gc(lab, key, list).run()
}

/// The same, about to be made.
pub(crate) fn call_of_gc(lab: &Lab, key: &str, list: &str) -> Call {
    let conf = lab.conf().to_string();
    let conf = format!("{},{key:?}:{list}}}", conf.trim_end_matches('}'));
    lab.plugin("GC")
        .without("CNI_CONTAINERID")
        .without("CNI_IFNAME")
        .without("CNI_NETNS")
        .without("CNI_ARGS")
        .stdin(conf.as_bytes())
}

pub(crate) fn ours(lab: &Lab) -> String {
    json!([{ "containerID": lab.container(), "ifname": "eth0" }]).to_string()
}

pub(crate) const KEY: &str = "cni.dev/valid-attachments";

fn silent(outcome: &Outcome) {
    assert_eq!(
        (outcome.exit, outcome.stdout.as_str()),
        (0, ""),
        "{outcome}"
    );
}

// clause: CNI-1.1.0 §2 GC stale
// clause: CNI-1.1.0 §2 GC no DEL: what is stale is detached by DEL, with its own plugins
#[test]
fn what_is_no_longer_named_is_detached_from_every_network() {
    let lab = lab();
    lab.add();
    silent(&gc(&lab, KEY, "[]"));
    lab.assert_nothing_left();
    // The reference plugins free no lease on GC: that was the DELs.
    let calls = lab.log("calls");
    assert!(calls.contains(&"DEL net2 ptp-rec".to_owned()), "{calls:?}");
}

// clause: CNI-1.1.0 §2 GC valid attachments: each network is told its own
// clause: CNI-1.1.0 §2 GC forwarded
// clause: CNI-1.1.0 §4 every verb
#[test]
fn what_is_named_stays_and_each_network_is_told_its_own_attachments() {
    let lab = lab();
    lab.add();
    let before = lab.leftovers();
    silent(&gc(&lab, KEY, &ours(&lab)));
    assert_eq!(lab.leftovers(), before);
    assert!(!lab.log("calls").iter().any(|call| call.starts_with("DEL")));
    let attached = |ifname: &str| json!({ "containerID": lab.container(), "ifname": ifname });
    // Two definitions share one CNI name, so each of them hears of both.
    let shared = json!([attached("net1"), attached("net2")]);
    let told = lab.recorded("ptp-rec", "GC");
    assert_eq!(told.len(), 2, "each of the two configurations");
    for conf in &told {
        assert_eq!(conf["cni.dev/valid-attachments"], shared);
        assert_eq!(conf["cni.dev/attachments"], shared, "the older spelling");
        assert_eq!(conf["name"], "shared");
        assert!(conf.get("prevResult").is_none());
    }
    let told = lab.recorded("bridge-rec", "GC");
    assert_eq!(told[0][KEY], json!([attached("eth0")]));
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}

// The runtime runs no ADD during a GC, but it knows nothing of changes.
#[test]
fn what_a_change_attaches_during_a_gc_is_kept() {
    let lab = lab();
    lab.recorder("bridge-rec", "bridge", "[ $CNI_COMMAND = GC ] && sleep 3");
    lab.selects("a");
    lab.add();
    let conf = lab.write("jackfield.conf", &lab.conf().to_string());
    let (conf, plugins) = (conf.display(), real_plugins());
    std::thread::scope(|scope| {
        let gc = scope.spawn(|| gc(&lab, KEY, &ours(&lab)));
        std::thread::sleep(std::time::Duration::from_secs(1));
        lab.selects("a,b");
        let plugins = plugins.display().to_string();
        let arguments = [
            "reconcile",
            "--conf",
            &conf.to_string(),
            "--cni-path",
            &plugins,
        ];
        let changed = lab.cli(&arguments).run();
        assert_eq!(changed.exit, 0, "{changed}");
        silent(&gc.join().unwrap());
    });
    let calls = lab.log("calls");
    let at = |call: &str| calls.iter().position(|it| it.trim_end() == call).unwrap();
    let told = lab.recorded("ptp-rec", "GC");
    let is_named = told[0][KEY].to_string().contains("net2");
    assert!(
        is_named || at("GC  ptp-rec") < at("ADD net2 ptp-rec"),
        "{calls:?}"
    );
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn no_list_collects_nothing_and_null_is_an_empty_one() {
    let lab = lab();
    lab.add();
    let before = lab.leftovers();
    silent(&gc(&lab, "org.example/other", "1"));
    assert_eq!(lab.leftovers(), before);
    assert!(lab.recorded("ptp-rec", "GC").is_empty(), "nor do networks");
    silent(&gc(&lab, "cni.dev/attachments", &ours(&lab)));
    assert_eq!(lab.leftovers(), before, "either spelling is understood");
    silent(&gc(&lab, KEY, "null"));
    lab.assert_nothing_left();
}

#[test]
fn a_list_of_a_wrong_type_is_refused_and_nothing_is_collected() {
    let lab = lab();
    lab.add();
    let before = lab.leftovers();
    for list in [
        "{}",
        "\"eth0\"",
        "[1]",
        "[null]",
        r#"[{"containerID":"a/b","ifname":"eth0"}]"#,
        r#"[{"containerID":"c1"}]"#,
        r#"[{"containerID":"c1","ifname":7}]"#,
    ] {
        gc(&lab, KEY, list).fails(7, &["cni.dev/valid-attachments"]);
    }
    assert_eq!(lab.leftovers(), before);
    lab.del();
}

// clause: CNI-1.1.0 §1 disableGC
#[test]
fn a_network_is_left_alone_when_it_says_so_or_is_too_old() {
    let lab = lab();
    lab.definition("demo/a", &ptp(&lab, "1.0.0", "old", "10.20.0.0/24"));
    let mut disabled = ptp(&lab, "1.1.0", "disabled", "10.21.0.0/24");
    disabled["disableGC"] = json!("true");
    lab.definition("demo/b", &disabled);
    lab.add();
    silent(&gc(&lab, KEY, &ours(&lab)));
    assert!(lab.recorded("ptp-rec", "GC").is_empty());
    assert_eq!(lab.recorded("bridge-rec", "GC").len(), 1);
    silent(&gc(&lab, KEY, "[]"));
    lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §2 GC goes on
// clause: CNI-1.1.0 §4 errors: of GC
#[test]
fn every_failure_is_reported_and_none_stops_the_others() {
    let lab = lab();
    lab.add();
    let fail = r#"case $CNI_COMMAND-$CNI_IFNAME in DEL-net1|GC-) echo '{"code":120,"msg":"stuck"}'; exit 1;; esac"#;
    lab.recorder("ptp-rec", "ptp", fail);
    let line = gc(&lab, KEY, "[]").failure(106);
    assert!(line.contains("demo/a (net1)"), "{line}");
    assert_eq!(line.matches("GC: stuck").count(), 2, "{line}");
    assert_eq!(line.matches("code 120").count(), 3, "{line}");
    assert_eq!(lab.pod.links(), ["net1"], "the others are gone");
    assert_eq!(lab.recorded("bridge-rec", "GC").len(), 1);
    lab.recorder("ptp-rec", "ptp", "");
    silent(&gc(&lab, KEY, "[]"));
    lab.assert_nothing_left();
}

#[test]
fn no_network_is_collected_while_a_live_container_has_no_record() {
    let lab = lab();
    lab.add();
    let list = json!([{ "containerID": "unheard-of", "ifname": "eth0" }]);
    let outcome = gc(&lab, KEY, &list.to_string());
    silent(&outcome);
    assert!(outcome.stderr.contains("unheard-of"), "{outcome}");
    assert!(
        lab.recorded("bridge-rec", "GC").is_empty(),
        "its address might be freed"
    );
    lab.assert_nothing_left();
}

#[test]
fn a_sandbox_whose_netns_is_gone_is_freed() {
    let lab = lab();
    lab.add();
    lab.pod.delete();
    silent(&gc(&lab, KEY, "[]"));
    assert!(lab.leftovers().with("ipam").is_empty());
    assert!(lab.leftovers().with("journal").is_empty());
}

#[test]
fn default_networks_are_collected_with_no_pod_at_all() {
    let mut lab = lab();
    lab.configure("defaultNetworks", json!(["demo/a"]));
    silent(&gc(&lab, KEY, "[]"));
    let told = lab.recorded("ptp-rec", "GC");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0][KEY], json!([]));
}

#[test]
fn the_command_keeps_what_it_is_told_to_keep() {
    let lab = lab();
    lab.add();
    let conf = lab.write("jackfield.conf", &lab.conf().to_string());
    let conf = conf.display().to_string();
    let kept = format!("{}:eth0", lab.container());
    let cni_path = crate::lab::real_plugins().display().to_string();
    let run = |more: &[&str]| {
        let mut arguments = vec!["gc", "--conf", &conf, "--cni-path", &cni_path];
        arguments.extend(more);
        lab.cli(&arguments).run()
    };
    let outcome = run(&["--keep", &kept]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert!(
        outcome
            .stdout
            .contains("ran GC for network cluster; attachments that remain: 1"),
        "{outcome}"
    );
    lab.check();
    assert_eq!(run(&["--keep", "no-interface"]).exit, 2);
    let outcome = run(&[]);
    assert!(
        outcome.stdout.contains(&format!("detached {kept}")),
        "{outcome}"
    );
    lab.assert_nothing_left();
}

/// What calls leave that are killed before they write a record or after they remove one.
#[test]
fn stale_locks_reservations_and_markers_are_removed() {
    let lab = lab();
    lab.add();
    lab.del();
    let gone = format!("{}-gone", lab.container());
    let lock = format!("/run/jackfield/locks/{gone}.lock");
    std::fs::write(&lock, "1").unwrap();
    let marker =
        json!({ "container": gone, "ifname": "eth0", "attempts": 1, "due": 0, "cause": "" });
    let marker = lab.write(&format!("journal/owed/{gone}@eth0"), &marker.to_string());
    let link = lab.path("journal/exclusive/mac-02:00:00:00:00:01");
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(format!("{gone}@eth0"), &link).unwrap();
    silent(&gc(&lab, KEY, "[]"));
    assert!(!std::path::Path::new(&lock).exists(), "{lock}");
    assert!(!marker.exists(), "{marker:?}");
    assert!(link.symlink_metadata().is_err(), "{link:?}");
    lab.assert_nothing_left();
}
