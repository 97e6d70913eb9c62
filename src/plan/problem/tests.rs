use super::*;
use crate::allocation::AssignError;
use crate::cluster::NetworkError;
use crate::cni::{JsonError, NetworkConfig, NetworkConfigError, NetworkName};
use crate::npwg::SelectionError;
use crate::plan::{PlanRemark, PlanWarning};

fn plugin() -> crate::cni::PluginType {
    "macvlan".parse().unwrap()
}

fn json_error() -> JsonError {
    JsonError::Empty
}

#[test]
fn each_reason_has_a_message_of_one_line() {
    let net1 = || "net1".parse().unwrap();
    for (reason, line) in [
        (
            Reason::Annotation {
                key: "k",
                error: SelectionError::NotOne(2),
            },
            "annotation k: the annotation selects 2 networks; select exactly one",
        ),
        (
            Reason::InterfaceUsed {
                ifname: net1(),
                network: "pods/a".to_owned(),
            },
            "interface name net1 is already used by network pods/a; \
             choose another in the pod's annotation",
        ),
        (
            Reason::InterfaceExists(net1()),
            "interface name net1 already exists in the pod's network namespace; \
             choose another in the pod's annotation",
        ),
        (
            Reason::TwoAddressSources("vm.blue".to_owned()),
            "ips and ipam-claim-reference vm.blue exclude each other; keep one",
        ),
        (
            Reason::HardwareAddressUsed(net1()),
            "the MAC or GUID is already used by interface net1 of the pod on this layer-2 network; \
             request another",
        ),
        (
            Reason::Configuration(ConfigurationProblem::NoName("/n.conf".to_owned())),
            "/n.conf has no name; add the key \"name\"",
        ),
        (
            Reason::Undeclared {
                capability: "infinibandGUID".to_owned(),
                plugins: vec![plugin(), "tuning".parse().unwrap()],
            },
            "the pod requests infiniband-guid, but no plugin of the chain (macvlan, tuning) \
             declares the capability infinibandGUID; add \"capabilities\": \
             {\"infinibandGUID\": true} to the definition or drop the request",
        ),
        (
            Reason::NoTime,
            "the plan is not ready by the deadline; select fewer networks, make their \
             definitions shorter, or raise deadlines.add",
        ),
        (
            Reason::Device(AssignError::Twice("d".to_owned())),
            "deviceID \"d\" is named for two networks of the pod; name one device per network",
        ),
        (
            Reason::DeviceInfoDir("/d".into()),
            "devInfoDir /d is not UTF-8; choose another",
        ),
        (
            Reason::Restricted(Restriction::Network("pods".to_owned())),
            "the policy of namespace pods does not list the network under \"networks\"; add the \
             network there or select another",
        ),
    ] {
        assert_eq!(reason.to_string(), line);
    }
}

#[test]
fn each_configuration_problem_has_a_message_of_one_line() {
    let origin = || "/n.conf".to_owned();
    let shared = |line: &str| SharedError::new(std::io::Error::other(line.to_owned()));
    let report = || shared("confDir /c has no configuration");
    let not_found = |named_in| ConfigurationProblem::NotFound {
        report: report(),
        named_in,
    };
    let invalid = NetworkConfig::parse(b"").unwrap_err();
    let bad_name = "a b".parse::<NetworkName>().unwrap_err();
    let line_of_invalid = format!("/n.conf: {invalid}; correct the configuration there");
    let line_of_name =
        format!("/n.conf: key \"name\": {bad_name}; correct the configuration there");
    for (problem, line) in [
        (
            not_found(NamedIn::ClusterNetwork),
            "confDir /c has no configuration; correct clusterNetwork of the node configuration",
        ),
        (
            not_found(NamedIn::DefaultNetworks),
            "confDir /c has no configuration; correct defaultNetworks of the node configuration",
        ),
        (ConfigurationProblem::Unusable(shared("x; do y")), "x; do y"),
        (
            not_found(NamedIn::Annotation),
            "confDir /c has no configuration; create it or correct the annotation",
        ),
        (
            ConfigurationProblem::TooLarge {
                origin: origin(),
                bytes: 9_000_000,
            },
            "/n.conf: with this network, the configurations of the pod's networks have 9000000 \
             bytes; 8388608 are allowed; shorten the configurations or select fewer networks",
        ),
        (
            ConfigurationProblem::TooManyCapabilities {
                origin: origin(),
                plugin: plugin(),
                count: 65,
            },
            "/n.conf: plugin macvlan declares 65 capabilities; 64 are allowed; remove the \
             capabilities that no pod requests",
        ),
        (
            ConfigurationProblem::Invalid {
                origin: origin(),
                error: invalid,
            },
            &line_of_invalid,
        ),
        (
            ConfigurationProblem::Invalid {
                origin: origin(),
                error: NetworkConfigError::Name(bad_name),
            },
            &line_of_name,
        ),
        (
            ConfigurationProblem::ClaimTooLarge {
                claim: "pods/c".parse().unwrap(),
                count: 257,
            },
            "IPAMClaim pods/c: status.ips has 257 addresses; 256 are allowed; choose a claim with \
             fewer addresses",
        ),
        (
            ConfigurationProblem::ClaimNotFound("IPAMClaim pods/c does not exist".to_owned()),
            "IPAMClaim pods/c does not exist; create it or correct the annotation",
        ),
        (
            ConfigurationProblem::ClaimNotLookedUp("c".to_owned()),
            "IPAMClaim c was not looked up",
        ),
        (
            ConfigurationProblem::Args {
                plugin: plugin(),
                error: json_error(),
            },
            "plugin macvlan: args: empty input where a JSON object was expected; \
             make args.cni an object, so that pods can add keys",
        ),
    ] {
        assert_eq!(Reason::from(problem).to_string(), line);
    }
}

#[test]
fn a_report_that_contains_a_remedy_gets_no_second_remedy() {
    let object = || "pods/n".parse().unwrap();
    let conf_dir = || PathBuf::from("/c");
    for (error, line) in [
        (
            NetworkError::Lookup("no pods/n".to_owned()),
            "no pods/n; correct clusterNetwork of the node configuration",
        ),
        (
            NetworkError::Unknown(conf_dir()),
            "this name is not an absolute path, and matches neither a configuration in confDir /c \
             nor a usable definition; correct clusterNetwork of the node configuration",
        ),
        (
            NetworkError::NoConfig(object(), conf_dir()),
            "NetworkAttachmentDefinition pods/n has no spec.config, and confDir /c has no \
             configuration named n; write one of the two",
        ),
    ] {
        let reason = Reason::not_found(&error, NamedIn::ClusterNetwork);
        assert_eq!(reason.to_string(), line);
    }
}

#[test]
fn each_restriction_has_a_message_of_one_line() {
    let key = || "ipam.dataDir".to_owned();
    let namespace = || "pods".to_owned();
    let of_pods = || RuleName::Namespace(namespace());
    for (restriction, line) in [
        (
            Restriction::Isolated {
                namespace: namespace(),
                definition: "other".to_owned(),
                global: vec!["default".to_owned(), "infra".to_owned()],
            },
            "namespaceIsolation does not let pods of namespace pods use definitions of namespace \
             other; define the network in namespace pods, or in one that globalNamespaces lists: \
             default, infra",
        ),
        (
            Restriction::PodArgs {
                key: "args.cni.x".to_owned(),
                namespace: namespace(),
            },
            "the pod's annotation sets args.cni.x, which the policy of namespace pods denies; \
             remove the key from the annotation",
        ),
        (
            Restriction::ClusterName("cluster".parse().unwrap()),
            "the network has the same name as the cluster network, cluster, so both would take \
             their addresses from the same pool; choose another name",
        ),
        (
            Restriction::ListKey {
                key: "disableCheck".to_owned(),
                rule: RuleName::Node,
            },
            "the network's configuration has the key disableCheck, which policy.node denies; \
             remove the key",
        ),
        (
            Restriction::PluginKey {
                plugin: plugin(),
                key: key(),
                rule: of_pods(),
            },
            "plugin macvlan has the key ipam.dataDir, which the policy of namespace pods denies; \
             remove the key",
        ),
        (
            Restriction::PluginType {
                name: "host-local".to_owned(),
                rule: RuleName::Node,
            },
            "policy.node does not list plugin host-local under \"types\"; add it there",
        ),
        (
            Restriction::UnreadableType {
                plugin: plugin(),
                error: json_error(),
            },
            "plugin macvlan: empty input where a JSON object was expected",
        ),
        (
            Restriction::TooDeep {
                plugin: plugin(),
                rule: of_pods(),
            },
            "the policy of namespace pods cannot check plugin macvlan, because its configuration \
             nests plugins more than 8 levels deep, nests arrays more than 4 levels deep, or \
             contains too many plugins; flatten it",
        ),
    ] {
        assert_eq!(Reason::from(restriction).to_string(), line);
    }
}

#[test]
fn each_warning_has_a_message_of_one_line() {
    let unknown = |count: usize| PlanWarning::UnknownKeys {
        network: "pods/a".parse().unwrap(),
        keys: (0..count).map(|number| format!("k{number}")).collect(),
    };
    let of_network = |words: &str| {
        format!(
            "annotation k8s.v1.cni.cncf.io/networks: network pods/a: {words} unknown and ignored"
        )
    };
    for (warning, message) in [
        (
            PlanWarning::IgnoredAnnotation {
                key: "k",
                error: SelectionError::NotOne(2),
            },
            "annotation k is ignored: the annotation selects 2 networks; select exactly one"
                .to_owned(),
        ),
        (unknown(1), of_network(r#"key "k0" is"#)),
        (unknown(2), of_network(r#"keys "k0", "k1" are"#)),
        (
            unknown(8),
            of_network(r#"keys "k0", "k1", "k2", "k3", "k4" and 3 more are"#),
        ),
    ] {
        assert_eq!(warning.event().message, message);
    }
}

#[test]
fn each_remark_has_a_message_of_one_line() {
    let network = || "kube-system/net".parse().unwrap();
    for (remark, line) in [
        (
            PlanRemark::Replaced {
                network: network(),
                cluster: "cluster".to_owned(),
            },
            "annotation v1.multus-cni.io/default-network: kube-system/net replaces the configured \
             cluster network (cluster)",
        ),
        (
            PlanRemark::MultusNamespace(network()),
            "annotation v1.multus-cni.io/default-network: net has no namespace, so it is looked up \
             in multusNamespace kube-system, not in the pod's namespace",
        ),
        (
            PlanRemark::InterfaceIgnored {
                interface: "net9".parse().unwrap(),
                ifname: "eth0".parse().unwrap(),
            },
            "annotation v1.multus-cni.io/default-network: interface net9 is ignored, since the \
             runtime chose eth0 for the cluster network",
        ),
    ] {
        assert_eq!(remark.to_string(), line);
    }
}
