//! Valid and invalid plugin objects.

use super::*;

fn plugin(text: &str) -> Result<PluginConfig, PluginConfigError> {
    PluginConfig::new(RawObject::parse(text.as_bytes()).unwrap())
}

// clause: CNI-1.1.0 §1 type: every plugin has a type
// clause: CNI-1.1.0 §3 declared capabilities: a plugin declares the capabilities that are true
#[test]
fn only_capabilities_set_to_true_are_declared() {
    let plugin = plugin(
        r#"{"type":"bridge","ipam":{"type":"host-local"},"capabilities":{"mac":true,"ips":false,"bandwidth":null,"portMappings":true,"x":true,"x":false}}"#,
    )
    .unwrap();
    assert_eq!(plugin.plugin_type().as_str(), "bridge");
    assert_eq!(plugin.ipam_type().unwrap().as_str(), "host-local");
    let declared: Vec<&str> = plugin.capabilities().collect();
    assert_eq!(declared, ["mac", "portMappings"]);
    assert!(plugin.declares("mac"));
    assert!(!plugin.declares("ips") && !plugin.declares("Mac") && !plugin.declares("x"));
}

#[test]
fn an_ipam_without_a_type_is_not_an_error() {
    for ipam in [
        "null",
        "{}",
        r#"{"type":""}"#,
        r#"{"type":null}"#,
        "[]",
        r#""dhcp""#,
    ] {
        let plugin = plugin(&format!(r#"{{"type":"a","ipam":{ipam}}}"#)).unwrap();
        assert_eq!(plugin.ipam_type(), None, "{ipam}");
    }
}

#[test]
fn each_invalid_plugin_has_its_own_message() {
    let table = [
        ("{}", r#"key "type" is missing; name the plugin's binary"#),
        (r#"{"type":""}"#, r#"key "type" is missing"#),
        (r#"{"type":7}"#, r#"key "type": 7 is not valid"#),
        (
            r#"{"type":"../x"}"#,
            r#"key "type": plugin type "../x" is not valid"#,
        ),
        (
            r#"{"type":"a","type":"/bin/sh"}"#,
            r#"plugin type "/bin/sh""#,
        ),
        (r#"{"type":"a","TYPE":".."}"#, r#"plugin type "..""#),
        (
            r#"{"type":"a","ipam":{"type":"../x"}}"#,
            r#"key "ipam.type": plugin type "../x""#,
        ),
        (
            r#"{"type":"a","IPAM":{"Type":"a/b"}}"#,
            r#"key "ipam.type": plugin type "a/b""#,
        ),
        (
            r#"{"type":"a","ipam":{"type":1}}"#,
            r#"key "ipam.type": 1 is not valid"#,
        ),
        (
            r#"{"type":"a","capabilities":[]}"#,
            r#"key "capabilities": [] is not valid"#,
        ),
        (
            r#"{"type":"a","capabilities":{"mac":"yes"}}"#,
            r#"key "capabilities.mac": "yes" is not valid: expected true or false"#,
        ),
    ];
    for (text, expected) in table {
        let error = plugin(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
        assert!(!error.contains('\n'));
    }
}
