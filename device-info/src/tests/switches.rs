use super::machine;
use crate::{EswitchMode, Switch, fixtures};

const PF: &str = "devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0";

#[test]
fn devlink_and_port_names_lead_to_the_same_representor() {
    let capture = fixtures::unverified_connectx6(12);
    let mlx = machine(&capture);
    let switch = capture.switch("pci/0000:3b:00.0").unwrap();
    for (index, address) in mlx.function("0000:3b:00.0").vfs() {
        let vf = mlx.sysfs.pci_function(address).unwrap();
        let expected = format!("enp59s0f0_{index}");
        assert_eq!(
            vf.representor(Some(switch)).as_deref(),
            Some(expected.as_str())
        );
        assert_eq!(vf.representor(None).as_deref(), Some(expected.as_str()));
    }
}

#[test]
fn devlink_and_port_names_lead_to_the_same_subfunction_representor() {
    let capture = fixtures::unverified_bluefield2();
    let dpu = machine(&capture);
    let sf = dpu.sysfs.subfunction("mlx5_core.sf.3").unwrap();
    for switch in [capture.switch("pci/0000:03:00.0"), None] {
        assert_eq!(sf.representor(switch).as_deref(), Some("en3f0pf0sf89"));
    }
}

#[test]
fn a_representor_of_another_switch_or_function_is_not_taken() {
    let rep = format!("{PF}/net/enp59s0f0_1");
    for (attribute, value) in [
        ("phys_switch_id", "ffff"),
        ("phys_port_name", "pf1vf1"),
        ("phys_port_name", "c1pf0vf1"),
        ("phys_port_name", "pf0vf11"),
        ("phys_port_name", ""),
    ] {
        let mut capture = fixtures::unverified_connectx6(2);
        capture.put_text(&format!("{rep}/{attribute}"), value);
        let vf = machine(&capture).function("0000:3b:00.3");
        assert_eq!(vf.vf_index(), Some(1));
        assert_eq!(vf.representor(None), None, "{attribute} {value}");
    }
}

#[test]
fn representor_is_unknown_if_two_interfaces_match() {
    let mut capture = fixtures::unverified_connectx6(2);
    for (attribute, value) in [
        ("phys_switch_id", "6c5f9e0003a1420c"),
        ("phys_port_name", "pf0vf1"),
    ] {
        capture.put_text(&format!("{PF}/net/twin/{attribute}"), value);
    }
    assert_eq!(
        machine(&capture).function("0000:3b:00.3").representor(None),
        None
    );
}

#[test]
fn representor_without_a_parent_is_found_among_all_interfaces() {
    let mut capture = fixtures::unverified_connectx6(2);
    for index in 0..2 {
        capture.remove(&format!("{PF}/net/enp59s0f0_{index}"));
        capture.remove(&format!("class/net/enp59s0f0_{index}"));
    }
    capture.put_link("class/net/rep1", "../../devices/virtual/net/rep1");
    capture.put_text(
        "devices/virtual/net/rep1/phys_switch_id",
        "6c5f9e0003a1420c",
    );
    capture.put_text("devices/virtual/net/rep1/phys_port_name", "pf0vf1");
    let vf = machine(&capture).function("0000:3b:00.3");
    assert_eq!(vf.representor(None).as_deref(), Some("rep1"));
}

#[test]
fn a_switch_in_legacy_mode_has_no_representors() {
    let mlx = machine(&fixtures::unverified_connectx6(2));
    let legacy = Switch {
        mode: Some(EswitchMode::Legacy),
        ports: Vec::new(),
    };
    assert_eq!(
        mlx.function("0000:3b:00.3").representor(Some(&legacy)),
        None
    );
}

#[test]
fn a_representor_for_a_function_of_another_host_is_not_taken() {
    let capture = fixtures::unverified_bluefield2();
    let mut switch = capture.switch("pci/0000:03:00.0").unwrap().clone();
    let mlx = machine(&fixtures::unverified_connectx6(2));
    // The DPU's switch has ports for VFs 0 and 1. The VFs belong to the host that the DPU is
    // plugged into.
    assert_eq!(
        mlx.function("0000:3b:00.2").representor(Some(&switch)),
        None
    );
    for port in &mut switch.ports {
        (port.controller, port.external) = (0, false);
    }
    assert_eq!(
        mlx.function("0000:3b:00.2")
            .representor(Some(&switch))
            .as_deref(),
        Some("pf0vf0")
    );
}

#[test]
fn only_devlink_finds_a_representor_if_port_and_function_numbers_differ() {
    let mut capture = fixtures::unverified_connectx6(2);
    capture.put_text(&format!("{PF}/net/enp59s0f0np0/phys_port_name"), "p1");
    let mlx = machine(&capture);
    let vf = mlx.function("0000:3b:00.2");
    assert_eq!(vf.representor(None), None);
    assert!(vf.representor(capture.switch("pci/0000:3b:00.0")).is_some());
}
