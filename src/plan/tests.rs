//! The rules of a plan. Each test has a node configuration, a cluster and a pod's annotation.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::allocation::{AssignError, Origin, Supply, UnknownCause};
use crate::cluster::{EventKind, Pod};
use crate::cni::{NetworkConfig, RawObject};
use crate::npwg::{
    DEFAULT_NETWORK_ANNOTATION, Definition, IpamClaim, NETWORKS_ANNOTATION, SelectionError,
};
use crate::request::RuleName;

impl Attachment {
    /// An attachment with this configuration and the interface `net1`, without requests.
    pub(crate) fn for_tests(config: &str) -> Attachment {
        Attachment::bare(
            "demo/n".to_owned(),
            "net1".parse().unwrap(),
            "n".parse().unwrap(),
            NetworkConfig::parse(config.as_bytes()).unwrap(),
        )
    }
}

/// The inputs of a plan, as JSON.
#[derive(Clone)]
struct Story {
    node: serde_json::Map<String, Value>,
    definitions: Vec<Value>,
    claims: Vec<Value>,
    namespace: Option<&'static str>,
    annotations: PodAnnotations,
    runtime_config: Value,
    allocation: Allocation,
    until: Instant,
}

/// A pod in the namespace `pods`, and a cluster network with one bridge plugin.
fn story() -> Story {
    let node = json!({
        "cniVersion": "1.0.0", "name": "jackfield", "type": "jackfield", "manifestDir": "/m",
        "confDir": "/nonexistent",
        "delegates": [{"cniVersion": "1.0.0", "name": "cluster", "type": "bridge"}],
    });
    Story {
        node: node.as_object().unwrap().clone(),
        definitions: Vec::new(),
        claims: Vec::new(),
        namespace: Some("pods"),
        annotations: PodAnnotations::default(),
        runtime_config: json!({}),
        allocation: Allocation::default(),
        until: Instant::now() + Duration::from_secs(600),
    }
}

impl Story {
    fn node(mut self, key: &str, value: Value) -> Story {
        self.node.insert(key.to_owned(), value);
        self
    }

    /// Adds the definition `name`, with or without a configuration.
    fn define(mut self, name: &str, config: Option<Value>) -> Story {
        let (namespace, name) = name.split_once('/').unwrap();
        let config = config.map(|config| config.to_string());
        self.definitions.push(json!({
            "metadata": {"namespace": namespace, "name": name}, "spec": {"config": config},
        }));
        self
    }

    /// Adds a definition with one macvlan plugin that declares `capabilities`.
    fn macvlan(self, name: &str, capabilities: &[&str]) -> Story {
        let declared: serde_json::Map<String, Value> = capabilities
            .iter()
            .map(|capability| ((*capability).to_owned(), json!(true)))
            .collect();
        let config = json!({"cniVersion": "1.0.0", "type": "macvlan", "capabilities": declared});
        self.define(name, Some(config))
    }

    fn claim(mut self, name: &str, ips: &[&str]) -> Story {
        self.claims.push(json!({
            "metadata": {"namespace": "pods", "name": name},
            "spec": {"network": "n", "interface": "i"}, "status": {"ips": ips},
        }));
        self
    }

    fn networks(mut self, annotation: impl ToString) -> Story {
        self.annotations.networks = Some(annotation.to_string());
        self
    }

    fn default_network(mut self, annotation: impl ToString) -> Story {
        self.annotations.default_network = Some(annotation.to_string());
        self
    }

    fn plan(&self) -> Plan {
        self.with_inputs(plan)
    }

    fn with_inputs<T>(&self, act: impl FnOnce(Inputs<'_>) -> T) -> T {
        let text = Value::Object(self.node.clone()).to_string();
        let node = NodeConfig::parse(&RawObject::parse(text.as_bytes()).unwrap()).unwrap();
        let mut answer = Answer {
            pod: Some(Pod::default()),
            ..Answer::default()
        };
        for object in &self.definitions {
            let definition = Definition::from_json(object).unwrap();
            let name = definition.object.clone();
            answer.definitions.push((name, Ok(definition)));
        }
        for object in &self.claims {
            let claim = IpamClaim::from_json(object).unwrap();
            answer
                .claims
                .push((claim.object.name().to_owned(), Ok(claim)));
        }
        let catalog = Catalog::build(&node, &answer);
        let pod = self.namespace.map(|namespace| PodName {
            namespace: namespace.to_owned(),
            name: "web".to_owned(),
            uid: None,
        });
        let runtime_config = RawObject::parse(self.runtime_config.to_string().as_bytes()).unwrap();
        act(Inputs {
            config: &node,
            container: &"c1".parse().unwrap(),
            ifname: &"eth0".parse().unwrap(),
            pod: pod.as_ref(),
            annotations: &self.annotations,
            answer: &answer,
            catalog: &catalog,
            allocation: &self.allocation,
            until: self.until,
            runtime_config: CapabilityArgs::from(&runtime_config),
        })
    }

    /// The attachments of a plan without problems, each as `label (interface)`.
    fn attached(&self) -> Vec<String> {
        let plan = self.plan();
        assert_eq!(plan.problems, [], "{:?}", plan.problems);
        in_words(&plan)
    }

    /// The first attachment after the cluster network.
    fn second(&self) -> Attachment {
        let plan = self.plan();
        assert_eq!(plan.problems, [], "{:?}", plan.problems);
        plan.attachments[1].clone()
    }

    /// The code, the place and the reason of the plan's only problem.
    fn problem(&self) -> (u32, String, Reason) {
        let mut problems = self.plan().problems;
        assert_eq!(problems.len(), 1, "{problems:?}");
        let problem = problems.remove(0);
        let place = problem.place.as_ref().map(ToString::to_string);
        (problem.code(), place.unwrap_or_default(), *problem.reason)
    }
}

fn in_words(plan: &Plan) -> Vec<String> {
    let words = |one: &Attachment| format!("{} ({})", one.label, one.ifname);
    plan.attachments.iter().map(words).collect()
}

// clause: NPWG-1.3 §4.1 name
// clause: NPWG-1.3 §5 name
#[test]
fn annotations_have_the_names_of_the_specification() {
    let all = [
        ("k8s.v1.cni.cncf.io/networks", "net-a"),
        ("v1.multus-cni.io/default-network", "net-b"),
        ("k8s.v1.cni.cncf.io/networks-status", "net-c"),
        ("other", "net-d"),
    ];
    let all = all.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let annotations = PodAnnotations::from_map(&all.into());
    assert_eq!(annotations.networks.as_deref(), Some("net-a"));
    assert_eq!(annotations.default_network.as_deref(), Some("net-b"));
    assert_eq!(
        crate::npwg::STATUS_ANNOTATION,
        "k8s.v1.cni.cncf.io/network-status"
    );
}

fn argument(attachment: &Attachment, capability: &str) -> Option<String> {
    let value = attachment.capability_args.get(capability)?;
    Some(value.get().to_owned())
}

// clause: NPWG-1.3 §6 attached
// clause: NPWG-1.3 §6.2
#[test]
fn default_networks_come_between_the_cluster_network_and_selected_networks() {
    let story = story()
        .macvlan("infra/metrics", &[])
        .macvlan("pods/net-a", &[])
        .node("defaultNetworks", json!(["infra/metrics"]));
    let cluster = "cluster (eth0)";
    assert_eq!(story.attached(), [cluster, "infra/metrics (net1)"]);
    let selecting = story.clone().networks("net-a");
    assert_eq!(
        selecting.attached(),
        [cluster, "infra/metrics (net1)", "pods/net-a (net2)"]
    );
    let of_the_system = Story {
        namespace: Some("kube-system"),
        ..story.clone()
    };
    assert_eq!(
        of_the_system.attached(),
        [cluster],
        "a pod in a system namespace gets no default networks"
    );
    let without_pod = Story {
        namespace: None,
        ..selecting
    };
    assert_eq!(
        without_pod.attached(),
        [cluster],
        "a runtime without Kubernetes"
    );
    let plan = story.plan();
    assert!(plan.attachments[0].is_cluster && !plan.attachments[1].is_cluster);
}

// clause: NPWG-1.3 §4.2 operation: a network that is selected twice is attached twice
// clause: NPWG-1.3 §4.2.1 created: the network has the name of its definition
// clause: NPWG-1.3 §4.2.1 interface: the position decides a generated name, and each name is unique
// clause: NPWG-1.3 §4.1.2.1.5 used
// clause: NPWG-1.3 §4.1.2.1.2: an element may name a namespace
#[test]
fn interfaces_are_numbered_in_the_order_of_the_annotation() {
    let story = story()
        .macvlan("pods/net-a", &[])
        .macvlan("default/net-b", &[])
        .networks("net-a,default/net-b@storage0,net-a");
    assert_eq!(
        story.attached(),
        [
            "cluster (eth0)",
            "pods/net-a (net1)",
            "default/net-b (storage0)",
            "pods/net-a (net3)"
        ]
    );
    let plan = story.plan();
    assert_eq!(plan.attachments[1].network.as_str(), "net-a");
    assert_eq!(plan.attachments[3].network.as_str(), "net-a");
}

// clause: NPWG-1.3 §4.1.2.1.5 taken
#[test]
fn two_networks_cannot_use_the_same_interface_name() {
    let story = story().macvlan("pods/a", &[]).macvlan("pods/b", &[]);
    for (annotation, place, ifname, network) in [
        ("a@eth0", "network pods/a (eth0)", "eth0", "cluster"),
        ("a@x,b@x", "network pods/b (x)", "x", "pods/a"),
    ] {
        let reason = Reason::InterfaceUsed {
            ifname: ifname.parse().unwrap(),
            network: network.to_owned(),
        };
        let problem = story.clone().networks(annotation).problem();
        assert_eq!(problem, (101, place.to_owned(), reason));
    }
}

// clause: NPWG-1.3 §4.2.1 interface: Jackfield generates no name that the pod requests
#[test]
fn generated_interface_names_avoid_requested_names() {
    let story = story().macvlan("pods/a", &[]).macvlan("pods/b", &[]);
    for (annotation, names) in [
        ("a@net2,b", ["net2", "net3"].as_slice()),
        ("b,a@net1", &["net3", "net1"]),
        ("a@net2,b,a", &["net2", "net4", "net3"]),
        ("a,b@net5,a,a@net3", &["net1", "net5", "net6", "net3"]),
    ] {
        let plan = story.clone().networks(annotation).plan();
        let attached = plan.attachments.iter().skip(1);
        let attached: Vec<&str> = attached.map(|it| it.ifname.as_str()).collect();
        assert_eq!(attached, names, "{annotation}");
    }
    // Generated names of default networks also avoid the names that the pod requests.
    let story = story
        .macvlan("infra/metrics", &[])
        .node("defaultNetworks", json!(["infra/metrics"]))
        .networks("a@net1,b");
    assert_eq!(
        story.attached()[1..],
        ["infra/metrics (net4)", "pods/a (net1)", "pods/b (net3)"]
    );
    let of_the_system = Story {
        namespace: Some("kube-system"),
        ..story.clone()
    };
    let of_the_system = of_the_system
        .macvlan("default/c", &[])
        .networks("default/c@net2,default/c");
    let attached = of_the_system.attached();
    assert_eq!(attached[1..], ["default/c (net2)", "default/c (net3)"]);
}

// clause: NPWG-1.3 §3.4.1 config: spec.config takes precedence over files
// clause: NPWG-1.3 §3.4.1 order: spec.config comes first, then a list on disk, then a single plugin
// clause: NPWG-1.3 §3.4.1 on disk: the key `name` in the file is the name of the definition
// clause: NPWG-1.3 §3.4.1 otherwise
// clause: NPWG-1.3 §3.2 no keys: a file on the node has the configuration
#[test]
fn a_definition_without_a_configuration_uses_one_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    file("00-broken.conflist", "{");
    file("10.conf", r#"{"name":"net-a","type":"single"}"#);
    file(
        "20.conflist",
        r#"{"name":"net-b","plugins":[{"type":"list"}]}"#,
    );
    file("15.conf", r#"{"name":"net-b","type":"single"}"#);
    let story = story()
        .node("confDir", json!(folder.path()))
        .macvlan("pods/net-b", &[])
        .define("default/net-b", None)
        .define("pods/net-a", None)
        .define("pods/net-c", None);
    for (network, expected) in [
        ("net-b", "macvlan"),
        ("default/net-b", "list"),
        ("net-a", "single"),
    ] {
        let attachment = story.clone().networks(network).second();
        let plugin = attachment.config.plugins()[0].plugin_type();
        assert_eq!(plugin.as_str(), expected, "{network}");
    }
    let (code, place, reason) = story.networks("net-c").problem();
    assert_eq!((code, place.as_str()), (102, "network pods/net-c (net1)"));
    assert!(
        matches!(
            reason,
            Reason::Configuration(ConfigurationProblem::Unusable(_))
        ),
        "{reason:?}"
    );
}

// clause: NPWG-1.3 §3.4.2: a configuration without a name gets the definition's name
// clause: NPWG-1.3 §3.4.3 not required: the configuration may have a different name
// clause: NPWG-1.3 §5.3.1 name: the status has the definition's name, not the configuration's
// clause: NPWG-1.3 §5.3.1 namespace
#[test]
fn a_network_has_the_name_in_its_configuration() {
    let config = |name: Value| json!({"cniVersion": "1.0.0", "type": "macvlan", "name": name});
    let story = story()
        .define("pods/net-a", Some(config(json!("vlan-7"))))
        .define("pods/net-b", Some(config(Value::Null)));
    for (network, called) in [("net-a", "vlan-7"), ("net-b", "net-b")] {
        let attachment = story.clone().networks(network).second();
        assert_eq!(attachment.network.as_str(), called);
        assert_eq!(attachment.label, format!("pods/{network}"));
    }
}

#[test]
fn an_unusable_network_is_reported_and_keeps_its_interface_number() {
    let story = story()
        .macvlan("pods/good", &[])
        .define("pods/broken", Some(json!("no object")))
        .define("pods/empty", Some(json!({"name": "empty", "plugins": []})))
        .networks("broken,missing,empty,good");
    let plan = story.plan();
    assert_eq!(in_words(&plan), ["cluster (eth0)", "pods/good (net4)"]);
    let places: Vec<String> = plan
        .problems
        .iter()
        .map(|problem| problem.place.as_ref().unwrap().to_string())
        .collect();
    assert_eq!(
        places,
        [
            "network pods/broken (net1)",
            "network pods/missing (net2)",
            "network pods/empty (net3)",
        ]
    );
    assert!(plan.problems.iter().all(|problem| problem.code() == 102));
}

// clause: NPWG-1.3 §7.4
#[test]
fn isolation_allows_only_own_and_global_namespaces() {
    let annotations = ["net", "other/net", "default/net"];
    let table = [
        (json!({}), [true, false, true]),
        (json!({"namespaceIsolation": false}), [true, true, true]),
        (
            json!({"globalNamespaces": "other, more"}),
            [true, true, false],
        ),
        (json!({"globalNamespaces": "more"}), [true, false, false]),
    ];
    for (keys, allowed) in table {
        for (annotation, allowed) in annotations.into_iter().zip(allowed) {
            let mut story = story()
                .macvlan("pods/net", &[])
                .macvlan("other/net", &[])
                .macvlan("default/net", &[]);
            for (key, value) in keys.as_object().unwrap() {
                story = story.node(key, value.clone());
            }
            let selecting = story.clone().networks(annotation);
            let replacing = story.default_network(if annotation == "net" {
                "pods/net"
            } else {
                annotation
            });
            for story in [selecting, replacing] {
                let problems = story.plan().problems;
                assert_eq!(problems.is_empty(), allowed, "{keys} {annotation}");
                for problem in problems {
                    assert_eq!(problem.code(), 108, "{problem}");
                    assert!(matches!(
                        *problem.reason,
                        Reason::Restricted(Restriction::Isolated { .. })
                    ));
                }
            }
        }
    }
}

/// In the annotation `v1.multus-cni.io/default-network`, a name without a namespace means a
/// definition in `multusNamespace` (`kube-system` by default). The administrator owns these
/// definitions.
#[test]
fn isolation_allows_a_cluster_network_in_the_multus_namespace() {
    let story = story()
        .macvlan("kube-system/net", &[])
        .macvlan("infra/net", &[]);
    let replaced = |story: &Story, annotation: &str| {
        let problems = story.clone().default_network(annotation).plan().problems;
        problems.is_empty()
    };
    assert!(replaced(&story, "net") && replaced(&story, "kube-system/net"));
    assert!(!replaced(&story, "infra/net"));
    assert_eq!(story.clone().networks("kube-system/net").problem().0, 108);
    let moved = story.node("multusNamespace", json!("infra"));
    assert!(replaced(&moved, "net") && !replaced(&moved, "kube-system/net"));
}

// clause: NPWG-1.3 §7.4
#[test]
fn isolation_does_not_reveal_whether_a_refused_definition_exists() {
    assert_eq!(story().networks("other/absent").problem().0, 108);
    let broken = story().define("other/net", Some(json!("no object")));
    assert_eq!(broken.networks("other/net").problem().0, 108);
}

#[test]
fn selected_networks_come_between_delegates_and_the_auxiliary_chain() {
    let folder = tempfile::tempdir().unwrap();
    let chain = folder.path().join("extra");
    std::fs::create_dir(&chain).unwrap();
    std::fs::write(chain.join("10.conf"), r#"{"type":"tuning"}"#).unwrap();
    let network = |name: &str| json!({"cniVersion": "1.0.0", "name": name, "type": "bridge"});
    let story = story()
        .macvlan("pods/net", &[])
        .node("confDir", json!(folder.path()))
        .node("auxiliaryCNIChainName", json!("extra"))
        .node("delegates", json!([network("cluster"), network("second")]))
        .networks("net@net3");
    assert_eq!(
        story.attached(),
        [
            "cluster (eth0)",
            "second (net1)",
            "pods/net (net3)",
            "extra (net4)"
        ]
    );
    let plan = story.plan();
    let auxiliary = |one: &Attachment| one.is_auxiliary;
    assert_eq!(
        plan.attachments.iter().filter(|one| auxiliary(one)).count(),
        1
    );
    assert!(auxiliary(plan.attachments.last().unwrap()));
    std::fs::write(chain.join("20.conf"), "{").unwrap();
    let (code, place, reason) = story.problem();
    assert_eq!(code, 102);
    assert_eq!(place, "network auxiliaryCNIChainName (net4)");
    let Reason::Configuration(ConfigurationProblem::NotFound { report, .. }) = reason else {
        panic!("{reason:?}");
    };
    let report = report.to_string();
    assert!(report.contains("20.conf"), "{report}");
}

// clause: NPWG-1.3 §7.4
#[test]
fn a_policy_restricts_only_the_networks_that_pods_select() {
    let config = json!({"cniVersion": "1.0.0", "name": "n", "plugins": [
        {"type": "macvlan", "ipam": {"type": "host-local", "DataDir": "/x"}}, {"type": "tuning"}]});
    let story = story()
        .define("pods/net", Some(config))
        .node("defaultNetworks", json!(["pods/net"]));
    let rule = || RuleName::Namespace("pods".to_owned());
    let without_type = |name: &str| Restriction::PluginType {
        name: name.to_owned(),
        rule: rule(),
    };
    let with_key = |key: &str| Restriction::PluginKey {
        plugin: "macvlan".parse().unwrap(),
        key: key.to_owned(),
        rule: rule(),
    };
    let unlisted = Restriction::Network("pods".to_owned());
    let table = [
        (json!({}), None),
        (json!({"types": ["macvlan", "host-local", "tuning"]}), None),
        (
            json!({"types": ["macvlan", "tuning"]}),
            Some(without_type("host-local")),
        ),
        (
            json!({"types": ["macvlan", "host-local"]}),
            Some(without_type("tuning")),
        ),
        (json!({"networks": ["pods/net"]}), None),
        (json!({"networks": ["pods/other"]}), Some(unlisted)),
        (
            json!({"denyKeys": ["ipam.dataDir"]}),
            Some(with_key("ipam.dataDir")),
        ),
        (json!({"denyKeys": ["ipam"]}), Some(with_key("ipam"))),
        (json!({"denyKeys": ["sysctl", "ipam.ranges"]}), None),
    ];
    for (rule, refused) in table {
        for namespace in ["*", "pods"] {
            let policy = json!({"namespaces": {namespace: rule, "others": {"types": ["x"]}}});
            let story = story.clone().node("policy", policy);
            assert_eq!(story.plan().problems, [], "default networks are exempt");
            let selecting = story.clone().networks("net@sel0");
            let replacing = story.default_network("pods/net");
            for story in [selecting, replacing] {
                match &refused {
                    None => assert_eq!(story.plan().problems, [], "{rule}"),
                    Some(restriction) => {
                        let (code, _, reason) = story.problem();
                        assert_eq!(code, 108);
                        assert_eq!(reason, Reason::Restricted(restriction.clone()), "{rule}");
                    }
                }
            }
        }
    }
    let own = json!({"namespaces": {"*": {"types": ["x"]}, "pods": {}}});
    let story = story.node("policy", own).networks("net@sel0");
    assert_eq!(
        story.plan().problems,
        [],
        "the rule for a namespace replaces the rule for `*`"
    );
}

#[test]
fn a_policy_also_restricts_the_keys_beside_the_plugins() {
    let cluster = story().plan().attachments[0].network.to_string();
    let named = |name: &str| {
        let list = json!({"cniVersion": "1.0.0", "name": name, "disableCheck": true,
            "plugins": [{"type": "macvlan"}]});
        story().define("pods/net", Some(list)).networks("net")
    };
    let policy = |rule: Value| json!({"namespaces": {"*": rule}});
    let types = policy(json!({"types": ["macvlan"]}));
    let (code, _, reason) = named(&cluster).node("policy", types.clone()).problem();
    let name = Restriction::ClusterName(cluster.parse().unwrap());
    assert_eq!((code, reason), (108, Reason::Restricted(name)));
    assert_eq!(named("another").node("policy", types).plan().problems, []);
    assert_eq!(named(&cluster).plan().problems, [], "without a policy");
    for key in ["name", "disablecheck"] {
        let denied = policy(json!({"denyKeys": [key]}));
        let (code, _, reason) = named("another").node("policy", denied).problem();
        let restriction = Restriction::ListKey {
            key: key.to_owned(),
            rule: RuleName::Namespace("pods".to_owned()),
        };
        assert_eq!((code, reason), (108, Reason::Restricted(restriction)));
    }
    for no_type in [json!(null), json!("")] {
        let list = json!({"cniVersion": "1.0.0", "name": "n", "type": no_type,
            "disableCheck": true, "plugins": [{"type": "macvlan"}]});
        let story = story().define("pods/net", Some(list)).networks("net");
        let denied = policy(json!({"denyKeys": ["disableCheck"]}));
        assert_eq!(story.node("policy", denied).problem().0, 108, "{no_type}");
    }
}

#[test]
fn a_policy_applies_to_nested_plugins() {
    let config = json!({"cniVersion": "1.0.0", "name": "n", "type": "flannel",
        "Delegate": {"type": "bridge", "sysctl": {}, "ipam": {"type": "static"}},
        "delegates": [{"plugins": [{"type": "tuning"}]}]});
    let story = story().define("pods/net", Some(config)).networks("net");
    let all = ["flannel", "bridge", "static", "tuning"];
    let policy = |rule: Value| json!({"namespaces": {"*": rule}});
    let allowed = story.clone().node("policy", policy(json!({"types": all})));
    assert_eq!(allowed.plan().problems, []);
    for missing in all {
        let types: Vec<&str> = all.into_iter().filter(|name| *name != missing).collect();
        let story = story
            .clone()
            .node("policy", policy(json!({"types": types})));
        let (code, _, reason) = story.problem();
        let restriction = Restriction::PluginType {
            name: missing.to_owned(),
            rule: RuleName::Namespace("pods".to_owned()),
        };
        assert_eq!((code, reason), (108, Reason::Restricted(restriction)));
    }
    let denied = story.node("policy", policy(json!({"denyKeys": ["sysctl"]})));
    assert_eq!(denied.problem().0, 108);
}

#[test]
fn a_nested_plugin_cannot_hide_from_a_policy() {
    let policy =
        json!({"namespaces": {"*": {"types": ["meta", "bridge"], "denyKeys": ["sysctl"]}}});
    let evil = json!({"type": "evil"});
    let nested = |levels: usize| {
        (0..levels).fold(
            json!({"type": "bridge"}),
            |inner, _| json!({"type": "meta", "delegate": inner}),
        )
    };
    let problem = |members: Value| {
        let mut config = json!({"cniVersion": "1.0.0", "name": "n", "type": "meta"});
        config
            .as_object_mut()
            .unwrap()
            .append(&mut members.as_object().unwrap().clone());
        let story = story().define("pods/net", Some(config)).networks("net");
        let plan = story.node("policy", policy.clone()).plan();
        plan.problems
            .into_iter()
            .next()
            .map(|problem| *problem.reason)
    };
    for members in [
        json!({"delegates": [null, evil]}),
        json!({"delegates": [7, evil]}),
        json!({"delegates": [[evil]]}),
        json!({"delegates": {"a": evil, "b": null}}),
        json!({"delegates": {"delegates": {"a": [evil]}}}),
        json!({"ipam": [evil, null]}),
        json!({"delegate": [{"type": "bridge", "sysctl": {}}, null]}),
    ] {
        let reason = problem(members.clone());
        assert!(
            matches!(
                reason,
                Some(Reason::Restricted(
                    Restriction::PluginType { .. } | Restriction::PluginKey { .. }
                ))
            ),
            "{members}: {reason:?}"
        );
    }
    assert_eq!(problem(json!({"delegate": nested(6)})), None);
    for deep in [
        json!({"delegate": nested(20)}),
        json!({"delegates": [[[[[[evil]]]]]]}),
    ] {
        let reason = problem(deep).unwrap();
        assert!(
            matches!(reason, Reason::Restricted(Restriction::TooDeep { .. })),
            "{reason:?}"
        );
    }
}

#[test]
fn policy_node_restricts_networks_of_the_node_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let chain = folder.path().join("extra");
    std::fs::create_dir(&chain).unwrap();
    std::fs::write(chain.join("10.conf"), r#"{"type":"tuning"}"#).unwrap();
    let network =
        |name: &str, plugin: &str| json!({"cniVersion": "1.0.0", "name": name, "type": plugin});
    let evil = json!({"cniVersion": "1.0.0", "type": "evil", "ipam": {"dataDir": "/"}});
    let base = story()
        .define("kube-system/named", Some(evil))
        .macvlan("pods/net", &[])
        .node("confDir", json!(folder.path()))
        .networks("net");
    let without = |story: Story, key: &str| {
        let mut story = story;
        story.node.remove(key);
        story
    };
    let stories = [
        (
            without(base.clone(), "delegates").node("clusterNetwork", json!("named")),
            "evil",
        ),
        (
            base.clone().node("defaultNetworks", json!(["named"])),
            "evil",
        ),
        (
            base.clone().node(
                "delegates",
                json!([network("cluster", "bridge"), network("b", "vlan")]),
            ),
            "vlan",
        ),
        (
            base.clone().node("auxiliaryCNIChainName", json!("extra")),
            "tuning",
        ),
    ];
    for (story, plugin) in stories {
        let types = |types: &[&str]| json!({"node": {"types": types}, "namespaces": {}});
        assert_eq!(story.plan().problems, []);
        let allowed = story.clone().node("policy", types(&["bridge", plugin]));
        assert_eq!(
            allowed.plan().problems,
            [],
            "networks that a pod selects are exempt"
        );
        let (code, _, reason) = story.clone().node("policy", types(&["bridge"])).problem();
        let restriction = Restriction::PluginType {
            name: plugin.to_owned(),
            rule: RuleName::Node,
        };
        assert_eq!((code, reason), (108, Reason::Restricted(restriction)));
        let keys = json!({"node": {"denyKeys": ["type"]}});
        assert!(!story.node("policy", keys).plan().problems.is_empty());
    }
}

#[test]
fn networks_of_the_node_configuration_prefer_files_to_definitions() {
    let folder = tempfile::tempdir().unwrap();
    let file = r#"{"cniVersion":"1.0.0","name":"own","type":"bridge"}"#;
    std::fs::write(folder.path().join("10.conf"), file).unwrap();
    let answered = |config: Option<&str>| {
        let mut story = story()
            .define(
                "kube-system/own",
                config.map(|plugin| json!({"type": plugin})),
            )
            .node("confDir", json!(folder.path()))
            .node("clusterNetwork", json!("own"))
            .node("defaultNetworks", json!(["own"]));
        story.node.remove("delegates");
        story
    };
    assert_eq!(
        answered(Some("evil")).attached(),
        ["own (eth0)", "own (net1)"]
    );
    for story in [answered(Some("evil")), answered(None)] {
        for attachment in story.plan().attachments {
            let plugin = attachment.config.plugins()[0].plugin_type();
            assert_eq!(plugin.as_str(), "bridge");
        }
    }
    // If the definition has no configuration, the file supplies the configuration, and the label is
    // the name of the definition.
    let words = ["kube-system/own (eth0)", "kube-system/own (net1)"];
    assert_eq!(answered(None).attached(), words);
}

/// The requests of a pod. Each row has the key and value in the annotation, then the capability and
/// its value.
const REQUESTS: [(&str, &str, &str, &str); 5] = [
    ("ips", r#"["10.0.0.5/24"]"#, "ips", r#"["10.0.0.5/24"]"#),
    (
        "mac",
        r#""02:00:00:00:00:05""#,
        "mac",
        r#""02:00:00:00:00:05""#,
    ),
    (
        "portMappings",
        r#"[{"hostPort":80,"containerPort":8080}]"#,
        "portMappings",
        r#"[{"hostPort":80,"containerPort":8080,"protocol":"tcp"}]"#,
    ),
    (
        "bandwidth",
        r#"{"ingressRate":8000,"ingressBurst":800}"#,
        "bandwidth",
        r#"{"ingressRate":8000,"ingressBurst":800}"#,
    ),
    (
        "infiniband-guid",
        r#""24:8a:07:03:00:8d:ae:2f""#,
        "infinibandGUID",
        r#""24:8a:07:03:00:8d:ae:2f""#,
    ),
];

fn asking(key: &str, value: &str) -> String {
    format!(r#"[{{"name":"net","{key}":{value}}}]"#)
}

// clause: NPWG-1.3 §4.1.2.1.3.2 runtimeConfig
// clause: NPWG-1.3 §4.1.2.1.3.2 declared
// clause: NPWG-1.3 §4.1.2.1.4.2 runtimeConfig
// clause: NPWG-1.3 §4.1.2.1.4.2 declared
// clause: NPWG-1.3 §4.1.2.1.7 unsupported
// clause: NPWG-1.3 §4.1.2.1.7.2 runtimeConfig
// clause: NPWG-1.3 §4.1.2.1.7.2 declared
// clause: NPWG-1.3 §4.1.2.1.8 unsupported
// clause: NPWG-1.3 §4.1.2.1.8.2 runtimeConfig
// clause: NPWG-1.3 §4.1.2.1.8.2 declared
// clause: NPWG-1.3 §4.1.2.1.10.2 runtimeConfig
// clause: NPWG-1.3 §4.1.2.1.10.2 declared
#[test]
fn a_request_fails_unless_a_plugin_declares_the_capability() {
    for (key, value, capability, given) in REQUESTS {
        let chain = |declared: Value| {
            json!({"cniVersion": "1.0.0", "plugins": [
                {"type": "macvlan"}, {"type": "tuning", "capabilities": {capability: declared}}]})
        };
        let story = |declared: Value| {
            story()
                .define("pods/net", Some(chain(declared)))
                .networks(asking(key, value))
        };
        let attachment = story(json!(true)).second();
        assert_eq!(argument(&attachment, capability).as_deref(), Some(given));
        assert_eq!(attachment.extra_args, [], "not also in CNI_ARGS");
        for declared in [json!(false), Value::Null] {
            let reason = Reason::Undeclared {
                capability: capability.to_owned(),
                plugins: ["macvlan", "tuning"].map(|it| it.parse().unwrap()).to_vec(),
            };
            let place = "network pods/net (net1)".to_owned();
            assert_eq!(story(declared).problem(), (103, place, reason));
        }
    }
}

#[test]
fn undeclared_addresses_can_go_into_cni_args() {
    let story = story()
        .macvlan("pods/net", &[])
        .node("undeclared", json!("args"));
    for (key, value, capability, _) in REQUESTS {
        let story = story.clone().networks(asking(key, value));
        if !["ips", "mac"].contains(&key) {
            assert_eq!(story.problem().0, 103, "{key}");
            continue;
        }
        let attachment = story.second();
        assert_eq!(argument(&attachment, capability), None);
        assert!(
            attachment.cni_args.is_none(),
            "`undeclared: args` sets only CNI_ARGS, not args.cni"
        );
        let variable = if key == "ips" { "IP" } else { "MAC" };
        assert_eq!(attachment.extra_args[0].0, variable);
        assert!(value.contains(&attachment.extra_args[0].1), "{key}");
    }
}

/// Multus passes addresses both as capability arguments and in CNI_ARGS. Some plugins declare the
/// capability, but read the address from CNI_ARGS.
#[test]
fn declared_addresses_can_also_go_into_cni_args() {
    let story = story().node("undeclared", json!("args"));
    for (key, value, variable, text) in [
        (
            "ips",
            r#"["10.0.0.5/24","2001:db8::5/64"]"#,
            "IP",
            "10.0.0.5/24,2001:db8::5/64",
        ),
        ("mac", r#""02-23-45-67-89-01""#, "MAC", "02:23:45:67:89:01"),
    ] {
        let story = story.clone().macvlan("pods/net", &[key]);
        let attachment = story.networks(asking(key, value)).second();
        assert!(argument(&attachment, key).is_some(), "{key}");
        let sent = [(variable.to_owned(), text.to_owned())];
        assert_eq!(attachment.extra_args, sent);
        assert!(attachment.cni_args.is_none(), "{key}");
    }
}

// clause: NPWG-1.0 §4.1.2.1.3.2 args
// clause: NPWG-1.0 §4.1.2.1.4.2 args
#[test]
fn npwg_1_0_always_passes_addresses_in_args() {
    let ipoib = "80:00:11:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:ff:00:11:22";
    for capabilities in [&[][..], &["ips", "mac"]] {
        let attachment = story()
            .macvlan("pods/net", capabilities)
            .node("npwgVersion", json!("1.0"))
            .networks(format!(
                r#"[{{"name":"net","ips":["10.0.0.5","2001:db8::5"],"mac":"{ipoib}"}}]"#
            ))
            .second();
        assert!(attachment.capability_args.is_empty());
        assert_eq!(
            attachment.cni_args.unwrap().to_string(),
            format!(r#"{{"ips":["10.0.0.5","2001:db8::5"],"mac":"{ipoib}"}}"#)
        );
        assert_eq!(
            attachment.requested.ips.len(),
            2,
            "verification checks both addresses"
        );
        assert!(attachment.requested.mac.is_some());
    }
}

// clause: NPWG-1.3 §4.1.2.1.6.2 priority: cni-args take precedence over ips
#[test]
fn cni_args_in_the_annotation_stay_as_written() {
    let attachment = story()
        .macvlan("pods/net", &[])
        .node("npwgVersion", json!("1.0"))
        .networks(r#"[{"name":"net","ips":["10.0.0.5"],"cni-args":{"ips":["10.0.0.9"],"n":1.10}}]"#)
        .second();
    assert_eq!(
        attachment.cni_args.unwrap().to_string(),
        r#"{"ips":["10.0.0.9"],"n":1.10}"#
    );
}

#[test]
fn plugin_args_that_cannot_hold_cni_args_are_refused() {
    let story = |args: Value| {
        story()
            .define("pods/net", Some(json!({"type": "macvlan", "args": args})))
            .networks(r#"[{"name":"net","cni-args":{"n":1}}]"#)
    };
    for args in [
        json!("str"),
        json!([1]),
        json!({"cni": "str"}),
        json!({"cni": [1]}),
    ] {
        let (code, _, reason) = story(args.clone()).problem();
        assert_eq!(code, 102, "{reason:?}");
        let Reason::Configuration(ConfigurationProblem::Args { plugin, .. }) = reason else {
            panic!("{reason:?}");
        };
        assert_eq!(plugin.as_str(), "macvlan");
        // For a pod without `cni-args`, Jackfield does not check the plugin's `args`.
        assert!(story(args).networks("net").plan().problems.is_empty());
    }
    for args in [
        Value::Null,
        json!({}),
        json!({"cni": null}),
        json!({"other": 7}),
    ] {
        assert!(story(args).plan().problems.is_empty());
    }
}

// clause: NPWG-1.3 §4.1.2.1.3 invalid
// clause: NPWG-1.3 §4.1.2.1.4 invalid
// clause: NPWG-1.3 §4.1.2.1.5 invalid
// clause: NPWG-1.3 §4.1.2.1.7 invalid
// clause: NPWG-1.3 §4.1.2.1.8 invalid
// clause: NPWG-1.3 §4.1.2.1.9 once
// clause: NPWG-1.3 §4.1.2.1.10 invalid
#[test]
fn an_invalid_annotation_is_ignored_with_a_warning_or_refused() {
    let story = story().macvlan("pods/net", &[]);
    for (annotation, named) in [
        (asking("ips", r#"["10.0.0.256"]"#), "10.0.0.256"),
        (asking("mac", r#""02:00""#), "02:00"),
        (asking("interface", r#""a/b""#), "a/b"),
        (
            asking("portMappings", r#"[{"hostPort":0,"containerPort":1}]"#),
            "hostPort",
        ),
        (asking("bandwidth", r#"{"ingressRate":0}"#), "ingressRate"),
        (asking("infiniband-guid", r#""24:8a""#), "24:8a"),
        (
            r#"[{"name":"net","default-route":[]},{"name":"net","default-route":[]}]"#.to_owned(),
            "default-route",
        ),
        ("[null]".to_owned(), "null"),
        ("net,,net".to_owned(), "network 2"),
    ] {
        let story = story.clone().networks(&annotation);
        assert_eq!(story.attached(), ["cluster (eth0)"], "{annotation}");
        let warnings = story.plan().warnings;
        let [warning @ PlanWarning::IgnoredAnnotation { key, error }] = &warnings[..] else {
            panic!("{annotation}: {warnings:?}");
        };
        assert_eq!(*key, NETWORKS_ANNOTATION);
        assert!(error.to_string().contains(named), "{error}");
        let event = warning.event();
        assert_eq!(event.kind, EventKind::Warning);
        assert_eq!(event.reason, "InvalidAnnotation");
        let strict = story.node("invalidAnnotation", json!("fail"));
        let (code, _, reason) = strict.problem();
        let error = error.clone();
        assert_eq!((code, reason), (101, Reason::Annotation { key, error }));
        assert_eq!(strict.plan().warnings, []);
        assert_eq!(strict.plan().problems, [warning.ignored().unwrap()]);
    }
}

// clause: NPWG-1.3 §7.5
#[test]
fn runtime_config_applies_only_to_the_cluster_network() {
    let mappings = json!([{"hostPort": 1, "containerPort": 2, "protocol": "tcp"}]);
    let story = Story {
        runtime_config: json!({"portMappings": mappings, "dns": {"searches": ["x"]}}),
        ..story()
            .macvlan("pods/net", &["portMappings", "mac"])
            .networks("net")
    };
    let plan = story.plan();
    assert_eq!(
        argument(&plan.attachments[0], "portMappings"),
        Some(mappings.to_string())
    );
    assert!(argument(&plan.attachments[0], "dns").is_some());
    assert!(plan.attachments[1].capability_args.is_empty());

    let replaced = story.default_network(
        r#"[{"name":"net","namespace":"pods","mac":"02:00:00:00:00:05","interface":"ignored0"}]"#,
    );
    let plan = replaced.plan();
    let cluster = &plan.attachments[0];
    assert!(argument(cluster, "portMappings").is_some() && argument(cluster, "mac").is_some());
    let ignored = PlanRemark::InterfaceIgnored {
        interface: "ignored0".parse().unwrap(),
        ifname: "eth0".parse().unwrap(),
    };
    assert_eq!(plan.remarks[1..], [ignored]);
}

#[test]
fn an_annotation_may_replace_the_cluster_network() {
    let story = story()
        .macvlan("kube-system/net", &[])
        .macvlan("pods/net", &[]);
    let story = story.node("globalNamespaces", json!("kube-system"));
    let replaced = story.clone().default_network("net");
    assert_eq!(replaced.attached(), ["kube-system/net (eth0)"]);
    let plan = replaced.plan();
    assert!(plan.attachments[0].is_cluster);
    let network = || "kube-system/net".parse().unwrap();
    let cluster = "delegates".to_owned();
    assert_eq!(
        plan.remarks,
        [
            PlanRemark::Replaced {
                network: network(),
                cluster
            },
            PlanRemark::MultusNamespace(network()),
        ]
    );

    let asking = r#"[{"name":"net","namespace":"pods","ips":["10.0.0.5"]}]"#;
    let plan = story.clone().default_network(asking).plan();
    assert_eq!(
        plan.problems,
        [],
        "the cluster network gets `ips` in CNI_ARGS if no plugin declares the capability"
    );
    assert_eq!(plan.attachments[0].extra_args[0].0, "IP");

    let unknown = story.clone().default_network("absent");
    assert_eq!(unknown.problem().0, 102);
    for invalid in ["net,net", "[]", "Net"] {
        let story = story.clone().default_network(invalid);
        assert_eq!(story.attached(), ["cluster (eth0)"], "{invalid}");
        assert!(matches!(
            &story.plan().warnings[..],
            [PlanWarning::IgnoredAnnotation {
                key: DEFAULT_NETWORK_ANNOTATION,
                ..
            }]
        ));
        assert_eq!(
            story.node("invalidAnnotation", json!("fail")).problem().0,
            101
        );
    }
}

// clause: NPWG-1.3 §4.1.2.1.11: the network gets the addresses of the claim
// clause: NPWG-1.3 §4.1.2.1.11.1 ignored: a network without the capability ips ignores the claim
// clause: NPWG-1.3 §4.1.2.1.11.1 honoured
// clause: NPWG-1.3 §4.1.2.1.11.1 with ips
#[test]
fn a_claim_gives_addresses_to_networks_that_declare_ips() {
    let story = story()
        .macvlan("pods/net", &["ips"])
        .macvlan("pods/plain", &[])
        .claim("vm.blue", &["10.0.0.5/24", "fd00::5/64"])
        .claim("new", &[]);
    let asking = |network: &str, rest: &str| {
        let annotation = format!(r#"[{{"name":"{network}","ipam-claim-reference":{rest}}}]"#);
        story.clone().networks(annotation)
    };
    let taken = asking("net", r#""vm.blue""#).second();
    assert_eq!(
        argument(&taken, "ips").as_deref(),
        Some(r#"["10.0.0.5/24","fd00::5/64"]"#)
    );
    assert_eq!(
        taken.requested.ips.len(),
        2,
        "verification checks both addresses"
    );
    let new = asking("net", r#""new""#).second();
    assert_eq!(argument(&new, "ips"), None, "the claim has no address yet");
    let ignored = asking("plain", r#""vm.blue""#).second();
    assert!(ignored.requested.ips.is_empty() && ignored.capability_args.is_empty());
    let (code, _, reason) = asking("net", r#""vm.blue","ips":["10.0.0.6"]"#).problem();
    let both = Reason::TwoAddressSources("vm.blue".to_owned());
    assert_eq!((code, reason), (101, both));
    assert_eq!(asking("net", r#""absent""#).problem().0, 102);
}

// clause: NPWG-1.3 §4.1.2.1.9 type: Jackfield keeps all gateways
#[test]
fn only_an_attachment_that_requests_the_default_route_gets_it() {
    let story = story().macvlan("pods/net", &[]);
    for (gateways, count) in [(r#"["10.0.0.1","fd00::1"]"#, 2), ("[]", 0)] {
        let attachment = story.clone().networks(asking("default-route", gateways));
        let plan = attachment.plan();
        assert_eq!(plan.attachments[0].default_route, None);
        let kept = plan.attachments[1].default_route.as_ref().unwrap();
        assert_eq!(kept.len(), count);
    }
}

// clause: NPWG-1.3 §4.1.2.1.9 once: of all elements in the two annotations, only one may have `default-route`
#[test]
fn two_annotations_cannot_both_request_the_default_route() {
    let routed = r#"[{"name":"net","namespace":"pods","default-route":["10.0.0.1"]}]"#;
    let story = story()
        .macvlan("pods/net", &[])
        .default_network(routed)
        .networks(routed);
    let plan = story.plan();
    assert_eq!((plan.attachments.len(), plan.problems.len()), (1, 0));
    let both = PlanWarning::IgnoredAnnotation {
        key: NETWORKS_ANNOTATION,
        error: SelectionError::DefaultRouteOfBoth(1),
    };
    assert_eq!(plan.warnings, [both]);
    let (code, _, reason) = story.node("invalidAnnotation", json!("fail")).problem();
    let invalid = Reason::Annotation {
        key: NETWORKS_ANNOTATION,
        error: SelectionError::DefaultRouteOfBoth(1),
    };
    assert_eq!((code, reason), (101, invalid));
}

#[test]
fn two_interfaces_on_one_network_cannot_request_the_same_mac() {
    let story = story()
        .macvlan("pods/a", &["mac"])
        .macvlan("pods/b", &["mac"]);
    let asking = |first: &str, second: &str| {
        let mac = "02:00:00:00:00:09";
        story.clone().networks(json!([
            {"name": first, "mac": mac}, {"name": second, "mac": mac},
        ]))
    };
    let used = Reason::HardwareAddressUsed("net1".parse().unwrap());
    let place = "network pods/a (net2)".to_owned();
    assert_eq!(asking("a", "a").problem(), (101, place, used));
    // Interfaces on different networks may have the same address, as the members of a bond do.
    assert!(asking("a", "b").plan().problems.is_empty());
}

#[test]
fn an_unknown_key_in_the_annotation_causes_a_warning() {
    let story = story().macvlan("pods/net", &[]);
    let plan = story.networks(asking("ip", r#""10.0.0.5""#)).plan();
    let unknown = PlanWarning::UnknownKeys {
        network: "pods/net".parse().unwrap(),
        keys: vec!["ip".to_owned()],
    };
    assert_eq!(plan.problems, []);
    assert_eq!(unknown.event().reason, "UnknownKey");
    assert_eq!(plan.warnings, [unknown]);
}

/// Adds the definition `name`, which uses the devices of the resource `r`. The pod has two devices
/// of this resource.
fn with_resource(mut story: Story, name: &str, capabilities: &[&str]) -> Story {
    story = story.macvlan(name, capabilities);
    let definition = story.definitions.last_mut().unwrap();
    definition["metadata"]["annotations"] = json!({"k8s.v1.cni.cncf.io/resourceName": "r"});
    let ids = ["0000:01:10.0", "0000:01:10.2"].map(str::to_owned);
    let supply = Supply::Devices {
        ids: ids.to_vec(),
        origin: Origin::Manifest,
    };
    story.allocation.set("r", supply);
    story
}

// clause: DEVINFO-1.1.0 §5.1.1: plugins that declare the capability get the full path
// clause: DEVINFO-1.1.0 §4.2.1 unique
#[test]
fn plugins_get_their_device_in_keys_and_capabilities() {
    let story = with_resource(story(), "pods/vf", &["deviceID", "CNIDeviceInfoFile"]);
    let attachment = story.networks("vf").second();
    let device = attachment.device.unwrap();
    assert_eq!(
        (device.id.as_str(), device.resource.as_str()),
        ("0000:01:10.0", "r")
    );
    let injected: Vec<(&str, &str)> = attachment
        .inject
        .iter()
        .map(|(key, value)| (key.as_str(), value.get()))
        .collect();
    let id = "\"0000:01:10.0\"";
    assert_eq!(injected, [("deviceID", id), ("pciBusID", id)]);
    let path = "/var/run/k8s.cni.cncf.io/devinfo/cni/pods-vf-c1_net1";
    assert_eq!(attachment.device_info_file.unwrap().to_str(), Some(path));
    let args = &attachment.capability_args;
    assert_eq!(args.get("deviceID").unwrap().get(), id);
    let file = args.get("CNIDeviceInfoFile").unwrap().get();
    assert_eq!(file, format!("{path:?}"));
}

#[test]
fn a_plugin_without_a_device_can_get_a_device_info_file() {
    let story = story()
        .macvlan("pods/user", &["CNIDeviceInfoFile"])
        .networks("user");
    let attachment = story.second();
    assert!(attachment.device.is_none() && attachment.inject.is_empty());
    assert!(attachment.device_info_file.is_some());
    let story = story_without_devices().second();
    assert!(story.device_info_file.is_none() && story.capability_args.is_empty());
}

fn story_without_devices() -> Story {
    story().macvlan("pods/net", &[]).networks("net")
}

#[test]
fn default_and_secondary_networks_share_one_allocation() {
    let mut story = with_resource(story(), "pods/vf", &[]);
    story = story
        .default_network(r#"[{"name":"vf","namespace":"pods"}]"#)
        .networks("vf");
    let plan = story.plan();
    let devices: Vec<&str> = plan
        .attachments
        .iter()
        .map(|it| it.device.as_ref().unwrap().id.as_str())
        .collect();
    assert_eq!(devices, ["0000:01:10.0", "0000:01:10.2"]);
}

#[test]
fn too_few_devices_fail_with_code_104() {
    let story = with_resource(story(), "pods/vf", &[]).networks("vf,vf,vf");
    let (code, place, reason) = story.problem();
    assert_eq!((code, place.as_str()), (104, "network pods/vf (net3)"));
    let Reason::Device(AssignError::TooFew {
        resource, networks, ..
    }) = reason
    else {
        panic!("{reason:?}");
    };
    assert_eq!((resource.as_str(), networks), ("r", 3));
}

#[test]
fn a_device_that_the_pod_does_not_own_fails_with_code_104() {
    let vf = |id: &str| {
        let networks = json!([{"name": "vf", "deviceID": id}]);
        with_resource(story(), "pods/vf", &[]).networks(networks)
    };
    assert_eq!(
        vf("0000:01:10.2").second().device.unwrap().id,
        "0000:01:10.2"
    );
    let (code, _, reason) = vf("0000:09:00.0").problem();
    assert_eq!(code, 104);
    let Reason::Device(AssignError::NotOwned { id, .. }) = reason else {
        panic!("{reason:?}");
    };
    assert_eq!(id, "0000:09:00.0");
}

#[test]
fn unknown_devices_affect_only_networks_that_need_devices() {
    let cause = || Box::new(UnknownCause::NoUid);
    let with_unknown = || {
        let mut story = with_resource(story(), "pods/vf", &[]).macvlan("pods/net", &[]);
        story.allocation.set("r", Supply::Unknown(cause()));
        story
    };
    assert_eq!(with_unknown().networks("net").plan().problems, []);
    let (code, place, reason) = with_unknown().networks("net,vf").problem();
    assert_eq!((code, place.as_str()), (104, "network pods/vf (net2)"));
    let unknown = AssignError::Unknown {
        resource: "r".to_owned(),
        cause: cause(),
    };
    assert_eq!(reason, Reason::Device(unknown));
}

#[test]
fn all_unknown_keys_of_a_network_cause_one_warning() {
    let with = |count: usize| {
        let keys = (0..count).map(|number| format!(r#","k{number}":0"#));
        let keys: String = keys.collect();
        let plan = story()
            .macvlan("pods/a", &[])
            .networks(format!(r#"[{{"name":"a"{keys}}}]"#))
            .plan();
        assert!(plan.problems.is_empty(), "{:?}", plan.problems);
        plan.warnings
    };
    assert!(with(0).is_empty());
    for count in [1, 2, 5, 20_000] {
        let unknown = PlanWarning::UnknownKeys {
            network: "pods/a".parse().unwrap(),
            keys: (0..count).map(|number| format!("k{number}")).collect(),
        };
        assert_eq!(with(count), [unknown]);
    }
    let long = format!(r#"[{{"name":"a","{}":0}}]"#, "k".repeat(200_000));
    let plan = story().macvlan("pods/a", &[]).networks(long).plan();
    let message = plan.warnings[0].event().message;
    assert!(message.len() < 300, "{message}");
}

mod difference;
mod limits;
