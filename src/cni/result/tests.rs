//! Results in each version.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn parse(text: &str, version: Version) -> CniResult {
    CniResult::parse(text.as_bytes(), version).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A result with two address families, two interfaces, and zeros in optional fields.
fn rich() -> CniResult {
    CniResult {
        interfaces: vec![
            Interface {
                name: "net1".to_owned(),
                mac: Some("02:00:00:00:00:01".to_owned()),
                mtu: Some(9000),
                sandbox: Some("/run/netns/a".to_owned()),
                socket_path: Some("/run/vhost.sock".to_owned()),
                pci_id: Some("0000:01:10.0".to_owned()),
            },
            Interface {
                name: "veth0".to_owned(),
                ..Interface::default()
            },
        ],
        ips: vec![
            IpConfig {
                address: "10.1.0.5/16".parse().unwrap(),
                gateway: Some("10.1.0.1".parse().unwrap()),
                interface: Some(0),
            },
            IpConfig {
                address: "2001:db8::5/64".parse().unwrap(),
                gateway: None,
                interface: Some(1),
            },
            IpConfig {
                address: "10.2.0.5/16".parse().unwrap(),
                gateway: None,
                interface: None,
            },
        ],
        routes: vec![
            Route {
                dst: "0.0.0.0/0".parse().unwrap(),
                gw: Some("10.1.0.1".parse().unwrap()),
                mtu: Some(1400),
                advmss: Some(0),
                priority: Some(0),
                table: Some(0),
                scope: Some(0),
            },
            Route {
                dst: "2001:db8:1::/48".parse().unwrap(),
                gw: None,
                mtu: None,
                advmss: None,
                priority: None,
                table: None,
                scope: None,
            },
        ],
        dns: Some(Dns {
            nameservers: vec!["10.1.0.1".to_owned()],
            domain: Some("example.com".to_owned()),
            search: vec!["a".to_owned(), "b".to_owned()],
            options: vec!["ndots:5".to_owned()],
        }),
    }
}

/// Removes what a version cannot express.
fn limited(mut result: CniResult, version: Version) -> CniResult {
    if version < Version::V1_1_0 {
        for interface in &mut result.interfaces {
            (interface.mtu, interface.socket_path, interface.pci_id) = (None, None, None);
        }
        for route in &mut result.routes {
            (route.mtu, route.advmss, route.priority) = (None, None, None);
            (route.table, route.scope) = (None, None);
        }
    }
    if version < Version::V0_3_0 {
        result.interfaces.clear();
        let first = |four| {
            result
                .ips
                .iter()
                .find(|ip| ip.address.addr().is_ipv4() == four)
        };
        result.ips = [first(true), first(false)]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        let has = |four| {
            result
                .ips
                .iter()
                .any(|ip| ip.address.addr().is_ipv4() == four)
        };
        let routes_of = |four| {
            let of_family = result
                .routes
                .iter()
                .filter(move |route| route.dst.addr().is_ipv4() == four);
            of_family.cloned().collect::<Vec<_>>()
        };
        let mut routes = Vec::new();
        for four in [true, false] {
            if has(four) {
                routes.extend(routes_of(four));
            }
        }
        result.routes = routes;
        for ip in &mut result.ips {
            ip.interface = None;
        }
    }
    result
}

// clause: CNI-1.1.0 §5 ADD: a result has the specified keys
#[test]
fn a_result_of_the_newest_version_has_every_key() {
    let expected = json!({
        "cniVersion": "1.1.0",
        "interfaces": [
            {"name": "net1", "mac": "02:00:00:00:00:01", "mtu": 9000, "sandbox": "/run/netns/a",
             "socketPath": "/run/vhost.sock", "pciID": "0000:01:10.0"},
            {"name": "veth0"},
        ],
        "ips": [
            {"interface": 0, "address": "10.1.0.5/16", "gateway": "10.1.0.1"},
            {"interface": 1, "address": "2001:db8::5/64"},
            {"address": "10.2.0.5/16"},
        ],
        "routes": [
            {"dst": "0.0.0.0/0", "gw": "10.1.0.1", "mtu": 1400, "advmss": 0, "priority": 0, "table": 0, "scope": 0},
            {"dst": "2001:db8:1::/48"},
        ],
        "dns": {"nameservers": ["10.1.0.1"], "domain": "example.com", "search": ["a", "b"], "options": ["ndots:5"]},
    });
    let text = rich().to_json(Version::V1_1_0).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
}

#[test]
fn a_result_has_no_keys_of_later_versions() {
    let value =
        |version| -> Value { serde_json::from_str(&rich().to_json(version).unwrap()).unwrap() };
    for version in [
        Version::V0_3_0,
        Version::V0_3_1,
        Version::V0_4_0,
        Version::V1_0_0,
    ] {
        let value = value(version);
        let family = |index: usize| value["ips"][index].get("version").cloned();
        if version < Version::V1_0_0 {
            assert_eq!([family(0), family(1)], [Some(json!("4")), Some(json!("6"))]);
        } else {
            assert_eq!(family(0), None);
        }
        assert_eq!(
            value["interfaces"][0],
            json!({"name": "net1", "mac": "02:00:00:00:00:01", "sandbox": "/run/netns/a"})
        );
        assert_eq!(
            value["routes"][0],
            json!({"dst": "0.0.0.0/0", "gw": "10.1.0.1"})
        );
        assert_eq!(value["cniVersion"], json!(version.as_str()));
    }
    for version in [Version::V0_1_0, Version::V0_2_0] {
        assert_eq!(
            value(version),
            json!({
                "cniVersion": version.as_str(),
                "ip4": {"ip": "10.1.0.5/16", "gateway": "10.1.0.1",
                        "routes": [{"dst": "0.0.0.0/0", "gw": "10.1.0.1"}]},
                "ip6": {"ip": "2001:db8::5/64", "routes": [{"dst": "2001:db8:1::/48"}]},
                "dns": {"nameservers": ["10.1.0.1"], "domain": "example.com", "search": ["a", "b"],
                        "options": ["ndots:5"]},
            })
        );
    }
}

#[test]
fn a_result_is_converted_between_every_two_versions() {
    for from in Version::ALL {
        for to in Version::ALL {
            let written = rich().to_json(from).unwrap();
            // The version in the result overrides the version of the configuration.
            let read = parse(&written, to);
            assert_eq!(read, limited(rich(), from), "{from}");
            let again = parse(&read.to_json(to).unwrap(), from);
            assert_eq!(again, limited(limited(rich(), from), to), "{from} to {to}");
        }
    }
}

#[test]
fn a_zero_value_differs_from_a_missing_key() {
    let zero = r#"{"cniVersion":"1.1.0","interfaces":[{"name":"a","mtu":0}],"ips":[{"address":"10.0.0.1/8","interface":0}],"routes":[{"dst":"0.0.0.0/0","priority":0,"table":0,"scope":0}]}"#;
    let absent = r#"{"cniVersion":"1.1.0","interfaces":[{"name":"a"}],"ips":[{"address":"10.0.0.1/8"}],"routes":[{"dst":"0.0.0.0/0"}]}"#;
    let zero = parse(zero, Version::V1_1_0);
    assert_eq!(zero.ips[0].interface, Some(0));
    assert_eq!(
        (zero.routes[0].table, zero.routes[0].scope),
        (Some(0), Some(0))
    );
    assert_eq!(
        (zero.routes[0].priority, zero.interfaces[0].mtu),
        (Some(0), Some(0))
    );
    assert_eq!(
        parse(&zero.to_json(Version::V1_1_0).unwrap(), Version::V0_1_0),
        zero
    );
    let absent = parse(absent, Version::V1_1_0);
    assert_eq!(
        (absent.ips[0].interface, absent.routes[0].table),
        (None, None)
    );
    assert_eq!(
        parse(&absent.to_json(Version::V1_1_0).unwrap(), Version::V0_1_0),
        absent
    );
}

// clause: CNI-1.1.0 §5 abbreviated: sections may be missing
#[test]
fn a_missing_or_null_key_is_absent() {
    for version in Version::ALL {
        for text in [
            "{}",
            r#"{"cniVersion":""}"#,
            r#"{"cniVersion":null,"interfaces":null,"ips":null,"routes":null,"dns":null,"ip4":null}"#,
            r#"{"dns":{}}"#,
            r#"{"dns":{"nameservers":null,"domain":""}}"#,
        ] {
            assert_eq!(parse(text, version), CniResult::default(), "{text}");
        }
    }
    let sparse = parse(
        r#"{"interfaces":[null,{"name":"a","mac":"","sandbox":"","unknown":1}],"ips":[{"address":"10.0.0.1/8","gateway":"","interface":null,"version":"4"},{"address":"10.0.0.2/8","interface":-1},{"address":"10.0.0.3/8","interface":0},{"address":"10.0.0.4/8","interface":1},{"address":"10.0.0.5/8","interface":2}],"more":{}}"#,
        Version::V0_4_0,
    );
    assert_eq!(
        sparse.interfaces,
        [Interface {
            name: "a".to_owned(),
            ..Interface::default()
        }]
    );
    assert_eq!(
        (sparse.ips[0].gateway, sparse.ips[0].interface),
        (None, None)
    );
    // The indices count the `null`. Reading drops an index without an interface.
    let indices: Vec<_> = sparse.ips.iter().map(|ip| ip.interface).collect();
    assert_eq!(
        indices,
        [None, None, None, Some(0), None],
        "null, -1, 0, 1, 2"
    );
    assert_eq!(sparse.sandbox_interface(), None);
}

#[test]
fn the_version_decides_which_form_is_read() {
    let both = |version: &str| {
        format!(r#"{{{version}"ip4":{{"ip":"10.0.0.4/8"}},"ips":[{{"address":"10.0.0.9/8"}}]}}"#)
    };
    let address = |text: &str, config| parse(text, config).ips[0].address.addr().to_string();
    assert_eq!(address(&both(""), Version::V0_2_0), "10.0.0.4");
    assert_eq!(address(&both(""), Version::V0_3_0), "10.0.0.9");
    assert_eq!(
        address(&both(r#""cniVersion":"0.1.0","#), Version::V1_1_0),
        "10.0.0.4"
    );
    assert_eq!(
        address(&both(r#""cniVersion":"1.0.0","#), Version::V0_1_0),
        "10.0.0.9"
    );
}

#[test]
fn each_invalid_result_has_its_own_message() {
    let table = [
        (
            "",
            "the result is empty; the plugin must print a result, at least {}",
        ),
        ("\n", "the result is empty"),
        ("null", "expected an object"),
        ("[]", "expected an object"),
        ("{}{}", "trailing characters"),
        ("{\"a\"", "invalid JSON"),
        (r#"{"cniVersion":"2.0.0"}"#, "\"2.0.0\" is not supported"),
        (r#"{"cniVersion":1}"#, r#"key "cniVersion": 1 is not valid"#),
        (r#"{"ips":{}}"#, r#"key "ips": {} is not valid"#),
        (r#"{"ips":[{}]}"#, r#"key "ips[0].address" is missing"#),
        (
            r#"{"ips":[{"address":"10.0.0.1/8"},{"address":"10.0.0.1"}]}"#,
            r#"key "ips[1].address": "10.0.0.1" is not valid: expected an address with a prefix length"#,
        ),
        (
            r#"{"ips":[{"address":"10.0.0.1/8","gateway":"x"}]}"#,
            r#"key "ips[0].gateway": "x" is not valid"#,
        ),
        (
            r#"{"ips":[{"address":"10.0.0.1/8","interface":"0"}]}"#,
            r#"key "ips[0].interface""#,
        ),
        (
            r#"{"routes":[{"gw":"10.0.0.1"}]}"#,
            r#"key "routes[0].dst" is missing"#,
        ),
        (
            r#"{"routes":[{"dst":"0.0.0.0/0","table":-1}]}"#,
            r#"key "routes[0].table": -1"#,
        ),
        (
            r#"{"interfaces":[{"name":7}]}"#,
            r#"key "interfaces[0].name": 7"#,
        ),
    ];
    for (text, expected) in table {
        let error = CniResult::parse(text.as_bytes(), Version::V1_1_0)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{text}: {error}");
        assert!(!error.contains('\n'));
    }
}

#[test]
fn a_result_without_an_address_cannot_be_expressed_before_0_3_0() {
    for version in [Version::V0_1_0, Version::V0_2_0] {
        let bare = CniResult {
            interfaces: vec![Interface::default()],
            ..CniResult::default()
        };
        assert_eq!(bare.to_json(version), Err(ResultError::NoAddress(version)));
        // A result without interfaces and routes needs no address.
        let answer = format!(r#"{{"cniVersion":"{version}","dns":{{"domain":"a"}}}}"#);
        let result = CniResult::parse(answer.as_bytes(), Version::V1_0_0).unwrap();
        assert_eq!(result.to_json(version), Ok(answer));
    }
    assert_eq!(
        CniResult::default().to_json(Version::V0_3_0).unwrap(),
        r#"{"cniVersion":"0.3.0"}"#
    );
}

// clause: NPWG-1.3 §5.1.1 first sandbox
#[test]
fn the_first_interface_in_a_sandbox_belongs_to_the_attachment() {
    let mut result = rich();
    result.interfaces.reverse();
    let (index, interface) = result.sandbox_interface().unwrap();
    assert_eq!((index, interface.name.as_str()), (1, "net1"));
}

#[test]
fn a_result_is_recorded_in_the_newest_version() {
    let text = serde_json::to_string(&rich()).unwrap();
    assert_eq!(text, rich().to_json(Version::V1_1_0).unwrap());
    assert_eq!(serde_json::from_str::<CniResult>(&text).unwrap(), rich());
}

fn any_net() -> impl Strategy<Value = IpNet> {
    (any::<IpAddr>(), 0_u8..=128).prop_map(|(address, length)| {
        let longest = if address.is_ipv4() { 32 } else { 128 };
        IpNet::new(address, length.min(longest)).unwrap()
    })
}

fn any_result() -> impl Strategy<Value = CniResult> {
    let text = || proptest::option::of("[a-z:/.0-9]{1,12}");
    let number = || proptest::option::of(any::<u32>());
    let interface = ("\\PC{0,8}", text(), number(), text(), text(), text()).prop_map(
        |(name, mac, mtu, sandbox, socket_path, pci_id)| Interface {
            name,
            mac,
            mtu,
            sandbox,
            socket_path,
            pci_id,
        },
    );
    let gateway = || proptest::option::of(any::<IpAddr>());
    let ip = (any_net(), gateway(), proptest::option::of(0_usize..2)).prop_map(
        |(address, gateway, interface)| IpConfig {
            address,
            gateway,
            interface,
        },
    );
    let route = (
        any_net(),
        gateway(),
        number(),
        number(),
        number(),
        number(),
        number(),
    )
        .prop_map(|(dst, gw, mtu, advmss, priority, table, scope)| Route {
            dst,
            gw,
            mtu,
            advmss,
            priority,
            table,
            scope,
        });
    let list = |element| proptest::collection::vec(element, 0..3);
    (
        proptest::collection::vec(interface, 0..3),
        proptest::collection::vec(ip, 0..4),
        proptest::collection::vec(route, 0..4),
        proptest::option::of((list("[a-z.]{1,5}"), text(), list("[a-z]{0,5}"))),
    )
        .prop_map(|(interfaces, ips, routes, dns)| CniResult {
            ips: pointing_into(&interfaces, ips),
            interfaces,
            routes,
            dns: dns
                .map(|(nameservers, domain, search)| Dns {
                    nameservers,
                    domain,
                    search,
                    options: Vec::new(),
                })
                .filter(|dns| *dns != Dns::default()),
        })
}

/// Drops the indices of missing interfaces, as reading a result does.
fn pointing_into(interfaces: &[Interface], mut ips: Vec<IpConfig>) -> Vec<IpConfig> {
    for ip in &mut ips {
        ip.interface = ip.interface.filter(|index| *index < interfaces.len());
    }
    ips
}

proptest! {
    #[test]
    fn a_result_reads_back_with_the_keys_of_its_version(
        result in any_result(),
        version in prop::sample::select(Version::ALL.to_vec()),
    ) {
        match result.to_json(version) {
            Ok(text) => prop_assert_eq!(parse(&text, Version::V1_1_0), limited(result, version)),
            Err(error) => {
                prop_assert_eq!(error, ResultError::NoAddress(version));
                prop_assert!(version.has_legacy_result() && result.ips.is_empty());
            }
        }
    }

    #[test]
    fn parsing_a_result_never_panics(text in "[{}\\[\\]\":,a-z0-9./ ]{0,48}|\\PC{0,24}") {
        let _ = CniResult::parse(text.as_bytes(), Version::V1_1_0);
        let _ = CniResult::parse(text.as_bytes(), Version::V0_1_0);
    }
}

#[test]
fn the_lists_of_a_result_have_limits() {
    let ip = r#"{"address":"10.0.0.1/8"}"#;
    for (list, element, limit) in [
        ("interfaces", r#"{"name":"a"}"#, MAX_INTERFACES),
        ("ips", ip, MAX_IPS),
        ("routes", r#"{"dst":"10.0.0.0/8"}"#, MAX_ROUTES),
    ] {
        let of = |count: usize| {
            let text = format!(r#"{{"{list}":[{}]}}"#, vec![element; count].join(","));
            parse(&text, Version::V1_0_0).within_limits()
        };
        assert_eq!(of(limit), Ok(()));
        let error = of(limit + 1).unwrap_err().to_string();
        let words = format!("the result has {} {list}; {limit} are allowed", limit + 1);
        assert_eq!(error, words);
    }
}
