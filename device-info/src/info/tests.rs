use serde_json::json;

use super::*;
use crate::fixtures;
use crate::tests::machine;

fn wire(value: Value) -> WireDeviceInfo {
    WireDeviceInfo::from_json(value.to_string().as_bytes()).unwrap()
}

fn strict(value: Value) -> Result<DeviceInfo, DeviceInfoError> {
    wire(value).try_into()
}

fn facts(capture: &crate::Capture, id: &str) -> Facts {
    Facts::read(&machine(capture).sysfs, id, &mut |handle| {
        capture.switch(handle).cloned()
    })
    .unwrap()
}

fn completed(given: Option<Value>, facts: &Facts) -> Value {
    serde_json::to_value(complete(given.map(wire), Some(facts)).unwrap().unwrap()).unwrap()
}

// clause: DEVINFO-1.1.0 §3.1.4.5: the key survives reading and writing
// clause: DEVINFO-1.1.0 §3.1.4.6: the key survives reading and writing
#[test]
// clause: DEVINFO-1.1.0 §3.1: every type with all its keys survives reading and writing
fn device_info_of_every_type_is_written_as_it_was_read() {
    for text in [
        r#"{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:18:0a.2","vhost-net":"/dev/vhost-net","rdma-device":"mlx5_0,mlx5_1","pf-pci-address":"0000:18:00.1","representor-device":"eth3"}}"#,
        r#"{"type":"vdpa","version":"1.1.0","vdpa":{"parent-device":"vdpa2","driver":"vhost","path":"/dev/vhost-vdpa-0","pci-address":"0000:02:01.6","pf-pci-address":"0000:02:01.0","representor-device":"eth3"}}"#,
        r#"{"type":"vdpa","version":"1.0.0","vdpa":{"parent-device":"vd0","driver":"virtio","path":"/sys/bus/virtio/devices/virtio3"}}"#,
        r#"{"type":"vhost-user","version":"1.1.0","vhost-user":{"mode":"client","path":"/var/run/net3/vhost.sock"}}"#,
        r#"{"type":"memif","version":"1.1.0","memif":{"role":"slave","path":"/run/memif.sock","mode":"inject-punt"}}"#,
    ] {
        let info: DeviceInfo = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&info).unwrap(), text);
    }
}

#[test]
fn unknown_keys_and_sections_survive_at_every_level() {
    let value = json!({
        "type": "pci", "version": "1.1.0",
        "pci": {"pci-address": "0000:01:10.0", "vendor.example/x": {"a": [1, 2]}},
        "memif": {"role": "master"},
        "vendor.example/y": 9_007_199_254_740_993_u64,
    });
    let info = strict(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(info).unwrap(), value);
}

#[test]
fn a_key_with_an_empty_value_is_treated_as_missing() {
    let info = strict(json!({
        "type": "pci", "version": "1.1.0", "vdpa": null,
        "pci": {"pci-address": "0000:01:10.0", "rdma-device": "", "vhost-net": null, "representor-device": ""},
    }))
    .unwrap();
    assert_eq!(
        serde_json::to_string(&info).unwrap(),
        r#"{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:01:10.0"}}"#
    );
}

#[test]
// clause: DEVINFO-1.1.0 §3.1.1: the type is required and is one of four
// clause: DEVINFO-1.1.0 §3.1.2 format: the version is required and has the form MAJOR.MINOR.PATCH
// clause: DEVINFO-1.1.0 §3.1.3: the map is required for the type pci
// clause: DEVINFO-1.1.0 §3.1.3.1: the key is required
// clause: DEVINFO-1.1.0 §3.1.4: the map is required for the type vdpa
// clause: DEVINFO-1.1.0 §3.1.4.1: the key is required
// clause: DEVINFO-1.1.0 §3.1.4.2: the key is required
// clause: DEVINFO-1.1.0 §3.1.4.3: the key is required
// clause: DEVINFO-1.1.0 §3.1.5: the map is required for the type vhost-user
// clause: DEVINFO-1.1.0 §3.1.5.1: the key is required
// clause: DEVINFO-1.1.0 §3.1.5.2: the key is required
// clause: DEVINFO-1.1.0 §3.1.6: the map is required for the type memif
// clause: DEVINFO-1.1.0 §3.1.6.1: the key is required
// clause: DEVINFO-1.1.0 §3.1.6.2: the key is required
// clause: DEVINFO-1.1.0 §3.1.6.3: the key is required
fn the_error_about_an_invalid_key_names_the_key() {
    let pci = |pci: Value| json!({"type": "pci", "version": "1.1.0", "pci": pci});
    let vdpa = |key: &str, value: Value| {
        let mut vdpa =
            json!({"parent-device": "vdpa2", "driver": "vhost", "path": "/dev/vhost-vdpa-0"});
        vdpa[key] = value;
        json!({"type": "vdpa", "version": "1.1.0", "vdpa": vdpa})
    };
    let memif = |key: &str, value: Value| {
        let mut memif = json!({"role": "slave", "path": "/run/m.sock", "mode": "ip"});
        memif[key] = value;
        json!({"type": "memif", "version": "1.1.0", "memif": memif})
    };
    let socket = |mode: Value, path: Value| json!({"type": "vhost-user", "version": "1.1.0", "vhost-user": {"mode": mode, "path": path}});
    let address = json!({"pci-address": "0000:01:10.0"});
    for (value, parts) in [
        (json!({}), vec!["lacks the key version"]),
        (
            json!({"version": "1.1.0", "pci": address}),
            vec!["lacks the key type"],
        ),
        (
            json!({"type": "pci", "pci": address}),
            vec!["lacks the key version"],
        ),
        (
            json!({"type": "gpu", "version": "1.1.0"}),
            vec!["type \"gpu\"", "vhost-user or memif"],
        ),
        (
            json!({"type": "pci", "version": "2.0.0", "pci": address}),
            vec!["version \"2.0.0\"", "write 1.1.0"],
        ),
        (
            json!({"type": "pci", "version": "1.1", "pci": address}),
            vec!["version \"1.1\""],
        ),
        (
            json!({"type": "pci", "version": "v1.1.0", "pci": address}),
            vec!["version \"v1.1.0\""],
        ),
        (
            json!({"type": "pci", "version": "1.1.0"}),
            vec!["lacks the key pci,"],
        ),
        (pci(json!({})), vec!["lacks the key pci.pci-address"]),
        (
            pci(json!({"pci-address": "0000:02:01:6"})),
            vec!["pci.pci-address \"0000:02:01:6\"", "0000:01:10.2"],
        ),
        (
            pci(json!({"pci-address": "0000:01:10.0", "pf-pci-address": "eth0"})),
            vec!["pf-pci-address \"eth0\""],
        ),
        (
            pci(json!({"pci-address": "0000:01:10.0", "rdma-device": "mlx5_0,../x"})),
            vec!["rdma-device \"mlx5_0,../x\""],
        ),
        (
            pci(json!({"pci-address": "0000:01:10.0", "vhost-net": "vhost-net"})),
            vec!["vhost-net \"vhost-net\"", "absolute path"],
        ),
        (
            pci(json!({"pci-address": "0000:01:10.0", "representor-device": "a/b"})),
            vec!["representor-device \"a/b\""],
        ),
        (
            vdpa("parent-device", json!(null)),
            vec!["lacks the key vdpa.parent-device"],
        ),
        (
            vdpa("driver", json!("dpdk")),
            vec!["vdpa.driver \"dpdk\"", "vhost or virtio"],
        ),
        (vdpa("path", json!("")), vec!["lacks the key vdpa.path"]),
        (
            vdpa("path", json!("/dev/../etc/shadow")),
            vec!["vdpa.path", "without .."],
        ),
        (
            socket(json!("both"), json!("/run/x")),
            vec!["vhost-user.mode \"both\"", "client server"],
        ),
        (
            socket(json!("client"), json!("x.sock")),
            vec!["vhost-user.path \"x.sock\""],
        ),
        (
            memif("role", json!("boss")),
            vec!["memif.role \"boss\"", "master slave"],
        ),
        (
            memif("mode", json!("atm")),
            vec!["memif.mode \"atm\"", "ethernet ip inject-punt"],
        ),
        (memif("path", json!(null)), vec!["lacks the key memif.path"]),
    ] {
        let error = strict(value.clone()).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{value}: {error} lacks {part}");
        }
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn values_of_the_wrong_type_are_refused_in_one_line() {
    for text in [
        "",
        "[]",
        "{",
        r#"{"type": 7}"#,
        r#"{"pci": "x"}"#,
        r#"{"pci": {"pci-address": 1}}"#,
        "\0",
        "null",
    ] {
        let error = WireDeviceInfo::from_json(text.as_bytes())
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("device-info is broken") && !error.contains('\n'),
            "{text}: {error}"
        );
    }
}

#[test]
// clause: DEVINFO-1.1.0 §3.1.6.3: the word for the reserved mode is inject-punt
fn the_mode_punt_is_read_as_the_mode_inject_punt() {
    let info = strict(json!({"type": "memif", "version": "1.1.0", "memif": {"role": "master", "path": "/run/m.sock", "mode": "punt"}})).unwrap();
    assert_eq!(
        serde_json::to_value(info).unwrap()["memif"]["mode"],
        "inject-punt"
    );
}

#[test]
// clause: DEVINFO-1.1.0 §3.1.2 version
fn the_version_is_raised_only_if_a_key_needs_it() {
    let version = |version: &str, pci: Value| {
        let info = strict(json!({"type": "pci", "version": version, "pci": pci})).unwrap();
        info.version().to_string()
    };
    let plain = json!({"pci-address": "0000:01:10.0"});
    let with_representor = json!({"pci-address": "0000:01:10.0", "representor-device": "eth3"});
    assert_eq!(version("1.0.0", plain.clone()), "1.0.0");
    assert_eq!(version("1.1.0", plain.clone()), "1.1.0");
    assert_eq!(version("1.2.3", plain), "1.2.3");
    assert_eq!(version("1.0.0", with_representor.clone()), "1.1.0");
    assert_eq!(version("1.2.0", with_representor), "1.2.0");
}

// clause: DEVINFO-1.1.0 §3.1.3.3
// clause: DEVINFO-1.1.0 §3.1.3.4
// clause: DEVINFO-1.1.0 §3.1.3.5
#[test]
fn keys_that_a_device_plugin_omits_are_filled_in_from_the_machine() {
    let capture = fixtures::unverified_connectx6(4);
    let facts = facts(&capture, "0000:3b:00.4");
    let given = json!({"type": "pci", "version": "1.0.0", "x": 1, "pci": {"pci-address": "0000:3B:00.4", "y": 2}});
    assert_eq!(
        completed(Some(given), &facts),
        json!({
            "type": "pci", "version": "1.1.0", "x": 1,
            "pci": {
                "pci-address": "0000:3b:00.4", "rdma-device": "mlx5_4", "pf-pci-address": "0000:3b:00.0",
                "representor-device": "enp59s0f0_2", "y": 2,
            },
        })
    );
}

// clause: DEVINFO-1.1.0 §3.1.3.2
// clause: DEVINFO-1.1.0 §3.1.3.4
#[test]
fn device_info_comes_from_the_machine_if_no_file_exists() {
    let igb = fixtures::igb_vfio();
    assert_eq!(
        completed(None, &facts(&igb, "0000:01:10.0")),
        json!({"type": "pci", "version": "1.1.0", "pci": {
            "pci-address": "0000:01:10.0", "vhost-net": "/dev/vhost-net", "pf-pci-address": "0000:01:00.0"}})
    );
    // A function with a kernel driver has its own interface and no exceptional path.
    assert_eq!(
        completed(None, &facts(&igb, "0000:01:10.2"))["pci"]["vhost-net"],
        Value::Null
    );
    // A physical function has no `pf-pci-address`.
    assert_eq!(
        completed(None, &facts(&igb, "0000:01:00.0"))["pci"],
        json!({"pci-address": "0000:01:00.0"})
    );
}

// clause: DEVINFO-1.1.0 §3.1.4.1
// clause: DEVINFO-1.1.0 §3.1.4.2
// clause: DEVINFO-1.1.0 §3.1.4.4
#[test]
// clause: DEVINFO-1.1.0 §3.1.4.3: the device path is absolute
fn a_vdpa_device_is_found_by_name_and_by_pci_address() {
    for id in ["vdpapci0", "0000:03:00.0"] {
        assert_eq!(
            completed(None, &facts(&fixtures::vp_vdpa_vhost(), id)),
            json!({"type": "vdpa", "version": "1.1.0", "vdpa": {
                "parent-device": "vdpapci0", "driver": "vhost", "path": "/dev/vhost-vdpa-1",
                "pci-address": "0000:03:00.0"}})
        );
    }
    assert_eq!(
        completed(None, &facts(&fixtures::vduse(), "vd0")),
        json!({"type": "vdpa", "version": "1.1.0", "vdpa": {
            "parent-device": "vd0", "driver": "virtio", "path": "/sys/bus/virtio/devices/virtio3"}})
    );
}

#[test]
fn a_subfunction_only_completes_existing_device_info() {
    let capture = fixtures::unverified_bluefield2();
    let facts = facts(&capture, "mlx5_core.sf.3");
    assert_eq!(complete(None, Some(&facts)).unwrap(), None);
    assert_eq!(facts.representor_device.as_deref(), Some("en3f0pf0sf89"));
    let given = json!({"type": "pci", "version": "1.0.0", "pci": {"pci-address": "0000:03:00.0"}});
    let pci = completed(Some(given), &facts)["pci"].clone();
    assert_eq!(pci["representor-device"], "en3f0pf0sf89");
    assert_eq!(pci["rdma-device"], "mlx5_3");
}

#[test]
fn device_info_that_contradicts_the_machine_is_refused() {
    let mlx = facts(&fixtures::unverified_connectx6(4), "0000:3b:00.4");
    let vdpa = facts(&fixtures::vp_vdpa_vhost(), "vdpapci0");
    let given = |key: &str, value: &str| {
        let mut info =
            json!({"type": "pci", "version": "1.1.0", "pci": {"pci-address": "0000:3b:00.4"}});
        info["pci"][key] = json!(value);
        info
    };
    let given_vdpa =
        |key: &str, value: &str| json!({"type": "vdpa", "version": "1.1.0", "vdpa": {key: value}});
    for (facts, info, key, found) in [
        (
            &mlx,
            given("pci-address", "0000:3b:00.5"),
            "pci.pci-address",
            "0000:3b:00.4",
        ),
        (
            &mlx,
            given("pf-pci-address", "0000:3b:00.1"),
            "pci.pf-pci-address",
            "0000:3b:00.0",
        ),
        (
            &mlx,
            given("rdma-device", "mlx5_4,mlx5_9"),
            "pci.rdma-device",
            "mlx5_4",
        ),
        (
            &mlx,
            given("representor-device", "eth9"),
            "pci.representor-device",
            "enp59s0f0_2",
        ),
        (
            &vdpa,
            given_vdpa("parent-device", "vdpa9"),
            "vdpa.parent-device",
            "vdpapci0",
        ),
        (
            &vdpa,
            given_vdpa("driver", "virtio"),
            "vdpa.driver",
            "vhost",
        ),
        (
            &vdpa,
            given_vdpa("path", "/dev/vhost-vdpa1"),
            "vdpa.path",
            "/dev/vhost-vdpa-1",
        ),
        (
            &vdpa,
            given_vdpa("pci-address", "0000:03:00.1"),
            "vdpa.pci-address",
            "0000:03:00.0",
        ),
    ] {
        let error = complete(Some(wire(info)), Some(facts))
            .unwrap_err()
            .to_string();
        for part in [facts.id.as_str(), key, found, "delete the stale file"] {
            assert!(error.contains(part), "{error} lacks {part}");
        }
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn unknown_facts_contradict_nothing() {
    // In RDMA's exclusive mode, the host does not see an RDMA device that is in a pod.
    let mut capture = fixtures::unverified_connectx6(4);
    capture.remove("devices/pci0000:3a/0000:3a:00.0/0000:3b:00.4/infiniband");
    let facts = facts(&capture, "0000:3b:00.4");
    let given = json!({"type": "pci", "version": "1.1.0", "pci": {"pci-address": "0000:3b:00.4", "rdma-device": "mlx5_7"}});
    assert_eq!(
        completed(Some(given), &facts)["pci"]["rdma-device"],
        "mlx5_7"
    );
}

#[test]
fn only_the_last_component_of_a_virtio_path_is_compared() {
    let facts = facts(&fixtures::vduse(), "vd0");
    let given = json!({"type": "vdpa", "version": "1.1.0", "vdpa": {"path": "/dev/sys/bus/virtio/devices/virtio3"}});
    assert_eq!(
        completed(Some(given), &facts)["vdpa"]["path"],
        "/dev/sys/bus/virtio/devices/virtio3"
    );
    let given = wire(
        json!({"type": "vdpa", "version": "1.1.0", "vdpa": {"path": "/sys/bus/virtio/devices/virtio4"}}),
    );
    assert!(complete(Some(given), Some(&facts)).is_err());
}

#[test]
fn without_facts_given_device_info_is_still_checked() {
    assert_eq!(complete(None, None).unwrap(), None);
    let given = wire(
        json!({"type": "vhost-user", "pci": null, "vhost-user": {"mode": "server", "path": "/run/x/v.sock"}}),
    );
    let info = complete(Some(given), None).unwrap().unwrap();
    assert_eq!(info.version(), SpecVersion::V1_0_0);
    assert!(complete(Some(WireDeviceInfo::default()), None).is_err());
}

#[test]
fn device_info_is_compared_with_the_requested_identifier() {
    let pci =
        wire(json!({"type": "pci", "version": "1.1.0", "pci": {"pci-address": "0000:AF:10.0"}}));
    assert_eq!(
        (pci.describes("0000:af:10.0"), pci.describes("0000:af:10.1")),
        (Some(true), Some(false))
    );
    assert_eq!(pci.describes("mlx5_core.sf.4"), None);
    let vdpa = wire(
        json!({"type": "vdpa", "version": "1.1.0", "vdpa": {"parent-device": "vd0", "pci-address": "0000:01:10.0"}}),
    );
    assert_eq!(
        (vdpa.describes("vd0"), vdpa.describes("0000:01:10.1")),
        (Some(true), Some(false))
    );
}

#[test]
// clause: DEVINFO-1.1.0 §3.1.5.1: the host creates the socket of a client in advance
// clause: DEVINFO-1.1.0 §3.1.6.1: the host creates the socket of a slave in advance
fn only_a_socket_that_the_host_creates_must_already_exist() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let _listener = std::os::unix::net::UnixListener::bind(at("there")).unwrap();
    std::fs::write(at("file"), "").unwrap();
    let vhost_user = |mode: &str, path: String| {
        strict(json!({"type": "vhost-user", "version": "1.1.0", "vhost-user": {"mode": mode, "path": path}})).unwrap()
    };
    let memif = |role: &str, path: String| {
        strict(json!({"type": "memif", "version": "1.1.0", "memif": {"role": role, "path": path, "mode": "ip"}})).unwrap()
    };
    for (make, by_host, by_application) in [
        (
            &vhost_user as &dyn Fn(&str, String) -> DeviceInfo,
            "client",
            "server",
        ),
        (&memif, "slave", "master"),
    ] {
        make(by_host, at("there")).check_socket().unwrap();
        for (path, remedy) in [
            (at("absent"), "start the host program"),
            (at("file"), "is not a socket"),
        ] {
            let error = make(by_host, path.clone())
                .check_socket()
                .unwrap_err()
                .to_string();
            assert!(error.contains(&path) && error.contains(remedy), "{error}");
        }
        assert_eq!(
            make(by_application, at("absent")).check_socket().unwrap(),
            ()
        );
        let error = make(by_application, at("no/such"))
            .check_socket()
            .unwrap_err()
            .to_string();
        assert!(error.contains("create its directory"), "{error}");
    }
    let pci =
        strict(json!({"type": "pci", "version": "1.1.0", "pci": {"pci-address": "0000:01:10.0"}}))
            .unwrap();
    pci.check_socket().unwrap();
}
