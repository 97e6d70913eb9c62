//! What changes on a running pod when its annotation changes.

use super::*;

/// The [`Story`] of a pod with this annotation, in a cluster with the macvlan definitions `a`, `b`,
/// `c` and `s`. Only `s` needs a device.
fn running(annotation: &str) -> Story {
    let story = story().macvlan("pods/a", &["mac"]).macvlan("pods/b", &[]);
    let story = story.macvlan("pods/c", &[]).macvlan("pods/s", &[]);
    let mut story = story.networks(annotation);
    story.definitions[3]["metadata"]["annotations"] =
        json!({"k8s.v1.cni.cncf.io/resourceName": "vendor.com/vf"});
    let ids = ["0000:01:10.0", "0000:01:10.1"].map(str::to_owned).to_vec();
    let origin = Origin::Checkpoint;
    story
        .allocation
        .set("vendor.com/vf", Supply::Devices { ids, origin });
    story
}

/// The attachments of a pod after its ADD.
fn attached(annotation: &str) -> Vec<Attachment> {
    let plan = running(annotation).plan();
    assert_eq!(plan.problems, []);
    plan.attachments
}

fn compare(recorded: &[Attachment], story: &Story) -> Difference {
    story.with_inputs(|inputs| difference(inputs, recorded, false))
}

fn names(attachments: &[Attachment]) -> Vec<String> {
    let named = |it: &Attachment| format!("{} {}", it.ifname, it.label);
    attachments.iter().map(named).collect()
}

#[test]
fn selections_are_matched_by_their_requests_and_not_by_their_position() {
    let mac = r#"{"name":"a","mac":"02:00:00:00:00:01"}"#;
    let other = r#"{"name":"a","mac":"02:00:00:00:00:02"}"#;
    for (before, after, removed, added) in [
        ("a,b", "a,b", vec![], vec![]),
        ("a,b", "b, pods/a", vec![], vec![]),
        ("a,b", "a,b,c", vec![], vec!["net3 pods/c"]),
        ("a,b", "c,b,a", vec![], vec!["net3 pods/c"]),
        ("a,b", "b", vec![1], vec![]),
        ("a,b", "", vec![1, 2], vec![]),
        ("a,b", "b,c", vec![1], vec!["net3 pods/c"]),
        ("a,a", "a,a,a", vec![], vec!["net3 pods/a"]),
        ("a,a", "a", vec![2], vec![]),
        ("", "a", vec![], vec!["net1 pods/a"]),
        // A new network can have the interface name of a network that the change removes.
        ("a@x", "b@x", vec![1], vec!["x pods/b"]),
        ("a@x", "a@y", vec![1], vec!["y pods/a"]),
        ("a@x", "a", vec![], vec![]),
        ("a", "a@net1", vec![], vec![]),
        (
            "a,b",
            "b@net1,a",
            vec![1, 2],
            vec!["net1 pods/b", "net4 pods/a"],
        ),
        (mac, mac, vec![], vec![]),
        (mac, other, vec![1], vec!["net2 pods/a"]),
    ] {
        let json = |text: &str| match text.starts_with('{') {
            true => format!("[{text}]"),
            false => text.to_owned(),
        };
        let recorded = attached(&json(before));
        let difference = compare(&recorded, &running(&json(after)));
        assert_eq!(difference.plan.problems, [], "{before} -> {after}");
        assert_eq!(difference.removed, removed, "{before} -> {after}");
        assert_eq!(
            names(&difference.plan.attachments),
            added,
            "{before} -> {after}"
        );
    }
}

#[test]
fn networks_of_the_node_configuration_stay_as_they_are() {
    let with_default = |annotation: &str| {
        let story = running(annotation).node("defaultNetworks", json!(["pods/c"]));
        story.node("multusNamespace", json!("pods"))
    };
    let recorded = with_default("a").plan().attachments;
    assert_eq!(
        names(&recorded),
        ["eth0 cluster", "net1 pods/c", "net2 pods/a"]
    );
    let difference = compare(&recorded, &with_default("b"));
    assert_eq!(difference.removed, [2]);
    assert_eq!(names(&difference.plan.attachments), ["net3 pods/b"]);
    let broken = with_default("b").default_network("missing");
    let difference = compare(&recorded, &broken);
    assert_eq!(
        difference.plan.problems,
        [],
        "the cluster network never changes"
    );
    let gone = running("a").node("defaultNetworks", json!([]));
    assert_eq!(compare(&recorded, &gone).removed, [0; 0]);
}

#[test]
fn a_record_of_an_older_release_is_matched_by_its_requests() {
    let mut recorded = attached(r#"[{"name":"a","mac":"02:00:00:00:00:01"},{"name":"b"}]"#);
    recorded.iter_mut().for_each(|it| it.selection = None);
    let after = r#"[{"name":"b"},{"name":"a","mac":"02:00:00:00:00:02"}]"#;
    let difference = running(after).with_inputs(|inputs| difference(inputs, &recorded, true));
    assert_eq!(difference.removed, [1]);
    assert_eq!(names(&difference.plan.attachments), ["net3 pods/a"]);
    // Jackfield adds the digest in `kept` to the record. The next change recognizes the attachment
    // by this digest.
    let [(kept, digest)] = difference.kept.as_slice() else {
        panic!("{:?}", difference.kept);
    };
    assert_eq!(*kept, 2);
    assert_eq!(Some(digest), attached("b")[1].selection.as_ref());
}

#[test]
fn an_invalid_annotation_changes_nothing() {
    for invalid in ["[{", r#"[{"mac":"02:00:00:00:00:01"}]"#] {
        let difference = compare(&attached("a,b"), &running(invalid));
        assert_eq!(difference.plan.problems.len(), 1, "{invalid}");
        assert_eq!(difference.removed, [0; 0], "{invalid}");
        assert_eq!(names(&difference.plan.attachments), [""; 0]);
    }
}

#[test]
fn a_new_network_gets_a_device_that_no_attachment_uses() {
    let device = |attachment: &Attachment| attachment.device.as_ref().map(|it| it.id.clone());
    let recorded = attached("s@x,a");
    assert_eq!(device(&recorded[1]).as_deref(), Some("0000:01:10.0"));
    let two = compare(&recorded, &running("s,s,a"));
    assert_eq!(two.removed, [0; 0]);
    assert_eq!(
        device(&two.plan.attachments[0]).as_deref(),
        Some("0000:01:10.1")
    );
    // A new network can get the device of a network that the same change detaches.
    let moved = compare(&recorded, &running("a,s@y"));
    assert_eq!(moved.removed, [1]);
    assert_eq!(
        device(&moved.plan.attachments[0]).as_deref(),
        Some("0000:01:10.0")
    );
    let three = compare(&recorded, &running("s,s,s"));
    let [problem] = three.plan.problems.as_slice() else {
        panic!("{:?}", three.plan.problems);
    };
    assert_eq!(problem.code(), 104);
    let words = "3 of the pod's networks need a device each, but the pod has 2";
    assert!(problem.to_string().contains(words), "{problem}");
}

#[test]
fn the_checks_of_an_add_apply_to_new_networks() {
    let recorded = attached("a@x");
    let taken = compare(&recorded, &running("a@x,b@eth0"));
    assert!(matches!(
        *taken.plan.problems[0].reason,
        Reason::InterfaceUsed { .. }
    ));
    let policy = json!({"namespaces": {"*": {"networks": ["pods/b"]}}});
    let restricted = |annotation: &str| running(annotation).node("policy", policy.clone());
    assert_eq!(compare(&recorded, &restricted("a@x,b")).plan.problems, []);
    let refused = compare(&recorded, &restricted("a@x,c"))
        .plan
        .problems
        .remove(0);
    assert_eq!(refused.code(), 108);
    let missing = compare(&recorded, &running("a@x,missing"))
        .plan
        .problems
        .remove(0);
    assert_eq!(missing.code(), 102);
}
