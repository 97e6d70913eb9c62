//! Valid and invalid selections.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn parse(text: &str) -> Result<Vec<Selection>, SelectionError> {
    Selection::parse_list(text, "pods", Dialect::V1_3)
}

fn list(text: &str) -> Vec<Selection> {
    parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Parses the selection of a network with one additional key.
fn with(key: &str, value: &str) -> Result<Selection, SelectionError> {
    parse(&format!(r#"[{{"name":"net-b","{key}":{value}}}]"#)).map(|mut list| list.remove(0))
}

// clause: NPWG-1.3 §4.1.1: commas separate the names, and a slash follows a namespace
// clause: NPWG-1.3 §4.1 formats: the list of names
// clause: NPWG-1.3 §4.2 operation: the same network may be selected several times
// clause: NPWG-1.0 §4.1.1: commas separate the names, and a slash follows a namespace
#[test]
fn names_are_read_with_namespace_and_interface() {
    let networks = |text: &str| -> Vec<String> {
        list(text)
            .iter()
            .map(|selection| match &selection.interface {
                Some(interface) => format!("{}@{interface}", selection.network),
                None => selection.network.to_string(),
            })
            .collect()
    };
    assert_eq!(
        networks("net-a,net-b,other-ns/net-c"),
        ["pods/net-a", "pods/net-b", "other-ns/net-c"]
    );
    assert_eq!(
        networks(" net-a@eth7 ,\n ns/net-a@eth8 , ns / net-a @ eth9, net-a@ ,/net-a"),
        [
            "pods/net-a@eth7",
            "ns/net-a@eth8",
            "ns/net-a@eth9",
            "pods/net-a",
            "pods/net-a",
        ]
    );
    assert_eq!(networks("net-a,net-a"), ["pods/net-a", "pods/net-a"]);
    for nothing in ["", "  \n", "[]", " [ ] "] {
        assert!(list(nothing).is_empty(), "{nothing:?}");
    }
}

// clause: NPWG-1.3 §4.1.2: the JSON list
// clause: NPWG-1.3 §4.1 formats: the JSON list
// clause: NPWG-1.3 §4.1.2.1.2: a network may be in another namespace
#[test]
fn every_key_of_a_list_is_read() {
    let selections = list(
        r#"[
        {"name":"net-a"},
        {"name":"net-b","namespace":"","ips":["10.2.2.42/24","2001:db8::5"],"mac":"02:23:45:67:89:AB",
         "interface":"eth7","cni-args":{"spoofchk":"on","n":1.10},
         "portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"TCP"}],
         "bandwidth":{"ingressRate":2048,"ingressBurst":300},
         "infiniband-guid":"24:8a:07:03:00:8d:ae:2f","default-route":["10.2.2.1","2001:db8::1"],
         "deviceID":"0000:01:10.0","com.example.note":7},
        {"name":"net-c","namespace":"other-ns","ipam-claim-reference":"vm123.tenantblue","ip":"10.0.0.1"}
        ]"#,
    );
    assert_eq!(selections[0], Selection::of("pods/net-a".parse().unwrap()));

    let full = &selections[1];
    assert_eq!(full.network.to_string(), "pods/net-b");
    assert_eq!(full.interface.as_ref().unwrap().as_str(), "eth7");
    assert_eq!(
        full.cni_args.as_ref().unwrap().to_string(),
        r#"{"spoofchk":"on","n":1.10}"#
    );
    let gateways: Vec<String> = full
        .default_route
        .iter()
        .flatten()
        .map(ToString::to_string)
        .collect();
    assert_eq!(gateways, ["10.2.2.1", "2001:db8::1"]);
    assert_eq!(full.device_id.as_deref(), Some("0000:01:10.0"));
    assert!(full.unknown_keys.is_empty());

    let third = &selections[2];
    assert_eq!(third.network.to_string(), "other-ns/net-c");
    assert_eq!(third.ipam_claim.as_deref(), Some("vm123.tenantblue"));
    assert_eq!(third.unknown_keys, ["ip"]);
}

#[test]
fn an_unknown_key_is_reported_with_the_index_of_its_port_mapping() {
    let port = r#"{"hostPort":53,"containerPort":53"#;
    let text = format!(r#"[{{"name":"a","portMappings":[{port}}},{port},"proto":"udp"}}]}}]"#);
    assert_eq!(list(&text)[0].unknown_keys, ["portMappings[1].proto"]);
}

// clause: NPWG-1.3 §4.1.2.1.3.2 runtimeConfig
// clause: NPWG-1.3 §4.1.2.1.4.2 runtimeConfig
// clause: NPWG-1.3 §4.1.2.1.7.2 runtimeConfig
// clause: NPWG-1.3 §4.1.2.1.8.2 runtimeConfig
// clause: NPWG-1.3 §4.1.2.1.10.2 runtimeConfig: the GUID becomes infinibandGUID
#[test]
fn requested_values_become_capability_arguments() {
    let selection = &list(
        r#"[{"name":"net-b","infiniband-guid":"24:8A:07:03:00:8d:ae:2f","ips":["10.2.2.42/24","2001:db8:0::5/64"],
        "mac":"02:23:45:67:89:01","bandwidth":{"egressRate":8000,"egressBurst":200},
        "portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"Udp"}]}]"#,
    )[0];
    assert_eq!(
        serde_json::to_string(&selection.capability_args()).unwrap(),
        r#"{"ips":["10.2.2.42/24","2001:db8::5/64"],"mac":"02:23:45:67:89:01","portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"udp"}],"bandwidth":{"egressRate":8000,"egressBurst":200},"infinibandGUID":"24:8a:07:03:00:8d:ae:2f"}"#
    );
    assert!(list("net-a")[0].capability_args().is_empty());
}

#[test]
fn a_null_value_is_treated_as_absent() {
    for key in [
        "namespace",
        "ips",
        "mac",
        "interface",
        "cni-args",
        "portMappings",
        "bandwidth",
        "default-route",
        "infiniband-guid",
        "ipam-claim-reference",
        "deviceID",
    ] {
        assert_eq!(
            with(key, "null"),
            Ok(Selection::of("pods/net-b".parse().unwrap())),
            "{key}"
        );
    }
}

#[test]
fn an_empty_value_is_treated_as_absent() {
    for (key, value) in [
        ("namespace", r#""""#),
        ("ips", "[]"),
        ("mac", r#""""#),
        ("interface", r#""""#),
        ("interfaceRequest", r#""""#),
        ("portMappings", "[]"),
        ("bandwidth", "{}"),
        ("infiniband-guid", r#""""#),
        ("ipam-claim-reference", r#""""#),
        ("deviceID", r#""""#),
    ] {
        assert_eq!(
            with(key, value),
            Ok(Selection::of("pods/net-b".parse().unwrap())),
            "{key}"
        );
    }
    let renamed = &list(r#"[{"name":"net-b","interface":"","interfaceRequest":"old0"}]"#)[0];
    assert_eq!(renamed.interface.as_ref().unwrap().as_str(), "old0");
}

#[test]
fn an_address_with_dashes_or_dots_is_passed_on_with_colons() {
    for (mac, guid) in [
        ("02-23-45-67-89-AB", "24-8A-07-03-00-8d-ae-2f"),
        ("0223.4567.89ab", "248a.0703.008d.ae2f"),
    ] {
        let text = format!(r#"[{{"name":"net-b","mac":"{mac}","infiniband-guid":"{guid}"}}]"#);
        let args = list(&text)[0].capability_args();
        assert_eq!(
            serde_json::to_string(&args).unwrap(),
            r#"{"mac":"02:23:45:67:89:ab","infinibandGUID":"24:8a:07:03:00:8d:ae:2f"}"#
        );
    }
}

// clause: NPWG-1.3 §4.1.2.1.1: the key is required, and the value is a string
// clause: NPWG-1.3 §4.1.2.1.3 valid: each element is an IP address
// clause: NPWG-1.3 §4.1.2.1.4 valid: a MAC has 6 bytes
// clause: NPWG-1.3 §4.1.2.1.5 valid: the value is a kernel interface name
// clause: NPWG-1.3 §4.1.2.1.6 type: the value is a dict
// clause: NPWG-1.3 §4.1.2.1.7 valid: each element has valid ports
// clause: NPWG-1.3 §4.1.2.1.8 valid: no rate and no burst is zero
// clause: NPWG-1.3 §4.1.2.1.9 type: the value is a string array
// clause: NPWG-1.3 §4.1.2.1.10 valid: a GUID has 8 bytes
// clause: NPWG-1.3 §4.1.2.1.11: the value is a string
#[test]
fn every_invalid_value_is_reported_with_its_network_and_key() {
    let table = [
        ("name", r#""""#, "\"name\" is missing"),
        ("name", "null", "\"name\" is missing"),
        ("name", "7", "\"name\": 7"),
        ("name", r#""Net""#, "\"Net\" cannot be the name"),
        ("name", r#""other/net""#, "\"other/net\" cannot be the name"),
        ("namespace", "7", "\"namespace\": 7"),
        ("namespace", r#""a.b""#, "\"a.b\" cannot be the namespace"),
        ("ips", r#""10.0.0.1""#, "\"ips\": \"10.0.0.1\""),
        ("ips", "[7]", "\"ips\": [7]"),
        ("ips", "[null]", "\"ips\": [null]"),
        ("ips", r#"[""]"#, "\"ips\": \"\" is not an IP address"),
        (
            "ips",
            r#"["10.0.0.1","10.0.0.256"]"#,
            "\"10.0.0.256\" is not an IP address",
        ),
        (
            "ips",
            r#"["10.0.0.1/33"]"#,
            "\"10.0.0.1/33\" is not an IP address",
        ),
        ("ips", r#"["2001:db8::1/129"]"#, "is not an IP address"),
        ("mac", "7", "\"mac\": 7"),
        ("mac", r#""02:23:45:67:89""#, "\"mac\": "),
        ("mac", r#""24:8a:07:03:00:8d:ae:2f""#, "infiniband-guid"),
        (
            "mac",
            r#""80:00:11:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:ff:00:11:22""#,
            "IPoIB",
        ),
        ("mac", r#""ff:ff:ff:ff:ff:ff""#, "broadcast"),
        (
            "interface",
            r#""..""#,
            "\"interface\": interface name \"..\"",
        ),
        ("interface", r#""a/b""#, "interface name \"a/b\""),
        ("interface", r#""a b""#, "interface name \"a b\""),
        ("interface", r#""a:b""#, "interface name \"a:b\""),
        ("interface", r#""1234567890123456""#, "use 1 to 15 bytes"),
        ("interface", r#""a\u0000b""#, "interface name \"a\\0b\""),
        ("interface", "1", "\"interface\": 1"),
        ("interfaceRequest", r#""a/b""#, "interface name \"a/b\""),
        ("cni-args", "[]", "\"cni-args\": []"),
        (
            "cni-args",
            r#""spoofchk=on""#,
            "\"cni-args\": \"spoofchk=on\"",
        ),
        ("portMappings", "{}", "\"portMappings\": {}"),
        ("portMappings", "[null]", "\"portMappings\": [null]"),
        (
            "portMappings",
            "[{}]",
            "\"portMappings[0].hostPort\" is missing",
        ),
        (
            "portMappings",
            r#"[{"hostPort":1}]"#,
            "\"portMappings[0].containerPort\" is missing",
        ),
        (
            "portMappings",
            r#"[{"hostPort":0,"containerPort":1}]"#,
            "\"portMappings[0].hostPort\": 0",
        ),
        (
            "portMappings",
            r#"[{"hostPort":1,"containerPort":65536}]"#,
            "\"portMappings[0].containerPort\": 65536",
        ),
        (
            "portMappings",
            r#"[{"hostPort":"1","containerPort":1}]"#,
            "\"portMappings[0].hostPort\": \"1\"",
        ),
        (
            "portMappings",
            r#"[{"hostPort":1,"containerPort":1},{"hostPort":1,"containerPort":1,"protocol":"icmp"}]"#,
            "\"portMappings[1].protocol\": \"icmp\"",
        ),
        ("bandwidth", "[]", "\"bandwidth\": []"),
        ("bandwidth", r#"{"ingressRate":0}"#, "\"ingressRate\": 0"),
        ("bandwidth", r#"{"egressRate":0}"#, "\"egressRate\": 0"),
        (
            "bandwidth",
            r#"{"ingressRate":1,"ingressBurst":0}"#,
            "\"ingressBurst\": 0",
        ),
        (
            "bandwidth",
            r#"{"egressRate":1,"egressBurst":0}"#,
            "\"egressBurst\": 0",
        ),
        (
            "bandwidth",
            r#"{"ingressBurst":1}"#,
            "ingressBurst needs ingressRate",
        ),
        (
            "bandwidth",
            r#"{"ingressRate":1,"egressBurst":1}"#,
            "egressBurst needs egressRate",
        ),
        ("bandwidth", r#"{"rate":1}"#, "unknown key \"rate\""),
        (
            "bandwidth",
            r#"{"ingressRate":"1Mbit"}"#,
            "\"ingressRate\": \"1Mbit\"",
        ),
        (
            "default-route",
            r#""10.0.0.1""#,
            "\"default-route\": \"10.0.0.1\"",
        ),
        ("default-route", "[7]", "\"default-route\": [7]"),
        (
            "default-route",
            r#"["10.0.0.1/24"]"#,
            "\"10.0.0.1/24\" is not the IP address",
        ),
        ("default-route", r#"[""]"#, "\"\" is not the IP address"),
        (
            "default-route",
            r#"["0.0.0.0"]"#,
            "\"0.0.0.0\" is not the IP address",
        ),
        ("default-route", r#"["::"]"#, "\"::\" is not the IP address"),
        (
            "default-route",
            r#"["127.0.0.1"]"#,
            "\"127.0.0.1\" is not the IP",
        ),
        (
            "default-route",
            r#"["ff02::1"]"#,
            "\"ff02::1\" is not the IP",
        ),
        (
            "default-route",
            r#"["255.255.255.255"]"#,
            "is not the IP address of",
        ),
        ("infiniband-guid", "7", "\"infiniband-guid\": 7"),
        (
            "infiniband-guid",
            r#""02:23:45:67:89:01""#,
            "\"infiniband-guid\": ",
        ),
        (
            "infiniband-guid",
            r#""80:00:11:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:ff:00:11:22""#,
            "\"infiniband-guid\": ",
        ),
        (
            "ipam-claim-reference",
            r#""a/b""#,
            "\"a/b\" cannot be the name of an object",
        ),
        ("ipam-claim-reference", "{}", "\"ipam-claim-reference\": {}"),
        (
            "cni-args",
            r#"{"a":[{"b":1,"B":2}]}"#,
            "\"cni-args.a[0].B\" occurs more than once",
        ),
        ("Name", r#""net-a""#, "\"Name\" occurs more than once"),
    ];
    for (key, value, expected) in table {
        let name = if key == "name" {
            ""
        } else {
            r#""name":"net-b","#
        };
        let text = format!(r#"[{{"name":"first"}},{{{name}"{key}":{value}}}]"#);
        let error = parse(&text).expect_err(&text).to_string();
        assert!(error.starts_with("network 2"), "{error}");
        assert!(
            key.eq_ignore_ascii_case("name") || error.starts_with("network 2 (net-b): "),
            "{error}"
        );
        assert!(error.contains(expected), "{text}: {error}");
        assert!(error.len() < 400 && !error.contains('\n'), "{error}");
    }
}

// clause: NPWG-1.3 §4.1.2.1.9 once
// clause: NPWG-1.3 §4.1.2.1.9 empty
#[test]
fn only_one_network_may_have_a_default_route() {
    assert_eq!(
        with("default-route", "[]").unwrap().default_route,
        Some(Vec::new())
    );
    assert_eq!(
        parse(
            r#"[{"name":"a"},{"name":"b","default-route":[]},{"name":"c","default-route":["10.0.0.1"]}]"#
        ),
        Err(SelectionError::DefaultRouteTwice {
            first: 2,
            second: 3
        })
    );
}

#[test]
fn each_invalid_list_has_its_own_message() {
    let table = [
        (
            "[null]",
            "network 1: null is not an object; write {\"name\": \"net-a\"}",
        ),
        (r#"["net-a"]"#, "network 1: \"net-a\" is not an object"),
        (r#"[[]]"#, "network 1: "),
        ("[{}]", "network 1: key \"name\" is missing"),
        (r#"{"name":"net-a"}"#, "the annotation is not a JSON list"),
        (r#""net-a""#, "the annotation is not a JSON list"),
        (r#"[{"name":"net-a"}"#, "the annotation is not a JSON list"),
        (
            r#"[{"name":"net-a"}] x"#,
            "the annotation is not a JSON list",
        ),
        (r#"net-a,{"name":"b"}"#, "the annotation is not a JSON list"),
        (",", "network 1: key \"name\" is missing"),
        ("a,,b", "network 2: key \"name\" is missing"),
        ("a,", "network 2: key \"name\" is missing"),
        ("a,B", "network 2 (B): \"B\" cannot be the name"),
        ("a@b@c/", "key \"interface\": "),
        ("@eth1", "network 1 (@eth1): \"\" cannot be the name"),
        ("a/b/c", "\"b/c\" cannot be the name"),
        ("a b", "\"a b\" cannot be the name"),
        ("a\u{1b}[31m\nb", "not a JSON list"),
        ("a\u{1b}\nb", "network 1 (a\\u{1b}\\nb): "),
    ];
    for (text, expected) in table {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn each_limit_has_a_message_of_one_line() {
    let names = |count: usize| vec!["net-a"; count].join(",");
    let objects = |count: usize| format!("[{}]", vec![r#"{"name":"a"}"#; count].join(","));
    assert_eq!(list(&names(MAX_NETWORKS)).len(), MAX_NETWORKS);
    assert_eq!(list(&objects(MAX_NETWORKS)).len(), MAX_NETWORKS);
    for text in [names(1_000), objects(1_000)] {
        let error = parse(&text).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the annotation selects 1000 networks; 64 are allowed"
        );
    }
    let large = format!("[{}]", " ".repeat(MAX_BYTES));
    assert_eq!(parse(&large), Err(SelectionError::TooLarge(large.len())));
    let deep = format!(r#"[{{"name":"a","cni-args":{}"#, "[".repeat(100_000));
    assert!(
        parse(&deep)
            .unwrap_err()
            .to_string()
            .contains("deeper than 128 levels")
    );
}

// clause: NPWG-1.0 §4.1.2.1.4 valid: an IPoIB address has 20 bytes
#[test]
fn npwg_1_0_accepts_an_ipoib_address() {
    let text =
        r#"[{"name":"a","mac":"80:00:11:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:ff:00:11:22"}]"#;
    let list = Selection::parse_list(text, "pods", Dialect::V1_0).unwrap();
    assert!(matches!(list[0].mac, Some(RequestedMac::Ipoib(_))));
    assert!(parse(text).is_err());
}

#[test]
fn the_default_network_annotation_selects_exactly_one_network() {
    let default = |text| Selection::parse_default_network(text, "kube-system", Dialect::V1_3);
    assert_eq!(
        default("calico").unwrap().network.to_string(),
        "kube-system/calico"
    );
    assert_eq!(
        default(r#"[{"name":"a","namespace":"b","ips":["10.0.0.1"]}]"#)
            .unwrap()
            .network
            .to_string(),
        "b/a"
    );
    assert_eq!(default(""), Err(SelectionError::NotOne(0)));
    assert_eq!(default("[]"), Err(SelectionError::NotOne(0)));
    assert_eq!(default("a,b"), Err(SelectionError::NotOne(2)));
    assert!(matches!(
        default("[null]"),
        Err(SelectionError::Element { .. })
    ));
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z0-9.:/]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("(hostPort|ingressRate|[a-z]{1,4})", inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

const SOME_KEYS: [&str; 12] = [
    "name",
    "namespace",
    "ips",
    "mac",
    "interface",
    "cni-args",
    "portMappings",
    "bandwidth",
    "default-route",
    "infiniband-guid",
    "ipam-claim-reference",
    "deviceID",
];

proptest! {
    #[test]
    fn no_annotation_causes_a_panic(text in "[a-z/@,{}\\[\\]\":0-9. -]{0,64}|\\PC{0,32}") {
        let _ = parse(&text);
        let _ = Selection::parse_default_network(&text, "", Dialect::V1_0);
    }

    #[test]
    fn no_list_of_objects_causes_a_panic(
        members in prop::collection::vec((prop::sample::select(SOME_KEYS.to_vec()), value()), 0..6),
    ) {
        let object: serde_json::Map<_, _> =
            members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        if let Ok(list) = parse(&json!([object]).to_string()) {
            let args = serde_json::to_string(&list[0].capability_args()).unwrap();
            prop_assert!(!args.contains("null"), "{}", args);
        }
    }
}
