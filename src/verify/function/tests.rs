//! Compares the settings that a physical function reports with the keys of a definition.

use super::*;
use crate::kernel::{VfRates, VfVlan};

fn intended(keys: &str) -> IntendedFunction {
    of_type("sriov", keys, &Requested::default())
}

fn of_type(plugin: &str, keys: &str, requested: &Requested) -> IntendedFunction {
    let config = format!(r#"{{"cniVersion":"1.0.0","name":"n","type":"{plugin}"{keys}}}"#);
    let config = NetworkConfig::parse(config.as_bytes()).unwrap();
    IntendedFunction::of(&config, requested)
}

/// The settings of a VF with a VLAN. The driver reports neither GUIDs nor the link state.
fn seen() -> VfState {
    VfState {
        mac: Some([2, 0x11, 0x22, 0x33, 0x44, 0x55].into()),
        vlan: Some(VfVlan {
            id: 100,
            qos: 3,
            ..VfVlan::default()
        }),
        spoof_check: Some(false),
        trust: Some(true),
        rates: Some(VfRates { min: 0, max: 200 }),
        ..VfState::default()
    }
}

fn lines(intended: &IntendedFunction, found: &VfState) -> Vec<String> {
    let findings = intended.judge("0000:01:10.0", found);
    findings.iter().map(ToString::to_string).collect()
}

#[test]
fn vf_settings_that_match_the_definition_have_no_finding() {
    let keys = r#","mac":"02:11:22:33:44:55","vlan":100,"vlanQoS":3,"vlanProto":"802.1q",
        "spoofchk":"off","trust":"on","link_state":"enable","max_tx_rate":200,"min_tx_rate":0"#;
    assert_eq!(lines(&intended(keys), &seen()), [""; 0]);
}

#[test]
fn vf_settings_are_listed_one_by_one() {
    let keys = r#","vlan":100,"vlanQoS":3,"spoofchk":"off","max_tx_rate":200"#;
    let lines = ["max_tx_rate 200", "spoofchk off", "vlan 100 qos 3"];
    assert!(intended(keys).lines().eq(lines));
    assert_eq!(intended("").lines().count(), 0);
}

#[test]
fn vf_settings_without_a_key_are_not_verified() {
    assert!(intended("").is_empty());
    assert_eq!(lines(&intended(""), &seen()), [""; 0]);
    let others = r#","vlan":5,"mac":"02:00:00:00:00:01""#;
    let bridge = of_type("bridge", others, &Requested::default());
    assert!(
        bridge.is_empty(),
        "other plugins use these keys for something else"
    );
}

#[test]
fn each_vf_setting_that_differs_has_a_finding() {
    let table = [
        (
            r#","mac":"02:11:22:33:44:66""#,
            r#"mac is "02:11:22:33:44:55" instead of "02:11:22:33:44:66""#,
        ),
        (
            r#","vlan":100"#,
            r#"vlan is "vlan 100 qos 3" instead of "vlan 100""#,
        ),
        (
            r#","vlan":100,"vlanQoS":3,"vlanProto":"802.1AD""#,
            r#"instead of "vlan 100 qos 3 proto 802.1ad""#,
        ),
        (r#","vlan":0"#, r#"instead of "vlan 0""#),
        (
            r#","spoofchk":"on""#,
            r#"spoofchk is "off" instead of "on""#,
        ),
        (r#","trust":"off""#, r#"trust is "on" instead of "off""#),
        (
            r#","min_tx_rate":10"#,
            r#"min_tx_rate is "0" instead of "10""#,
        ),
        (
            r#","max_tx_rate":100"#,
            r#"max_tx_rate is "200" instead of "100""#,
        ),
    ];
    for (keys, part) in table {
        let found = lines(&intended(keys), &seen());
        assert_eq!(found.len(), 1, "{keys}: {found:?}");
        assert!(found[0].contains(part), "{found:?}");
        assert!(found[0].starts_with("device 0000:01:10.0: "), "{found:?}");
    }
}

#[test]
fn vf_settings_that_the_driver_does_not_report_are_skipped() {
    let all = r#","mac":"02:00:00:00:00:01","vlan":1,"spoofchk":"on","trust":"off",
        "link_state":"disable","min_tx_rate":1,"max_tx_rate":1,"guid":"02:00:00:00:00:00:00:05""#;
    assert_eq!(lines(&intended(all), &VfState::default()), [""; 0]);
}

#[test]
fn vf_node_guid_and_port_guid_must_be_the_requested_guid() {
    let requested = Requested {
        guid: Some("02:00:00:00:00:00:00:07".parse().unwrap()),
        ..Requested::default()
    };
    let keys = r#","guid":"02:00:00:00:00:00:00:05""#;
    let intended = of_type("ib-sriov", keys, &requested);
    let seven = Some([2, 0, 0, 0, 0, 0, 0, 7].into());
    let with = |node_guid, port_guid| VfState {
        node_guid,
        port_guid,
        ..VfState::default()
    };
    assert_eq!(lines(&intended, &with(seven, seven)), [""; 0]);
    let zero = Some([0; 8].into());
    let part = r#"guid is "00:00:00:00:00:00:00:00" instead of "02:00:00:00:00:00:00:07""#;
    for found in [with(zero, zero), with(seven, zero), with(zero, seven)] {
        let lines = lines(&intended, &found);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].contains(part), "{lines:?}");
    }
}

#[test]
fn a_requested_mac_overrides_the_mac_in_the_definition() {
    let requested = Requested {
        mac: Some(RequestedMac::Ethernet("02:11:22:33:44:55".parse().unwrap())),
        ..Requested::default()
    };
    let keys = r#","mac":"02:00:00:00:00:01""#;
    assert_eq!(lines(&of_type("sriov", keys, &requested), &seen()), [""; 0]);
}
