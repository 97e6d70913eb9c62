use std::fs;
use std::path::Path;

use super::*;
use crate::cluster::ConfDirError;
use crate::setup::problem::ConfFileProblem;

const BRIDGE: &str = r#"{"name":"b","type":"bridge"}"#;
const MULTUS: &str = r#"{"name":"m","type":"multus"}"#;

/// Plans the installation on a node whose CNI directory contains these files.
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
    let directories = NodeDirectories::look(&paths, manifest.as_ref())?;
    plan(None, manifest.as_ref(), &directories)
}

fn ready(files: &[(&str, &str)], manifest: Option<&str>) -> InstallPlan {
    match planned(files, manifest).unwrap() {
        Outlook::Ready(plan) => *plan,
        Outlook::Waiting(reason) => panic!("{reason:?}"),
    }
}

#[track_caller]
fn is_as_planned(files: &[(&str, &str)]) {
    let drift = ready(files, Some("00-jackfield.conflist")).drift;
    assert!(drift.is_none(), "{drift:?}: {files:?}");
}

fn ours(network: &str) -> String {
    let template = RawObject::parse(b"{\"verify\":\"warn\"}").unwrap();
    OurConf::from_template(&template)
        .in_front_of(Path::new(network))
        .text()
}

#[test]
fn a_fresh_node_gets_our_file_before_the_cluster_network() {
    let plan = ready(&[("10-b.conf", BRIDGE)], None);
    assert_eq!(plan.name, "00-jackfield.conflist");
    assert_eq!(plan.conf.cluster_network().as_deref(), Some("/10-b.conf"));
    assert!(plan.follows && plan.remove.is_empty() && plan.drift.is_some());
}

// clause: NPWG-1.3 §6.1.2: our configuration sorts before the cluster network's configuration
#[test]
fn our_file_gets_a_name_that_sorts_first() {
    for (other, name) in [
        ("00-multi.conf", "00-jackfield.conflist"),
        ("00-aws.conf", "0-jackfield.conflist"),
    ] {
        assert_eq!(ready(&[(other, BRIDGE)], None).name, name, "{other}");
    }
    match planned(&[("!a.conf", BRIDGE)], None).unwrap_err() {
        SetupError::NotFirst(file) => assert_eq!(file, Path::new("/!a.conf")),
        error => panic!("{error}"),
    }
    // Another program added a file that sorts before Jackfield's file.
    let ours = ours("/10-b.conf");
    let files = [("00-a.conf", BRIDGE), ("00-jackfield.conflist", &ours)];
    let plan = ready(&files, Some("00-jackfield.conflist"));
    assert_eq!(plan.name, "0-jackfield.conflist");
    assert_eq!(plan.remove, ["00-jackfield.conflist"]);
    match plan.drift {
        Some(Drift::NotFirst { first, ours }) => assert_eq!(
            (first.as_path(), ours.as_str()),
            (Path::new("/00-a.conf"), "00-jackfield.conflist")
        ),
        drift => panic!("{drift:?}"),
    }
}

#[test]
fn a_broken_file_that_sorts_before_ours_is_removed() {
    let ours = ours("/10-b.conf");
    let files = [
        ("0-jackfield.conflist", "{"),
        ("00-jackfield.conflist", ours.as_str()),
        ("10-b.conf", BRIDGE),
    ];
    let plan = ready(&files, Some("00-jackfield.conflist"));
    assert_eq!(plan.name, "00-jackfield.conflist");
    assert_eq!(plan.remove, ["0-jackfield.conflist"]);
    match plan.drift.unwrap() {
        Drift::NotFirst { first, .. } => assert_eq!(first, Path::new("/0-jackfield.conflist")),
        drift => panic!("{drift:?}"),
    }
}

#[test]
fn without_a_network_the_installer_waits() {
    for (files, broken) in [
        (&[][..], None),
        (&[("00-jackfield.conflist", "{")][..], None),
        (&[("10-b.conf", "")][..], Some("10-b.conf")),
    ] {
        match planned(files, None).unwrap() {
            Outlook::Waiting(NoNetwork::Missing) => assert_eq!(broken, None),
            Outlook::Waiting(NoNetwork::BrokenFirst { name, .. }) => {
                assert_eq!(broken, Some(name.as_str()));
            }
            outlook => panic!("{outlook:?}"),
        }
    }
}

#[test]
fn the_installer_waits_for_the_file_of_the_cluster_network() {
    let named = |network: &str| ours(network);
    let files = |ours: &'_ str, text: &'static str| {
        [
            ("00-jackfield.conflist", ours.to_owned()),
            ("10-b.conf", text.to_owned()),
        ]
    };
    let is_missing = |reason: &NoNetwork| {
        matches!(
            reason,
            NoNetwork::Named {
                cause: ConfFileProblem::Unreadable(ConfDirError::Missing(_)),
                ..
            }
        )
    };
    let is_invalid = |reason: &NoNetwork| match reason {
        NoNetwork::Named {
            file,
            cause: ConfFileProblem::Json(_) | ConfFileProblem::Network(_),
        } => file == Path::new("/10-b.conf"),
        _ => false,
    };
    type IsExpected<'a> = &'a dyn Fn(&NoNetwork) -> bool;
    let cases: [(&str, &str, Option<IsExpected<'_>>); 4] = [
        ("/20-c.conf", BRIDGE, Some(&is_missing)),
        ("/10-b.conf", "{", Some(&is_invalid)),
        ("/10-b.conf", BRIDGE, None),
        // `main` is the name of a network and not a path, so the installer reads no file.
        ("main", BRIDGE, None),
    ];
    for (network, text, is_expected) in cases {
        let ours = named(network);
        let files = files(&ours, text);
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, &**text)).collect();
        match (planned(&files, None).unwrap(), is_expected) {
            (Outlook::Waiting(reason), Some(is_expected)) if is_expected(&reason) => {}
            (Outlook::Ready(plan), None) if plan.drift.is_none() => {}
            (outlook, _) => panic!("{network}: {outlook:?}"),
        }
    }
}

#[test]
fn multus_is_refused_only_if_its_file_sorts_before_ours() {
    let error = planned(&[("00-multus.conf", MULTUS), ("10-b.conf", BRIDGE)], None).unwrap_err();
    assert!(matches!(error, SetupError::Multus { .. }), "{error}");
    let ours = ours("/10-b.conf");
    let files = [
        ("00-jackfield.conflist", ours.as_str()),
        ("00-multus.conf", MULTUS),
        ("10-b.conf", BRIDGE),
    ];
    is_as_planned(&files);
}

#[test]
fn a_configuration_whose_first_plugin_is_jackfield_stays_unchanged() {
    let ours = ours("/10-b.conf");
    let followed = ours.replace("\n  ]", ",\n    {\"type\": \"istio-cni\"}\n  ]");
    for text in [&ours, &followed] {
        let files = [
            ("00-jackfield.conflist", text.as_str()),
            ("10-b.conf", BRIDGE),
        ];
        is_as_planned(&files);
    }
    // The file of a handwritten configuration keeps its name.
    let by_hand = r#"{"name":"j","type":"jackfield","clusterNetwork":"main"}"#;
    let plan = ready(
        &[("00-jackfield.conf", by_hand), ("10-b.conf", BRIDGE)],
        None,
    );
    assert_eq!(
        (plan.name.as_str(), plan.drift.is_none(), plan.follows),
        ("00-jackfield.conf", true, false)
    );
}

#[test]
fn a_renamed_configuration_comes_back_with_all_its_keys() {
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
    match plan.drift {
        Some(Drift::Renamed { to, .. }) => assert_eq!(to, "00-jackfield.conflist.cilium_bak"),
        drift => panic!("{drift:?}"),
    }
}

#[test]
fn our_configuration_switches_to_the_first_network_in_the_directory() {
    let ours = ours("/10-b.conf");
    let name = Some("00-jackfield.conflist");
    let here = ("00-jackfield.conflist", ours.as_str());
    let plan = ready(
        &[here, ("05-new.conf", BRIDGE), ("10-b.conf", BRIDGE)],
        name,
    );
    assert_eq!(plan.conf.cluster_network().as_deref(), Some("/05-new.conf"));
    match plan.drift {
        Some(Drift::OtherNetwork { wanted, current }) => assert_eq!(
            (wanted.as_deref(), current.as_deref()),
            (Some("/05-new.conf"), Some("/10-b.conf"))
        ),
        drift => panic!("{drift:?}"),
    }
    // A half-written file changes nothing while the file of the current network exists.
    is_as_planned(&[here, ("05-new.conf", ""), ("10-b.conf", BRIDGE)]);
    assert!(matches!(
        planned(&[here], name).unwrap(),
        Outlook::Waiting(_)
    ));
}
