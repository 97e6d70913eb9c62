//! Large untrusted input either exceeds a limit and fails, or takes time proportional to its size.

use super::*;
use crate::cost::linear;
use crate::npwg::ElementError;

#[test]
fn the_capabilities_of_a_plugin_have_a_limit() {
    let declaring = |count: usize| {
        let declared = (0..count).map(|number| (format!("c{number}"), json!(true)));
        let declared: serde_json::Map<String, Value> = declared.collect();
        let config = json!({"cniVersion": "1.0.0", "type": "macvlan", "capabilities": declared});
        story().define("pods/a", Some(config)).networks("a")
    };
    assert_eq!(declaring(MAX_CAPABILITIES).attached().len(), 2);
    let (code, _, reason) = linear(|| declaring(60_000).problem());
    assert_eq!(code, 102);
    let problem = ConfigurationProblem::TooManyCapabilities {
        origin: "NetworkAttachmentDefinition pods/a".to_owned(),
        plugin: "macvlan".parse().unwrap(),
        count: 60_000,
    };
    assert_eq!(reason, Reason::Configuration(problem));
}

#[test]
fn the_configurations_of_a_pod_share_one_size_limit() {
    let config = json!({"cniVersion": "1.0.0", "type": "macvlan", "x": "y".repeat(1 << 20)});
    let story = story().define("pods/a", Some(config));
    let of = |networks: usize| story.clone().networks(vec!["a"; networks].join(","));
    assert_eq!(of(7).attached().len(), 8);
    let (code, _, reason) = of(8).problem();
    assert_eq!(code, 102);
    assert!(
        matches!(
            reason,
            Reason::Configuration(ConfigurationProblem::TooLarge { bytes, .. })
                if bytes > MAX_CONFIGURATIONS
        ),
        "{reason:?}"
    );
}

#[test]
fn the_name_of_a_resource_has_a_limit() {
    let of = |bytes: usize| {
        let mut story = story().macvlan("pods/a", &[]).networks("a");
        let name = "r".repeat(bytes);
        story.definitions[0]["metadata"]["annotations"] =
            json!({"k8s.v1.cni.cncf.io/resourceName": name});
        story.problem()
    };
    assert_eq!(of(253).0, 104, "no device plugin has the resource");
    let (code, _, reason) = of(254);
    assert_eq!(code, 102);
    let Reason::Configuration(ConfigurationProblem::Unusable(report)) = reason else {
        panic!("{reason:?}");
    };
    let report = report.to_string();
    assert!(report.contains("has 254 bytes"), "{report}");
    assert!(report.contains("has at most 253"), "{report}");
}

#[test]
fn a_plan_that_exceeds_its_deadline_asks_for_a_retry() {
    let mut late = story().macvlan("pods/a", &[]).networks("a");
    late.until = Instant::now();
    let problems = late.plan().problems;
    assert_eq!(problems.len(), 2, "{problems:?}");
    for problem in problems {
        assert_eq!((problem.code(), *problem.reason), (11, Reason::NoTime));
    }
}

#[test]
fn an_annotation_with_too_many_values_is_invalid() {
    let list = |count: usize, element: &str| vec![element; count].join(",");
    let args = |count: usize| {
        let keys: Vec<String> = (0..count)
            .map(|number| format!(r#""k{number}":0"#))
            .collect();
        format!("{{{}}}", keys.join(","))
    };
    let port = r#"{"hostPort":1,"containerPort":1}"#;
    for (key, of, count, limit) in [
        ("ips", list(257, r#""10.0.0.1""#), 257, 256),
        ("default-route", list(65, r#""10.0.0.1""#), 65, 64),
        ("portMappings", list(4097, port), 4097, 4096),
        ("cni-args", args(20_000), 20_000, 1024),
    ] {
        let value = if key == "cni-args" {
            of
        } else {
            format!("[{of}]")
        };
        let annotation = format!(r#"[{{"name":"a","{key}":{value}}}]"#);
        let story = story().macvlan("pods/a", &["ips", "portMappings"]);
        let plan = linear(|| story.networks(annotation).plan());
        assert_eq!(plan.attachments.len(), 1, "{key}");
        let source = ElementError::TooMany { key, count, limit };
        assert!(
            matches!(
                &plan.warnings[..],
                [PlanWarning::IgnoredAnnotation {
                    error: SelectionError::Element { source: it, .. },
                    ..
                }] if *it == source
            ),
            "{:?}",
            plan.warnings
        );
    }
    let annotation = format!(r#"[{{"name":"a","cni-args":{}}}]"#, args(1024));
    let story = story().macvlan("pods/a", &[]);
    assert_eq!(story.networks(annotation).attached().len(), 2);
}

#[test]
fn a_claim_with_too_many_addresses_is_refused() {
    let ips = vec!["10.0.0.1"; 257];
    let story = story()
        .macvlan("pods/a", &["ips"])
        .claim("c", &ips)
        .networks(json!([{"name": "a", "ipam-claim-reference": "c"}]));
    let (code, _, reason) = story.problem();
    assert_eq!(code, 102);
    let problem = ConfigurationProblem::ClaimTooLarge {
        claim: "pods/c".parse().unwrap(),
        count: 257,
    };
    assert_eq!(reason, Reason::Configuration(problem));
}
