//! The right device, proven, and given back: with the sysfs trees of fixtures, and delegates that
//! do what real ones do, right or wrong.
//!
//! The trees are files, so nothing that stands in them can be moved into a pod: devices that a
//! program drives are attached as in earnest, and for those of the kernel it is shown that nothing
//! else passes for them.

use std::fs;
use std::path::{Path, PathBuf};

use device_info::{Capture, fixtures};
use serde_json::{Value, json};

use crate::lab::{Lab, Netns, POD, real_plugins};

const RESOURCE: &str = "intel.com/sriov";
/// The VF that [`fixtures::igb_vfio`] has on vfio-pci; the other is on igbvf.
const VFIO: &str = "0000:01:10.0";
const KERNEL: &str = "0000:01:10.2";

/// What sriov-cni answers for a VF on vfio-pci: an interface that nobody sees.
const ANSWER: &str = r#"
    file=$(jq -r '.runtimeConfig.CNIDeviceInfoFile // empty' <<<"$stdin")
    if [ $CNI_COMMAND = ADD ]; then
        [ -n "$file" ] && cp "$file" $LAB/log/file
        [ -x $LAB/vf.sh ] && . $LAB/vf.sh
        echo '{"cniVersion":"1.0.0","interfaces":[{"name":"net1","mac":"02:00:00:00:10:00","sandbox":"/x"}]}'
    fi
    exit 0"#;

/// A node with the hardware `capture`, and a network `vf` of its VFs.
fn lab_with(capture: &Capture) -> Lab {
    let mut lab = Lab::new();
    capture.build(&lab.path("node")).unwrap();
    lab.configure("sysfsRoot", json!(lab.path("node/sys")));
    lab.configure("kubeletCheckpoint", json!(lab.path("checkpoint")));
    lab.recorder("vf", "-", ANSWER);
    network(&lab, "vf", json!({}));
    lab
}

/// The definition `name` of VFs, with more keys of its plugin.
fn network(lab: &Lab, name: &str, more: Value) {
    let mut config = json!({
        "cniVersion": "1.0.0", "type": "vf",
        "capabilities": { "deviceID": true, "CNIDeviceInfoFile": true, "mac": true },
    });
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    let manifest = json!({
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": { "name": name, "namespace": "demo",
                      "annotations": { "k8s.v1.cni.cncf.io/resourceName": RESOURCE } },
        "spec": { "config": config.to_string() },
    });
    lab.write(
        &format!("cluster/nad-demo-{name}.json"),
        &manifest.to_string(),
    );
}

/// The pod selects `networks` and has `devices`.
fn pod(lab: &Lab, name: &str, networks: &Value, devices: &[&str]) {
    let networks = networks
        .as_str()
        .map_or_else(|| networks.to_string(), str::to_owned);
    let devices = json!({ RESOURCE: devices }).to_string();
    lab.pod_with(
        name,
        json!({ "k8s.v1.cni.cncf.io/networks": networks, "jackfield.io/devices": devices }),
    );
}

/// What the delegate does besides on ADD.
fn besides(lab: &Lab, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = lab.write("vf.sh", script);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn device(lab: &Lab, id: &str) -> std::path::PathBuf {
    lab.path("node/sys/bus/pci/devices").join(id)
}

fn status_of(lab: &Lab, interface: usize) -> Value {
    lab.status()[interface]["device-info"].clone()
}

/// Nothing of the hardware's networks was ever run.
fn assert_nothing_ran(lab: &Lab) {
    assert_eq!(lab.log("calls"), [""; 0]);
    lab.assert_nothing_left();
}

// clause: DEVINFO-1.1.0 §4.2.1 directory
// clause: DEVINFO-1.1.0 §4.2.1 delete
// clause: DEVINFO-1.1.0 §5.1.1: the full path
// clause: DEVINFO-1.1.0 §5.1.2 runtimeConfig
// clause: DEVINFO-1.1.0 §6.1: the map in network-status
// clause: NPWG-1.3 §5.3.7: what came of the attachment
#[test]
fn a_device_of_a_program_is_told_shown_and_given_back() {
    let lab = lab_with(&fixtures::igb_vfio());
    pod(&lab, POD, &json!("vf"), &[VFIO]);
    lab.add();
    let told = &lab.recorded("vf", "ADD")[0];
    let file = lab.path(&format!("devinfo/cni/demo-vf-{}_net1", lab.container()));
    assert_eq!([&told["deviceID"], &told["pciBusID"]], [VFIO, VFIO]);
    assert_eq!(told["runtimeConfig"]["deviceID"], VFIO);
    assert_eq!(told["runtimeConfig"]["CNIDeviceInfoFile"], json!(file));
    let expected = json!({ "type": "pci", "version": "1.1.0", "pci": {
        "pci-address": VFIO, "vhost-net": "/dev/vhost-net", "pf-pci-address": "0000:01:00.0" } });
    let seen: Value = serde_json::from_str(&lab.log("file").concat()).unwrap();
    assert_eq!(seen, expected, "the plugins find the file");
    assert_eq!(status_of(&lab, 1), expected);
    lab.check();
    lab.del();
    for verb in ["CHECK", "DEL"] {
        assert_eq!(lab.recorded("vf", verb)[0]["deviceID"], VFIO, "{verb}");
    }
    lab.assert_nothing_left();
}

#[test]
fn devices_are_paired_in_numeric_order_and_one_that_is_named_goes_first() {
    let mut lab = lab_with(&fixtures::igb_vfio());
    lab.configure("verify", json!("off"));
    for (networks, expected) in [
        (json!("vf,vf"), [VFIO, KERNEL]),
        (
            json!([{"name": "vf"}, {"name": "vf", "deviceID": VFIO}]),
            [KERNEL, VFIO],
        ),
    ] {
        pod(&lab, POD, &networks, &[KERNEL, VFIO]);
        lab.add();
        let told = lab.recorded("vf", "ADD");
        let last: Vec<&Value> = told
            .iter()
            .rev()
            .take(2)
            .map(|it| &it["deviceID"])
            .collect();
        assert_eq!([last[1], last[0]], expected);
        lab.del();
        lab.assert_nothing_left();
    }
}

#[test]
fn too_few_devices_fail_before_anything_runs() {
    let lab = lab_with(&fixtures::igb_vfio());
    pod(&lab, POD, &json!("vf,vf"), &[VFIO]);
    let words = [
        "demo/vf (net2)",
        "resource intel.com/sriov: 2",
        "the pod has 1",
        VFIO,
    ];
    lab.call("ADD").fails(104, &words);
    assert_nothing_ran(&lab);
    let line = lab.command("explain", &[]).run();
    assert!(
        line.exit == 1 && line.stdout.contains("2 of the pod's networks"),
        "{line}"
    );
}

#[test]
fn a_named_device_that_is_not_the_pods_fails_before_anything_runs() {
    let lab = lab_with(&fixtures::igb_vfio());
    pod(
        &lab,
        POD,
        &json!([{"name": "vf", "deviceID": KERNEL}]),
        &[VFIO],
    );
    lab.call("ADD")
        .fails(104, &["demo/vf (net1)", KERNEL, "not a device of this pod"]);
    assert_nothing_ran(&lab);
}

/// A network of VFs whose plugin is called as sriov-cni is.
fn sriov_lab(capture: &Capture, more: Value, device: &str) -> Lab {
    let lab = lab_with(capture);
    lab.recorder("sriov", "-", ANSWER);
    let mut keys = json!({ "type": "sriov" });
    for (key, value) in more.as_object().unwrap() {
        keys[key] = value.clone();
    }
    network(&lab, "vf", keys);
    pod(&lab, POD, &json!("vf"), &[device]);
    lab
}

/// ADD fails before anything runs, and `explain` says the same.
fn assert_foreseen(lab: &Lab, code: u64, words: &[&str]) {
    lab.call("ADD").fails(code, words);
    let said = lab.call("ADD").json()["msg"].as_str().unwrap().to_owned();
    let explained = lab.command("explain", &[]).run();
    assert_eq!(explained.exit, 1, "{explained}");
    assert!(explained.stdout.contains(&said), "{said}\n{explained}");
    assert_nothing_ran(lab);
}

#[test]
fn a_value_that_sriov_cni_would_take_for_another_fails_before_anything_runs() {
    for (key, value) in [
        ("spoofchk", json!("yes")),
        ("trust", json!("enabled")),
        ("link_state", json!("up")),
        ("vlan", json!(4095)),
        ("vlanQoS", json!(3)),
        ("max_tx_rate", json!(-1)),
        ("mac", json!("02-00-00-00-00-01")),
    ] {
        let keys = json!({ key: value });
        let lab = sriov_lab(&fixtures::igb_vfio(), keys, VFIO);
        let said = format!("plugin sriov: key {key} is {value}: ");
        assert_foreseen(&lab, 102, &["demo/vf (net1)", &said]);
    }
}

#[test]
fn a_physical_function_where_a_virtual_one_is_meant_fails_before_anything_runs() {
    let lab = sriov_lab(&fixtures::igb(), json!({}), "0000:01:00.0");
    let words = [
        "0000:01:00.0 is a physical function",
        "plugin sriov",
        "selectors",
    ];
    assert_foreseen(&lab, 104, &words);
}

#[test]
fn a_vf_without_its_interface_fails_before_anything_runs() {
    let lab = sriov_lab(&fixtures::igb(), json!({}), KERNEL);
    fs::remove_dir_all(device(&lab, KERNEL).join("net")).unwrap();
    assert_foreseen(
        &lab,
        104,
        &[
            KERNEL,
            "no network namespace",
            "write its PCI address to /sys/bus/pci/drivers/igbvf/unbind, then to",
        ],
    );
}

#[test]
fn a_refusal_of_sriov_cni_is_said_once_and_with_what_helps() {
    let lab = sriov_lab(
        &fixtures::igb_vfio(),
        json!({ "link_state": "enable" }),
        VFIO,
    );
    let words = "failed to set vf 0 link state to 1: operation not supported";
    let refusal = json!({ "code": 999, "msg": format!("failed to configure VF {words:?}") });
    lab.recorder("sriov", "-", &format!("echo '{refusal}'; exit 1"));
    let add = lab.call("ADD").fails(100, &["drop link_state", "code 999"]);
    let del = lab.call("DEL").fails(106, &["drop link_state", "code 999"]);
    for line in [add, del] {
        assert_eq!(line.matches("link state to 1").count(), 1, "{line}");
        assert_eq!(line.matches("code 999").count(), 1, "{line}");
    }
    lab.recorder("sriov", "-", ANSWER);
    lab.del();
    lab.assert_nothing_left();
}

/// What happens to a device, by its directory in sysfs.
type Change<'a> = &'a dyn Fn(&Path);

#[test]
fn a_device_unbound_gone_or_on_another_driver_fails_before_anything_runs() {
    let unbound = |device: &Path| fs::remove_file(device.join("driver")).unwrap();
    let gone = |device: &Path| fs::remove_file(device).unwrap();
    let other = |device: &Path| fs::write(device.join("driver_override"), "igbvf").unwrap();
    let changes: [(&str, Change<'_>); 3] = [
        ("bound to no driver", &unbound),
        ("is missing", &gone),
        (
            "bound to driver vfio-pci, but its driver_override is igbvf",
            &other,
        ),
    ];
    for (words, change) in changes {
        let lab = lab_with(&fixtures::igb_vfio());
        pod(&lab, POD, &json!("vf"), &[VFIO]);
        change(&device(&lab, VFIO));
        lab.call("ADD")
            .fails(104, &["demo/vf (net1)", VFIO, RESOURCE, words]);
        assert_nothing_ran(&lab);
    }
}

#[test]
fn an_interface_that_is_not_the_device_is_refused_and_taken_back() {
    let mut lab = lab_with(&fixtures::igb());
    pod(&lab, POD, &json!("vf"), &[KERNEL]);
    besides(&lab, "$REAL/ptp <<<\"$stdin\"; exit");
    let delete = "[ $CNI_COMMAND = DEL ] && { $REAL/ptp <<<\"$stdin\"; exit; }\n";
    lab.recorder("vf", "-", &format!("{delete}{ANSWER}"));
    network(
        &lab,
        "vf",
        json!({ "ipam": lab.host_local(&["10.40.0.0/24"], false) }),
    );
    lab.set_out();
    let words = [
        "demo/vf (net1)",
        "none (a link of kind veth)",
        "not the allocated",
        KERNEL,
    ];
    lab.call("ADD").fails(105, &words);
    lab.assert_nothing_left();
}

#[test]
fn a_device_of_the_kernel_without_any_interface_is_refused() {
    let lab = lab_with(&fixtures::igb());
    pod(&lab, POD, &json!("vf"), &[KERNEL]);
    lab.call("ADD")
        .fails(105, &["demo/vf (net1)", "it is not in the pod"]);
    assert!(lab.log("calls").contains(&"DEL net1 vf".to_owned()));
    lab.assert_nothing_left();
}

#[test]
fn a_device_plugins_file_that_is_not_so_fails_before_anything_runs() {
    let stale = r#"{"type":"pci","version":"1.0.0","pci":{"pci-address":"0000:01:10.0","pf-pci-address":"0000:09:00.0"}}"#;
    let other = r#"{"type":"pci","version":"1.0.0","pci":{"pci-address":"0000:01:10.2"}}"#;
    for (text, words) in [
        (stale, ["pf-pci-address", "0000:09:00.0"]),
        (other, ["a device other than", VFIO]),
        ("{", ["-device.json", "broken"]),
    ] {
        let mut lab = lab_with(&fixtures::igb_vfio());
        pod(&lab, POD, &json!("vf"), &[VFIO]);
        lab.write("devinfo/dp/intel.com-sriov-0000:01:10.0-device.json", text);
        lab.set_out();
        lab.call("ADD")
            .fails(105, &["demo/vf (net1)", words[0], words[1]]);
        assert_nothing_ran(&lab);
    }
}

// clause: DEVINFO-1.1.0 §4.2.1 copy: the device plugin's file
// clause: DEVINFO-1.1.0 §4: one JSON map
#[test]
fn what_the_device_plugin_wrote_is_completed_and_kept() {
    let mut lab = lab_with(&fixtures::igb_vfio());
    pod(&lab, POD, &json!("vf"), &[VFIO]);
    let text = r#"{"type":"pci","version":"1.0.0","pci":{"pci-address":"0000:01:10.0","com.example.note":"kept"}}"#;
    lab.write("devinfo/dp/intel.com-sriov-0000:01:10.0-device.json", text);
    lab.set_out();
    lab.add();
    let info = status_of(&lab, 1);
    assert_eq!(info["version"], "1.0.0");
    assert_eq!(info["pci"]["com.example.note"], "kept");
    assert_eq!(info["pci"]["pf-pci-address"], "0000:01:00.0");
    lab.del();
    lab.assert_nothing_left();
}

// clause: DEVINFO-1.1.0 §6.1.1: what the plugins left in the file
#[test]
fn what_a_delegate_writes_is_told_and_refused_when_it_is_of_another_device() {
    let lab = lab_with(&fixtures::igb_vfio());
    pod(&lab, POD, &json!("vf"), &[VFIO]);
    besides(
        &lab,
        r#"jq -c '.pci["com.example.port"]="7"' "$LAB/log/file" >"$file""#,
    );
    lab.add();
    assert_eq!(status_of(&lab, 1)["pci"]["com.example.port"], "7");
    lab.del();
    lab.assert_nothing_left();
    besides(
        &lab,
        r#"jq -c '.pci["pci-address"]="0000:01:10.2"' "$LAB/log/file" >"$file""#,
    );
    lab.call("ADD")
        .fails(105, &["demo/vf (net1)", "pci.pci-address", KERNEL, VFIO]);
    lab.assert_nothing_left();
}

/// A network without a resource, whose plugin writes this vhost-user or memif information.
fn socket_lab(info: &str) -> Lab {
    let lab = Lab::new();
    lab.recorder(
        "vf",
        "-",
        &ANSWER.replace("cp \"$file\" $LAB/log/file", "true"),
    );
    besides(
        &lab,
        &format!("sed \"s,LAB,$LAB,\" >\"$file\" <<'END'\n{info}\nEND"),
    );
    let config = json!({ "cniVersion": "1.0.0", "type": "vf",
                         "capabilities": { "CNIDeviceInfoFile": true } });
    lab.definition("demo/user", &config);
    lab.selects("user");
    lab
}

#[test]
fn sockets_are_told_without_any_device_and_must_be_there_by_role() {
    let vhost = |mode: &str| {
        format!(
            r#"{{"type":"vhost-user","version":"1.1.0","vhost-user":{{"mode":"{mode}","path":"LABsockets/one"}}}}"#
        )
    };
    let memif = |role: &str| {
        format!(
            r#"{{"type":"memif","version":"1.1.0","memif":{{"role":"{role}","path":"LABsockets/one","mode":"ethernet"}}}}"#
        )
    };
    for (info, by_host) in [
        (vhost("client"), true),
        (vhost("server"), false),
        (memif("slave"), true),
        (memif("master"), false),
    ] {
        let lab = socket_lab(&info);
        let missing = if by_host {
            "cannot find it"
        } else {
            "directory"
        };
        lab.call("ADD")
            .fails(105, &["demo/user (net1)", "sockets/one", missing]);
        lab.assert_nothing_left();
        fs::create_dir(lab.path("sockets")).unwrap();
        let socket = by_host
            .then(|| std::os::unix::net::UnixListener::bind(lab.path("sockets/one")).unwrap());
        lab.add();
        let kind = status_of(&lab, 1)["type"].clone();
        assert!(kind == "vhost-user" || kind == "memif", "{kind}");
        lab.check();
        drop(socket);
        lab.del();
        lab.assert_nothing_left();
    }
}

#[test]
fn a_socket_that_the_result_alone_names_has_a_directory() {
    let lab = Lab::new();
    let answer = r#"
        answer='{"cniVersion":"1.1.0","interfaces":[{"name":"net1","sandbox":"/x","socketPath":"'
        [ $CNI_COMMAND = ADD ] && echo "$answer${LAB}sockets/one\"}]}"
        exit 0"#;
    lab.recorder("user", "-", answer);
    lab.definition(
        "demo/user",
        &json!({ "cniVersion": "1.1.0", "type": "user" }),
    );
    lab.selects("user");
    lab.call("ADD")
        .fails(105, &["demo/user (net1)", "sockets/one", "directory"]);
    lab.assert_nothing_left();
    fs::create_dir(lab.path("sockets")).unwrap();
    lab.add();
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn a_path_that_a_definition_brings_along_never_reaches_a_plugin() {
    let lab = lab_with(&fixtures::igb_vfio());
    let own = json!({ "CNIDeviceInfoFile": "/etc/passwd",
                      "runtimeConfig": { "CNIDeviceInfoFile": "/etc/passwd" } });
    network(&lab, "vf", own);
    pod(&lab, POD, &json!("vf"), &[VFIO]);
    lab.add();
    let told = lab.recorded("vf", "ADD")[0].to_string();
    assert!(!told.contains("/etc/passwd"), "{told}");
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn a_file_goes_also_after_a_kill_in_the_middle() {
    let lab = lab_with(&fixtures::igb_vfio());
    pod(&lab, POD, &json!("vf"), &[VFIO]);
    besides(&lab, "kill -9 $PPID; sleep 0.1");
    lab.call("ADD");
    let left = lab.leftovers();
    assert_eq!(left.with("devinfo").len(), 1, "{left:?}");
    lab.del();
    lab.assert_nothing_left();
}

/// A call for another pod, with a netns of its own.
fn other(lab: &Lab, verb: &str, name: &str, netns: &Netns) -> crate::lab::Outcome {
    let args = format!(
        "K8S_POD_NAMESPACE=demo;K8S_POD_NAME={name};K8S_POD_UID=uid-{name};\
         K8S_POD_INFRA_CONTAINER_ID={}-{name}",
        lab.container()
    );
    lab.plugin(verb)
        .env("CNI_CONTAINERID", &format!("{}-{name}", lab.container()))
        .env("CNI_NETNS", &netns.path().display().to_string())
        .env("CNI_ARGS", &args)
        .run()
}

#[test]
fn a_device_in_use_is_refused_by_its_holders_name_until_that_one_is_gone() {
    let lab = lab_with(&fixtures::igb_vfio());
    pod(&lab, POD, &json!("vf"), &[VFIO]);
    pod(&lab, "demo/late", &json!("vf"), &[VFIO]);
    let netns = Netns::new(&format!("{}-2", lab.container()));
    lab.add();
    let before = lab.log("calls").len();
    let explained = |pod: &str| {
        let conf = lab.write("explained.conf", &lab.conf().to_string());
        let conf = conf.display().to_string();
        let plugins = real_plugins().display().to_string();
        let more = ["--pod", pod, "--cni-path", &plugins];
        lab.cli(&[&["explain", "--conf", &conf][..], &more].concat())
            .run()
    };
    let outcome = explained("demo/late");
    assert_eq!(outcome.exit, 1, "{outcome}");
    assert!(
        outcome.stdout.contains("in use by pod demo/web"),
        "{outcome}"
    );
    let outcome = explained(POD);
    assert_eq!(outcome.exit, 0, "its own is not in its way: {outcome}");
    let words = [
        "demo/vf (net1)",
        VFIO,
        "in use by pod demo/web",
        &lab.container(),
        "net1",
    ];
    other(&lab, "ADD", "late", &netns).fails(104, &words);
    assert_eq!(lab.log("calls").len(), before, "nothing ran");
    lab.del();
    other(&lab, "ADD", "late", &netns).success();
    other(&lab, "DEL", "late", &netns);
    lab.assert_nothing_left();
}

/// kubelet's checkpoint: which pod has which device.
fn checkpoint(lab: &Lab, pods: &[(&str, &str)]) {
    let entries: Vec<Value> = pods
        .iter()
        .map(|(uid, id)| {
            json!({ "PodUID": uid, "ContainerName": "c", "ResourceName": RESOURCE,
                    "DeviceIDs": { "0": [id] }, "AllocResp": "" })
        })
        .collect();
    let data = json!({ "PodDeviceEntries": entries, "RegisteredDevices": { RESOURCE: [VFIO] } });
    lab.write(
        "checkpoint",
        &json!({ "Data": data, "Checksum": 1 }).to_string(),
    );
}

#[test]
fn a_late_del_finds_nothing_left_once_kubelet_has_given_the_device_to_another_pod() {
    let lab = lab_with(&fixtures::igb_vfio());
    for name in ["demo/old", "demo/new"] {
        lab.pod_with(name, json!({ "k8s.v1.cni.cncf.io/networks": "vf" }));
    }
    let netns = ["a", "b"].map(|end| Netns::new(&format!("{}-{end}", lab.container())));
    checkpoint(&lab, &[("uid-old", VFIO)]);
    other(&lab, "ADD", "old", &netns[0]).success();
    // Both are in the checkpoint: no proof that the old one is gone.
    checkpoint(&lab, &[("uid-old", VFIO), ("uid-new", VFIO)]);
    other(&lab, "ADD", "new", &netns[1]).fails(104, &["in use by pod demo/old"]);
    checkpoint(&lab, &[("uid-new", VFIO)]);
    other(&lab, "ADD", "new", &netns[1]).success();
    let calls = lab.log("calls");
    assert_eq!(calls, ["ADD net1 vf", "DEL net1 vf", "ADD net1 vf"]);
    other(&lab, "DEL", "old", &netns[0]);
    assert_eq!(lab.log("calls").len(), 3, "the late DEL touches no device");
    other(&lab, "DEL", "new", &netns[1]);
    lab.assert_nothing_left();
}

#[test]
fn a_device_comes_from_the_checkpoint_by_the_pods_uid_and_a_broken_one_is_named() {
    let lab = lab_with(&fixtures::igb_vfio());
    lab.pod_with("demo/new", json!({ "k8s.v1.cni.cncf.io/networks": "vf" }));
    let netns = Netns::new(&format!("{}-a", lab.container()));
    let file = lab.path("checkpoint").display().to_string();
    let add = || other(&lab, "ADD", "new", &netns);
    add().fails(104, &["demo/vf (net1)", &file, "does not exist"]);
    lab.write("checkpoint", "{\"Data\":{\"PodDev");
    add().fails(104, &["demo/vf (net1)", &file, "not valid JSON"]);
    lab.write("checkpoint", "{\"Data\":{\"v3\":{}},\"Checksum\":1}");
    add().fails(104, &["demo/vf (net1)", &file, "unknown version"]);
    checkpoint(&lab, &[("uid-deleted", VFIO)]);
    add().fails(104, &["demo/vf (net1)", RESOURCE, "the pod has none"]);
    assert_nothing_ran(&lab);
    checkpoint(&lab, &[("uid-deleted", KERNEL), ("uid-new", VFIO)]);
    add().success();
    assert_eq!(lab.recorded("vf", "ADD")[0]["deviceID"], VFIO);
    other(&lab, "DEL", "new", &netns);
    lab.assert_nothing_left();
}

#[test]
fn a_resource_that_is_no_device_attaches_without() {
    let lab = lab_with(&fixtures::igb());
    let data = json!({ "PodDeviceEntries": [], "RegisteredDevices": { "other.com/vf": [] } });
    lab.write(
        "checkpoint",
        &json!({ "Data": data, "Checksum": 1 }).to_string(),
    );
    let script = "exec $REAL/ptp <<<\"$stdin\"";
    lab.recorder("vf", "-", script);
    network(
        &lab,
        "vf",
        json!({ "ipam": lab.host_local(&["10.41.0.0/24"], false) }),
    );
    lab.selects("vf");
    lab.add();
    assert!(lab.recorded("vf", "ADD")[0].get("deviceID").is_none());
    assert_eq!(lab.pod.links(), ["eth0", "net1"]);
    lab.del();
    lab.assert_nothing_left();
}

/// A network with the MAC `20:05` in it, which a pod of the same namespace selects.
fn asks_for_mac(lab: &Lab, pod: &str, network: &str, config: &Value) {
    lab.definition(network, config);
    let (namespace, name) = network.split_once('/').unwrap();
    let networks = json!([{ "name": name, "namespace": namespace, "mac": "02:00:00:00:20:05" }]);
    let annotations = json!({ "k8s.v1.cni.cncf.io/networks": networks.to_string() });
    lab.pod_with(pod, annotations);
}

fn bridge_without_addresses(name: &str, vlan: u16) -> Value {
    json!({ "cniVersion": "1.0.0", "type": "bridge", "bridge": name, "vlan": vlan,
            "capabilities": { "mac": true } })
}

fn macvlan_without_addresses(lab: &Lab) -> Value {
    let mut config = lab.macvlan();
    config.as_object_mut().unwrap().remove("ipam");
    config
}

/// A lab with the bridges `br-a` and `br-b`.
fn lab_with_bridges() -> Lab {
    let mut lab = Lab::new();
    for name in ["br-a", "br-b"] {
        lab.node.ip(&format!("link add {name} type bridge"));
    }
    lab.set_out();
    lab
}

/// Makes the lab's record and its link those of the previous release, and returns the link.
fn as_of_the_previous_release(lab: &Lab) -> PathBuf {
    let sandboxes = fs::read_dir(lab.path("journal/sandboxes")).unwrap();
    let record = sandboxes.map(|entry| entry.unwrap().path()).next().unwrap();
    let text = fs::read_to_string(&record).unwrap();
    let (header, steps) = text.split_once('\n').unwrap();
    let mut header: Value = serde_json::from_str(&header[18..]).unwrap();
    for attachment in header["attachments"].as_array_mut().unwrap() {
        attachment.as_object_mut().unwrap().remove("segment");
    }
    let header = header.to_string();
    let sum = crc32fast::hash(header.as_bytes());
    let text = format!("{:08x} {sum:08x} {header}\n{steps}", header.len());
    fs::write(&record, text).unwrap();
    let links = fs::read_dir(lab.path("journal/exclusive")).unwrap();
    let link = links.map(|entry| entry.unwrap().path()).next().unwrap();
    let previous = link.with_file_name("mac-02:00:00:00:20:05");
    assert!(link.to_str().unwrap().contains('@'), "{}", link.display());
    fs::rename(link, &previous).unwrap();
    previous
}

const MAC: &str = "MAC 02:00:00:00:20:05";

#[test]
fn a_mac_is_one_pods_on_its_bridge_and_free_on_others() {
    let lab = lab_with_bridges();
    asks_for_mac(
        &lab,
        "demo/web",
        "demo/net",
        &bridge_without_addresses("br-a", 0),
    );
    asks_for_mac(
        &lab,
        "demo/twin",
        "demo/same",
        &bridge_without_addresses("br-a", 0),
    );
    asks_for_mac(
        &lab,
        "alien/twin",
        "alien/net",
        &bridge_without_addresses("br-a", 0),
    );
    asks_for_mac(
        &lab,
        "alien/far",
        "alien/far",
        &bridge_without_addresses("br-b", 0),
    );
    let netns = Netns::new(&format!("{}-2", lab.container()));
    let call = |verb: &str, namespace: &str, name: &str| {
        let args = format!("K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name}");
        lab.plugin(verb)
            .env("CNI_CONTAINERID", &format!("{}-{name}", lab.container()))
            .env("CNI_NETNS", &netns.path().display().to_string())
            .env("CNI_ARGS", &args)
            .run()
    };
    lab.add();
    let words = [
        "demo/same (net1)",
        MAC,
        "pod demo/web",
        "demo/net (net1)",
        "bridge br-a",
    ];
    call("ADD", "demo", "twin").fails(101, &words);
    let message = call("ADD", "alien", "twin").fails(101, &["alien/net (net1)", MAC]);
    for secret in ["demo", "web", &lab.container()] {
        assert!(!message.contains(secret), "{message}");
    }
    assert_eq!(netns.links(), [""; 0]);
    let conf = lab.write("doctor.conf", &lab.conf().to_string());
    let shown = lab
        .cli(&["doctor", "--conf", conf.to_str().unwrap()])
        .run()
        .stdout;
    assert!(shown.contains(MAC) && shown.contains("demo/web"), "{shown}");
    call("ADD", "alien", "far").success();
    assert_eq!(call("DEL", "alien", "far").exit, 0);
    lab.del();
    call("ADD", "alien", "twin").success();
    assert_eq!(call("DEL", "alien", "twin").exit, 0);
    lab.assert_nothing_left();
}

/// Its records name no segment, and its links bear the address alone.
#[test]
fn a_pod_of_the_previous_release_keeps_its_mac_on_its_network_until_its_del() {
    let lab = lab_with_bridges();
    asks_for_mac(
        &lab,
        "demo/web",
        "demo/net",
        &macvlan_without_addresses(&lab),
    );
    asks_for_mac(
        &lab,
        "demo/twin",
        "demo/same",
        &macvlan_without_addresses(&lab),
    );
    asks_for_mac(
        &lab,
        "demo/far",
        "demo/far",
        &bridge_without_addresses("br-b", 0),
    );
    let netns = Netns::new(&format!("{}-2", lab.container()));
    lab.add();
    let record = as_of_the_previous_release(&lab);
    other(&lab, "ADD", "twin", &netns).fails(101, &[MAC, "pod demo/web", "demo/net (net1)"]);
    other(&lab, "ADD", "far", &netns).success();
    assert_eq!(other(&lab, "DEL", "far", &netns).exit, 0);
    lab.del();
    assert!(fs::symlink_metadata(record).is_err(), "the DEL released it");
    other(&lab, "ADD", "twin", &netns).success();
    assert_eq!(other(&lab, "DEL", "twin", &netns).exit, 0);
    lab.assert_nothing_left();
}

#[test]
fn vfio_and_vhost_are_bound_as_they_were_or_check_says_so() {
    let lab = lab_with(&fixtures::igb_vfio());
    pod(&lab, POD, &json!("vf"), &[VFIO]);
    lab.add();
    lab.check();
    let driver = device(&lab, VFIO).join("driver");
    let target = fs::read_link(&driver).unwrap();
    fs::remove_file(&driver).unwrap();
    lab.call("CHECK")
        .fails(105, &["demo/vf (net1)", VFIO, "unbound or missing"]);
    std::os::unix::fs::symlink(target.with_file_name("igbvf"), &driver).unwrap();
    lab.call("CHECK")
        .fails(105, &["demo/vf (net1)", VFIO, "igbvf", "vfio-pci"]);
    fs::remove_file(&driver).unwrap();
    std::os::unix::fs::symlink(target, &driver).unwrap();
    fs::remove_file(lab.path("node/dev/vfio/11")).unwrap();
    lab.call("CHECK")
        .fails(105, &["demo/vf (net1)", VFIO, "no character device"]);
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn explain_shows_the_device_and_runs_nothing() {
    let lab = lab_with(&fixtures::igb_vfio());
    pod(&lab, POD, &json!("vf"), &[VFIO]);
    let shown = lab.command("explain", &["-o", "json"]).run().success();
    assert_eq!(shown["attachments"][1]["device"], VFIO);
    let text = lab.command("explain", &[]).run().stdout;
    assert!(
        text.contains("device  0000:01:10.0 of intel.com/sriov"),
        "{text}"
    );
    assert_nothing_ran(&lab);
}
