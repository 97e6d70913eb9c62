//! Valid and invalid network configurations.

use proptest::prelude::*;

use super::*;

fn config(text: &str) -> NetworkConfig {
    NetworkConfig::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

const DBNET: &str = r#"{
  "cniVersion": "1.1.0",
  "cniVersions": ["0.3.1", "0.4.0", "1.0.0", "1.1.0"],
  "name": "dbnet",
  "plugins": [
    {"type": "bridge", "bridge": "cni0", "ipam": {"type": "host-local", "subnet": "10.1.0.0/16"}},
    {"type": "tuning", "capabilities": {"mac": true}, "sysctl": {"net.core.somaxconn": "500"}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}"#;

// clause: CNI-1.1.0 §1 plugins validated: a network configuration is a list of plugins
#[test]
fn a_list_keeps_its_text() {
    let list = config(DBNET);
    assert_eq!(list.name().unwrap().as_str(), "dbnet");
    assert_eq!(list.version(), Version::V1_1_0);
    let types: Vec<&str> = list
        .plugins()
        .iter()
        .map(|plugin| plugin.plugin_type().as_str())
        .collect();
    assert_eq!(types, ["bridge", "tuning", "portmap"]);
    assert!(list.declares("mac") && list.declares("portMappings") && !list.declares("ips"));
    assert!(!list.disable_check() && !list.disable_gc());
    assert_eq!(list.raw(), DBNET);
    assert_eq!(config(list.raw()), list);
}

// clause: NPWG-1.3 §3.2.1: a definition may hold the configuration of one plugin
#[test]
fn a_single_plugin_is_a_chain_of_one() {
    let text = r#"{"cniVersion":"0.3.0","type":"awesome-plugin"}"#;
    let single = config(text);
    assert_eq!(single.name(), None);
    assert_eq!(single.version(), Version::V0_3_0);
    assert_eq!(single.plugins().len(), 1);
    assert_eq!(single.raw(), text);
}

#[test]
fn a_configuration_is_read_as_the_reference_library_reads_it() {
    let odd = config(
        r#"{"CNIVersion":"0.4.0","Name":"","Plugins":[{"Type":"a"}],"Type":"","disablecheck":"TRUE","DisableGC":"false"}"#,
    );
    assert_eq!(odd.version(), Version::V0_4_0);
    assert_eq!(odd.name(), None);
    assert_eq!(odd.plugins()[0].plugin_type().as_str(), "a");
    assert!(odd.disable_check() && !odd.disable_gc());

    let nulls = config(
        r#"{"cniVersion":null,"cniVersions":null,"name":null,"plugins":null,"type":"a","disableCheck":null,"disableGC":true}"#,
    );
    assert_eq!(nulls.version(), Version::V0_1_0);
    assert!(!nulls.disable_check() && nulls.disable_gc());
    let list = config(r#"{"cniVersions":[null,"1.0.0"],"type":"a"}"#);
    assert_eq!(list.version(), Version::V1_0_0);
}

#[test]
fn an_ambiguous_configuration_is_refused() {
    let table = [
        (
            r#"{"type":"macvlan","ipam":{"type":"host-local"},"ipam":{}}"#,
            "\"ipam\"",
        ),
        (r#"{"type":"tuning","type":null}"#, "\"type\""),
        (r#"{"type":"macvlan","Type":"tuning"}"#, "\"Type\""),
        (
            r#"{"plugins":[{"type":"a","ſysctl":{}},{"type":"a","sysctl":{"x":1},"ſysctl":{}}]}"#,
            "\"plugins[1].ſysctl\"",
        ),
        (r#"{"plugins":[{"type":"a"}],"PLUGINS":[]}"#, "\"PLUGINS\""),
        (
            r#"{"type":"a","x":[{"y":{"z":1,"\u007a":2}}]}"#,
            "\"x[0].y.z\"",
        ),
    ];
    for (text, key) in table {
        let error = NetworkConfig::parse(text.as_bytes()).unwrap_err();
        assert!(error.to_string().contains(key), "{text}: {error}");
    }
    // Jackfield must still be able to detach a pod whose configuration an earlier release accepted.
    assert!(NetworkConfig::recorded(table[0].0.as_bytes()).is_ok());
    for null in [
        r#"{"type":null}"#,
        r#"{"plugins":null,"type":null}"#,
        r#"{"plugins":[{"type":null}]}"#,
        r#"{"plugins":[{"type":"a"},null]}"#,
    ] {
        assert!(NetworkConfig::parse(null.as_bytes()).is_err(), "{null}");
    }
}

/// Multus, too, ignores `plugins` in an object that has `type`, and passes the whole object to one
/// plugin.
#[test]
fn a_configuration_with_its_own_type_is_a_single_plugin() {
    let types = |text: &str| -> Vec<String> {
        let config = NetworkConfig::parse(text.as_bytes()).unwrap();
        assert_eq!(
            NetworkConfig::recorded(text.as_bytes()).as_ref(),
            Ok(&config)
        );
        let plugins = config.plugins().iter();
        plugins.map(|it| it.plugin_type().to_string()).collect()
    };
    for both in [
        r#"{"plugins":[{"type":"a"},{"type":"b"}],"type":"c"}"#,
        r#"{"Type":"c","plugins":[]}"#,
        r#"{"type":"c","plugins":{"of":"its own"}}"#,
    ] {
        assert_eq!(types(both), ["c"], "{both}");
    }
    for list in [
        r#"{"type":"","plugins":[{"type":"a"}]}"#,
        r#"{"type":null,"plugins":[{"type":"a"}]}"#,
    ] {
        assert_eq!(types(list), ["a"], "{list}");
    }
}

#[test]
fn each_invalid_configuration_has_a_message_and_a_code() {
    let many = format!(
        r#"{{"plugins":[{}]}}"#,
        vec![r#"{"type":"a"}"#; 65].join(",")
    );
    let deep = format!(r#"{{"type":"a","x":{}}}"#, "[".repeat(100_000));
    let large = format!(r#"{{"type":"a","x":"{}"}}"#, "x".repeat(MAX_BYTES));
    let table = [
        ("", "empty input"),
        ("{", "invalid JSON"),
        ("[]", "expected an object"),
        (&deep, "deeper than 128 levels"),
        (
            r#"{"cniVersion":1,"type":"a"}"#,
            r#"key "cniVersion": 1 is"#,
        ),
        (
            r#"{"cniVersions":"1.0.0","type":"a"}"#,
            r#"key "cniVersions""#,
        ),
        (
            r#"{"cniVersion":"1.2.0","type":"a"}"#,
            "\"1.2.0\" is not supported",
        ),
        (r#"{"name":"a/b","type":"a"}"#, r#"network name "a/b""#),
        (r#"{"name":7,"type":"a"}"#, r#"key "name": 7 is"#),
        ("{}", "no plugin is given"),
        (r#"{"plugins":[],"type":""}"#, "no plugin is given"),
        (&many, "lists 65 plugins; 64 are allowed"),
        (&large, "bytes; 2097152 are allowed"),
        (
            r#"{"plugins":[{"type":"a"},{}]}"#,
            "plugin 2 of the chain: key \"type\" is missing",
        ),
        (r#"{"plugins":[null]}"#, r#"key "plugins""#),
        (r#"{"plugins":{"type":"a"}}"#, r#"key "plugins""#),
        (
            r#"{"disableCheck":"yes","type":"a"}"#,
            r#"key "disableCheck": "yes" is"#,
        ),
        (r#"{"disableGC":1,"type":"a"}"#, r#"key "disableGC": 1 is"#),
    ];
    for (text, message) in table {
        let error = NetworkConfig::parse(text.as_bytes()).unwrap_err();
        let shown = error.to_string();
        assert!(shown.contains(message), "{shown}");
        assert!(shown.len() < 300 && !shown.contains('\n'));
    }
}

proptest! {
    #[test]
    fn parsing_a_configuration_never_panics(text in "[{}\\[\\]\":,a-z0. ]{0,48}|\\PC{0,24}") {
        let _ = NetworkConfig::parse(text.as_bytes());
    }

    #[test]
    fn every_valid_configuration_reads_back_unchanged(
        name in "[a-z][a-z0-9-]{0,8}",
        types in prop::collection::vec("[a-z]{1,8}", 1..5),
        version in prop::sample::select(Version::ALL.to_vec()),
    ) {
        let plugins: Vec<String> = types.iter().map(|kind| format!(r#"{{"type":"{kind}"}}"#)).collect();
        let text = format!(r#"{{"name":"{name}","cniVersion":"{version}","plugins":[{}]}}"#, plugins.join(","));
        let read = NetworkConfig::parse(text.as_bytes()).unwrap();
        prop_assert_eq!(read.version(), version);
        prop_assert_eq!(read.plugins().len(), types.len());
        prop_assert_eq!(NetworkConfig::parse(read.raw().as_bytes()).unwrap(), read);
    }
}
