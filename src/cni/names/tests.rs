use proptest::prelude::*;

use super::*;

// clause: CNI-1.1.0 §2 container ID: an ID begins with a letter or digit; '_', '.' and '-' may follow
// clause: CNI-1.1.0 §1 name: a name begins with a letter or digit; '_', '.' and '-' may follow
#[test]
fn container_ids_and_network_names_have_only_safe_characters() {
    let table = [
        ("a", true),
        ("0", true),
        ("A9_.-z", true),
        ("a..", true),
        (
            "8f3ec13ab7c8ab5de2d8a2a3c4b5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f7",
            true,
        ),
        ("", false),
        (".", false),
        ("..", false),
        ("-a", false),
        ("_a", false),
        ("a/b", false),
        ("../a", false),
        ("a b", false),
        ("a\n", false),
        ("a\0", false),
        ("ä", false),
        ("a;b", false),
    ];
    for (text, valid) in table {
        assert_eq!(text.parse::<ContainerId>().is_ok(), valid, "{text:?}");
        assert_eq!(text.parse::<NetworkName>().is_ok(), valid, "{text:?}");
    }
}

// clause: NPWG-1.3 §4.1.2.1.5 valid: the Linux kernel accepts the name
// clause: CNI-1.1.0 §2 interface name
#[test]
fn an_interface_name_is_valid_for_the_kernel() {
    let table = [
        ("eth0", true),
        ("net1", true),
        ("a", true),
        ("123456789012345", true),
        ("...", true),
        ("eth0.100", true),
        ("br-é", true),
        ("", false),
        ("1234567890123456", false),
        ("éééééééé", false),
        (".", false),
        ("..", false),
        ("all", false),
        ("default", false),
        ("a/b", false),
        ("a:b", false),
        ("a b", false),
        ("a\tb", false),
        ("a\n", false),
        ("a\u{b}", false),
        ("a\u{a0}", false),
        ("a\u{2003}", false),
        ("à", false),
        ("net%d", false),
        ("a\0", false),
        ("a\u{1b}[", false),
    ];
    for (text, valid) in table {
        assert_eq!(text.parse::<InterfaceName>().is_ok(), valid, "{text:?}");
    }
}

// clause: CNI-1.1.0 §1 type: a type has no characters that file paths disallow
// clause: CNI-1.1.0 §1 ipam type: an IPAM type has no characters that file paths disallow
#[test]
fn a_plugin_type_cannot_be_a_path() {
    let table = [
        ("bridge", true),
        ("host-local", true),
        ("a.b", true),
        ("...", true),
        ("", false),
        (".", false),
        ("..", false),
        ("../x", false),
        ("/bin/sh", false),
        ("a/b", false),
        ("a\\b", false),
        ("a\0b", false),
    ];
    for (text, valid) in table {
        assert_eq!(text.parse::<PluginType>().is_ok(), valid, "{text:?}");
    }
}

#[test]
fn an_error_about_a_name_includes_the_rule() {
    let error = "a\nb".parse::<InterfaceName>().unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"interface name "a\nb" is not valid; use no '/', ':', '%', white space or control character"#
    );
    let long = "x/".repeat(5_000).parse::<PluginType>().unwrap_err();
    assert!(long.to_string().len() < 300);
}

proptest! {
    #[test]
    fn every_valid_name_reads_back_unchanged(text in "\\PC{0,20}|[a-z0-9._-]{1,20}") {
        if let Ok(name) = text.parse::<ContainerId>() {
            prop_assert_eq!(name.to_string(), text.as_str());
        }
        if let Ok(name) = text.parse::<InterfaceName>() {
            prop_assert_eq!(name.as_str(), text.as_str());
            let json = serde_json::to_string(&name).unwrap();
            prop_assert_eq!(serde_json::from_str::<InterfaceName>(&json).unwrap(), name);
        }
        if let Ok(name) = text.parse::<PluginType>() {
            prop_assert_eq!(name.as_str(), text);
        }
    }
}
