use std::fs;
use std::path::Path;

use super::*;

const BRIDGE: &str = r#"{"name":"b","type":"bridge"}"#;
const MULTUS: &str = r#"{"name":"m","type":"multus"}"#;

/// A runtime's directory with these files, and the plan for it.
fn planned(files: &[(&str, &str)], manifest: Option<&str>) -> Result<Outlook, SetupError> {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let paths = HostPaths {
        host_root: dir.path().into(),
        conf_dir: "/".into(),
        cluster_conf_dir: "/".into(),
        bin_dir: "/".into(),
    };
    let content = super::super::binary::Content::of(Path::new("/proc/self/exe")).unwrap();
    let manifest =
        manifest.map(|name| Manifest::new(&paths, content, Path::new("/").join(name), true));
    let seen = Seen::look(&paths, manifest.as_ref())?;
    plan(None, manifest.as_ref(), &seen)
}

fn ready(files: &[(&str, &str)], manifest: Option<&str>) -> InstallPlan {
    match planned(files, manifest).unwrap() {
        Outlook::Ready(plan) => *plan,
        Outlook::Waiting(reason) => panic!("{reason}"),
    }
}

fn ours(network: &str) -> String {
    let template = RawObject::parse(b"{\"verify\":\"warn\"}").unwrap();
    OurConf::from_template(&template)
        .in_front_of(Path::new(network))
        .text()
}

#[test]
fn a_fresh_node_gets_ours_before_the_cluster_network() {
    let plan = ready(&[("10-b.conf", BRIDGE)], None);
    assert_eq!(plan.name, "00-jackfield.conflist");
    assert_eq!(plan.conf.cluster_network().as_deref(), Some("/10-b.conf"));
    assert!(plan.follows && plan.remove.is_empty() && plan.why.is_some());
}

// clause: NPWG-1.3 §6.1.2: ours takes precedence over the cluster network's
#[test]
fn ours_is_named_to_come_first_or_it_is_said_who_does() {
    for (other, name) in [
        ("00-multi.conf", "00-jackfield.conflist"),
        ("00-aws.conf", "0-jackfield.conflist"),
    ] {
        assert_eq!(ready(&[(other, BRIDGE)], None).name, name, "{other}");
    }
    let error = planned(&[("!a.conf", BRIDGE)], None).unwrap_err();
    assert!(
        error.to_string().starts_with("/!a.conf comes before"),
        "{error}"
    );
    // Somebody came before us since.
    let ours = ours("/10-b.conf");
    let files = [("00-a.conf", BRIDGE), ("00-jackfield.conflist", &ours)];
    let plan = ready(&files, Some("00-jackfield.conflist"));
    assert_eq!(plan.name, "0-jackfield.conflist");
    assert_eq!(plan.remove, ["00-jackfield.conflist"]);
    assert_eq!(
        plan.why.unwrap(),
        "/00-a.conf comes before 00-jackfield.conflist"
    );
}

#[test]
fn without_a_network_there_is_nothing_to_do_yet() {
    for (files, words) in [
        (&[][..], "none"),
        (&[("00-jackfield.conflist", "{")][..], "none"),
        (&[("10-b.conf", "")][..], "10-b.conf comes first"),
    ] {
        match planned(files, None).unwrap() {
            Outlook::Waiting(reason) => assert!(reason.contains(words), "{reason}"),
            Outlook::Ready(plan) => panic!("{plan:?}"),
        }
    }
}

#[test]
fn a_file_that_is_named_has_to_hold_a_network() {
    let named = |network: &str| ours(network);
    let files = |ours: &'_ str, text: &'static str| {
        [
            ("00-jackfield.conflist", ours.to_owned()),
            ("10-b.conf", text.to_owned()),
        ]
    };
    for (network, text, words) in [
        ("/20-c.conf", BRIDGE, Some("20-c.conf does not exist")),
        (
            "/10-b.conf",
            "{",
            Some("clusterNetwork names /10-b.conf, which is none"),
        ),
        ("/10-b.conf", BRIDGE, None),
        // Not files of the directory: who can tell?
        ("main", BRIDGE, None),
    ] {
        let ours = named(network);
        let files = files(&ours, text);
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, &**text)).collect();
        match (planned(&files, None).unwrap(), words) {
            (Outlook::Waiting(reason), Some(words)) => assert!(reason.contains(words), "{reason}"),
            (Outlook::Ready(plan), None) => assert_eq!(plan.why, None),
            (outlook, words) => panic!("{network}: {outlook:?}, not {words:?}"),
        }
    }
}

#[test]
fn multus_in_front_is_refused_and_behind_us_it_is_passed_over() {
    let error = planned(&[("00-multus.conf", MULTUS), ("10-b.conf", BRIDGE)], None).unwrap_err();
    assert!(error.to_string().contains("--from-multus"), "{error}");
    let ours = ours("/10-b.conf");
    let files = [
        ("00-jackfield.conflist", ours.as_str()),
        ("00-multus.conf", MULTUS),
        ("10-b.conf", BRIDGE),
    ];
    assert_eq!(ready(&files, Some("00-jackfield.conflist")).why, None);
}

#[test]
fn what_begins_with_us_is_right_as_it_is() {
    let ours = ours("/10-b.conf");
    let followed = ours.replace("\n  ]", ",\n    {\"type\": \"istio-cni\"}\n  ]");
    for text in [&ours, &followed] {
        let files = [
            ("00-jackfield.conflist", text.as_str()),
            ("10-b.conf", BRIDGE),
        ];
        assert_eq!(
            ready(&files, Some("00-jackfield.conflist")).why,
            None,
            "{text}"
        );
    }
    // A configuration that was made by hand is kept, whatever it is called.
    let by_hand = r#"{"name":"j","type":"jackfield","clusterNetwork":"main"}"#;
    let plan = ready(
        &[("00-jackfield.conf", by_hand), ("10-b.conf", BRIDGE)],
        None,
    );
    assert_eq!(
        (plan.name.as_str(), plan.why, plan.follows),
        ("00-jackfield.conf", None, false)
    );
}

#[test]
fn what_was_renamed_comes_back_with_all_its_keys() {
    let ours = ours("/10-b.conf");
    let files = [
        ("00-jackfield.conflist.cilium_bak", ours.as_str()),
        (
            "05-cilium.conflist",
            r#"{"name":"cilium","plugins":[{"type":"cilium-cni"}]}"#,
        ),
        ("10-b.conf.cilium_bak", BRIDGE),
    ];
    let plan = ready(&files, Some("00-jackfield.conflist"));
    assert_eq!(plan.name, "00-jackfield.conflist");
    assert_eq!(plan.remove, ["00-jackfield.conflist.cilium_bak"]);
    assert!(plan.conf.text().contains("\"verify\": \"warn\""));
    assert_eq!(
        plan.conf.cluster_network().as_deref(),
        Some("/05-cilium.conflist")
    );
    let why = plan.why.unwrap();
    assert!(
        why.ends_with("was renamed to 00-jackfield.conflist.cilium_bak"),
        "{why}"
    );
    assert!(remedy(&why).contains("cni.exclusive"));
}

#[test]
fn the_first_network_is_followed_and_a_vanished_one_is_kept_until_another_comes() {
    let ours = ours("/10-b.conf");
    let name = Some("00-jackfield.conflist");
    let here = ("00-jackfield.conflist", ours.as_str());
    let plan = ready(
        &[here, ("05-new.conf", BRIDGE), ("10-b.conf", BRIDGE)],
        name,
    );
    assert_eq!(plan.conf.cluster_network().as_deref(), Some("/05-new.conf"));
    assert_eq!(
        plan.why.unwrap(),
        "the cluster network is /05-new.conf and no longer /10-b.conf"
    );
    // A file that is being written before ours changes nothing as long as ours is there.
    assert_eq!(
        ready(&[here, ("05-new.conf", ""), ("10-b.conf", BRIDGE)], name).why,
        None
    );
    assert!(matches!(
        planned(&[here], name).unwrap(),
        Outlook::Waiting(_)
    ));
}
