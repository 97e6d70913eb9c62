//! A device goes back as it came: what a delegate leaves otherwise is put right by DEL, by an ADD
//! that fails, and by whoever settles a late one; and what the node cannot spare is not given away.
//!
//! The interface of the VF is a real one; sysfs is a tree of files, which has it by another of its
//! names, so that it is found there whatever a delegate calls it. What physical functions say of
//! VFs no device of this machine has: that part is shown in the virtual machine.

use std::fs;
use std::path::{Path, PathBuf};

use device_info::fixtures;
use serde_json::{Value, json};

use crate::lab::{Lab, Netns, POD};

const RESOURCE: &str = "intel.com/sriov";
const VF: &str = "0000:01:10.0";
const PF: &str = "0000:01:00.0";
/// The interface, and by what name the tree has it.
const NAME: &str = "vf0";
const IN_SYSFS: &str = "vf0insysfs";

/// What a VF's plugin does when its namespace vanished: nothing is as it was, and DEL is content.
const LEAVES: &str = r#"
    if [ $CNI_COMMAND = ADD ]; then
        ip link set vf0 up
        ip link set vf0 address 02:00:00:00:55:01
        ip link set vf0 down
        ip link set vf0 mtu 1400 name left
        ip link set left up
        [ -e $LAB/fail ] && { echo '{"cniVersion":"1.0.0","code":999,"msg":"no"}'; exit 1; }
        echo '{"cniVersion":"1.0.0"}'
    fi
    [ -e $LAB/vf.sh ] && . $LAB/vf.sh
    exit 0"#;

/// A node whose VF has an interface of the kernel's, and a pod that gets it.
fn lab() -> Lab {
    let mut lab = Lab::new();
    fixtures::igb().build(&lab.path("node")).unwrap();
    lab.configure("sysfsRoot", json!(lab.path("node/sys")));
    // What stands for the VF's interface is no VF.
    lab.configure("verify", json!("off"));
    lab.node
        .ip(&format!("link add {NAME} type veth peer name peer"));
    lab.node
        .ip(&format!("link property add dev {NAME} altname {IN_SYSFS}"));
    lab.node.ip(&format!(
        "link set {NAME} mtu 1500 address 02:00:00:00:10:00"
    ));
    let net = device(&lab, VF).join("net");
    fs::rename(net.join("eth2"), net.join(IN_SYSFS)).unwrap();
    lab.set_out();
    lab.recorder("vf", "-", LEAVES);
    network(&lab, json!({ "type": "vf" }));
    let annotations = json!({
        "k8s.v1.cni.cncf.io/networks": "vf",
        "jackfield.io/devices": json!({ RESOURCE: [VF] }).to_string(),
    });
    lab.pod_with(POD, annotations);
    lab
}

fn network(lab: &Lab, plugin: Value) {
    let config = json!({ "cniVersion": "1.0.0", "plugins": [plugin] });
    let manifest = json!({
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": { "name": "vf", "namespace": "demo",
                      "annotations": { "k8s.v1.cni.cncf.io/resourceName": RESOURCE } },
        "spec": { "config": config.to_string() },
    });
    lab.write("cluster/nad-demo-vf.json", &manifest.to_string());
}

fn device(lab: &Lab, address: &str) -> PathBuf {
    let device = lab.path("node/sys/bus/pci/devices").join(address);
    device.canonicalize().unwrap()
}

/// Name, MAC and MTU of the VF's interface.
fn interface(lab: &Lab) -> (String, String, u64) {
    let shown = lab.node.show(&format!("link show dev {IN_SYSFS}"));
    (
        shown[0]["ifname"].as_str().unwrap().to_owned(),
        shown[0]["address"].as_str().unwrap().to_owned(),
        shown[0]["mtu"].as_u64().unwrap(),
    )
}

fn as_it_came() -> (String, String, u64) {
    (NAME.to_owned(), "02:00:00:00:10:00".to_owned(), 1500)
}

fn as_it_was_left() -> (String, String, u64) {
    ("left".to_owned(), "02:00:00:00:55:01".to_owned(), 1400)
}

#[test]
fn explain_says_what_will_be_compared_on_the_physical_function() {
    let mut lab = lab();
    lab.configure("verify", json!("strict"));
    network(&lab, json!({ "type": "vf", "vlan": 7, "trust": "on" }));
    let explained = lab.command("explain", &[]).run();
    for line in ["vlan 7", "trust on"] {
        let line = format!("verify  {line} on its physical function");
        assert!(explained.stdout.contains(&line), "{explained}");
    }
    assert_nothing_ran(&lab);
}

#[test]
fn what_a_delegate_leaves_is_put_right_by_del() {
    let lab = lab();
    assert_eq!(interface(&lab), as_it_came());
    lab.add();
    assert_eq!(interface(&lab), as_it_was_left());
    let record = lab
        .path("journal/sandboxes")
        .join(format!("{}@eth0", lab.container()));
    let record = fs::read_to_string(record).unwrap();
    let (baseline, started) = (
        record.find("{\"baseline\":["),
        record.find("{\"started\":0}"),
    );
    assert!(
        baseline.unwrap() < started.unwrap(),
        "written before anything ran"
    );
    let outcome = lab.call("DEL");
    assert_eq!(
        (outcome.exit, outcome.stderr.as_str()),
        (0, ""),
        "{outcome}"
    );
    assert_eq!(interface(&lab), as_it_came());
    lab.assert_nothing_left();
}

#[test]
fn what_a_delegate_leaves_is_put_right_when_its_namespace_is_gone() {
    let mut lab = lab();
    lab.add();
    lab.renew_pod();
    lab.del();
    assert_eq!(interface(&lab), as_it_came());
}

#[test]
fn what_a_delegate_leaves_is_put_right_when_its_add_fails() {
    let lab = lab();
    lab.write("fail", "");
    lab.call("ADD").fails(100, &["demo/vf (net1)"]);
    assert_eq!(interface(&lab), as_it_came());
    lab.assert_nothing_left();
}

/// The process that runs the delegate is ended in `verb`, once.
fn ended_in(lab: &Lab, verb: &str) {
    let script = format!(
        "[ $CNI_COMMAND = {verb} ] && [ ! -e $LAB/once ] && \
         {{ touch $LAB/once; kill -9 $PPID; sleep 0.1; }}"
    );
    lab.write("vf.sh", &script);
}

#[test]
fn what_a_delegate_leaves_is_put_right_after_a_kill_in_the_middle_of_add_or_of_del() {
    for verb in ["ADD", "DEL"] {
        let lab = lab();
        ended_in(&lab, verb);
        assert_eq!(lab.call("ADD").exit == 0, verb == "DEL");
        assert_eq!(interface(&lab), as_it_was_left());
        if verb == "DEL" {
            assert_ne!(lab.call("DEL").exit, 0);
            assert_eq!(interface(&lab), as_it_was_left());
        }
        lab.del();
        assert_eq!(interface(&lab), as_it_came());
        lab.assert_nothing_left();
    }
}

#[test]
fn a_pod_without_devices_has_no_baseline() {
    let lab = lab();
    lab.selects("");
    lab.add();
    let record = lab
        .path("journal/sandboxes")
        .join(format!("{}@eth0", lab.container()));
    let record = fs::read_to_string(record).unwrap();
    assert!(
        !record.contains("baseline") && record.contains("\"format\":1,"),
        "{record}"
    );
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn a_device_that_another_pod_has_by_now_is_not_touched_by_a_late_del() {
    let lab = lab();
    lab.add();
    // As if another sandbox had taken it over.
    let link = lab.path("journal/exclusive").join(format!("device-{VF}"));
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("somebody@eth0", &link).unwrap();
    lab.del();
    assert_eq!(interface(&lab), as_it_was_left());
    fs::remove_file(link).unwrap();
}

#[test]
fn a_name_that_was_taken_meanwhile_is_kept_on_record_until_it_can_be_put_back() {
    let lab = lab();
    lab.add();
    lab.node
        .ip(&format!("link add {NAME} type veth peer name peer2"));
    let outcome = lab.call("DEL");
    assert_eq!(outcome.exit, 0, "{outcome}");
    let line = format!("device {VF}: name {NAME} cannot be restored: ");
    assert!(outcome.stderr.contains(&line), "{outcome}");
    assert_eq!(interface(&lab), ("left".to_owned(), as_it_came().1, 1500));
    let conf = lab.write("doctor.conf", &lab.conf().to_string());
    let words =
        format!("its state differs from the state before pod {POD} used it: name {NAME} cannot");
    let is_found = || {
        let doctor = lab.cli(&["doctor", "--conf", conf.to_str().unwrap()]).run();
        doctor.stdout.contains(VF) && doctor.stdout.contains(&words)
    };
    let kept = lab.path("journal/unrestored").join(VF);
    assert!(is_found() && kept.exists());
    lab.node.ip("link del peer2");
    lab.add();
    assert!(
        !is_found() && !kept.exists(),
        "the next ADD has put it back"
    );
    lab.del();
    assert_eq!(interface(&lab), as_it_came());
}

/// `sriov_numvfs` through 0: the device is recreated at the same address.
#[test]
fn pf_reset_between_add_and_del_leaves_the_new_function_alone() {
    let lab = lab();
    lab.add();
    let vf = device(&lab, VF);
    let old = lab.path("old");
    fs::rename(&vf, &old).unwrap();
    copy(&old, &vf);
    let outcome = lab.call("DEL");
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert!(outcome.stderr.contains("recreated after"), "{outcome}");
    assert_eq!(interface(&lab), as_it_was_left());
}

#[test]
fn pf_reset_between_allocate_and_add_is_one_line_with_device_file_and_remedy() {
    let lab = lab();
    fs::remove_file(lab.path("node/sys/bus/pci/devices").join(VF)).unwrap();
    let devices = lab.path("node/sys/bus/pci/devices").display().to_string();
    let words = [
        VF,
        RESOURCE,
        &devices,
        "PF was reset",
        "restart the device plugin",
    ];
    lab.call("ADD").fails(104, &words);
    assert_nothing_ran(&lab);
}

#[test]
fn a_driver_unbound_between_allocate_and_add_is_one_line_with_device_file_and_remedy() {
    let lab = lab();
    fs::remove_file(device(&lab, VF).join("driver")).unwrap();
    let file = format!("devices/{VF} has no link named driver");
    lab.call("ADD")
        .fails(104, &[VF, RESOURCE, &file, "bind the device"]);
    fs::write(device(&lab, VF).join("driver_override"), "vfio-pci\n").unwrap();
    let driver = device(&lab, VF).join("driver");
    std::os::unix::fs::symlink("../../../../bus/pci/drivers/igbvf", driver).unwrap();
    let file = format!("devices/{VF}/driver_override");
    lab.call("ADD")
        .fails(104, &[VF, "igbvf", "vfio-pci", &file, "bind the device"]);
    assert_nothing_ran(&lab);
}

#[test]
fn another_driver_between_add_and_del_is_said_and_never_bound_anew() {
    let lab = lab();
    lab.add();
    let driver = device(&lab, VF).join("driver");
    fs::remove_file(&driver).unwrap();
    std::os::unix::fs::symlink("../../../../bus/pci/drivers/vfio-pci", &driver).unwrap();
    let outcome = lab.call("DEL");
    assert_eq!(outcome.exit, 0, "{outcome}");
    let line = "its driver is vfio-pci but was igbvf";
    assert!(outcome.stderr.contains(line), "{outcome}");
    assert!(fs::read_link(driver).unwrap().ends_with("vfio-pci"));
    assert_eq!(interface(&lab), as_it_was_left());
}

/// What ADD refuses `explain` shows in the same words.
fn refused(lab: &Lab, words: &[&str]) {
    lab.call("ADD").fails(104, words);
    let said = lab.call("ADD").json()["msg"].as_str().unwrap().to_owned();
    let explained = lab.command("explain", &[]).run();
    assert_eq!(explained.exit, 1, "{explained}");
    assert!(
        explained.stdout.contains(&said),
        "{said:?} is missing in: {explained}"
    );
    assert_nothing_ran(lab);
}

fn assert_nothing_ran(lab: &Lab) {
    assert_eq!(lab.log("calls"), [""; 0]);
    lab.assert_nothing_left();
}

#[test]
fn uplink_of_the_node_is_not_given_away_be_it_below_a_bridge() {
    let mut lab = lab();
    lab.node.ip("link add uplinks type bridge");
    lab.node.ip(&format!("link set {NAME} master uplinks"));
    lab.node.ip("link set uplinks up");
    lab.node.ip(&format!("link set {NAME} up"));
    lab.node.ip("addr add 10.77.0.2/24 dev uplinks");
    lab.node
        .ip("route replace default via 10.77.0.1 dev uplinks");
    lab.set_out();
    refused(
        &lab,
        &[VF, "default route (interface uplinks)", "selectors"],
    );
}

#[test]
fn rdma_mode_is_looked_at_before_a_plugin_moves_rdma_devices() {
    let lab = lab();
    lab.delegate("rdma", "exit 1");
    network(&lab, json!({ "type": "rdma" }));
    let file = "node/sys/module/ib_core/parameters/netns_mode";
    lab.write(file, "Y\n");
    let shown = lab.path(file).display().to_string();
    refused(&lab, &["plugin rdma", &shown, "netns exclusive"]);
}

#[test]
fn iommu_group_that_is_shared_is_refused() {
    let lab = lab();
    let tree = lab.path("node");
    fs::remove_dir_all(&tree).unwrap();
    fixtures::igb_vfio().build(&tree).unwrap();
    let group = lab.path("node/sys/kernel/iommu_groups/11/devices");
    std::os::unix::fs::symlink(device(&lab, PF), group.join(PF)).unwrap();
    let group = group.display().to_string();
    refused(&lab, &[VF, PF, "driver igb", &group, "ACS"]);
}

/// Two sandboxes of one pod: the older one was never deleted.
#[test]
fn a_late_sandbox_of_the_same_pod_gives_the_device_back_as_it_came_first() {
    let lab = lab();
    let uid = |call: crate::lab::Call, container: &str, netns: &Netns| {
        let args = format!(
            "IgnoreUnknown=1;K8S_POD_NAMESPACE=demo;K8S_POD_NAME={};K8S_POD_UID=one",
            POD.split_once('/').unwrap().1
        );
        call.env("CNI_ARGS", &args)
            .env("CNI_CONTAINERID", container)
            .env("CNI_NETNS", &netns.path().display().to_string())
    };
    let second = Netns::new(&format!("{}-2", lab.container()));
    let containers = ["a", "b"].map(|end| format!("{}{end}", lab.container()));
    uid(lab.plugin("ADD"), &containers[0], &lab.pod)
        .run()
        .success();
    assert_eq!(interface(&lab), as_it_was_left());
    uid(lab.plugin("ADD"), &containers[1], &second)
        .run()
        .success();
    assert_eq!(
        lab.log("calls"),
        ["ADD net1 vf", "DEL net1 vf", "ADD net1 vf"]
    );
    assert_eq!(
        uid(lab.plugin("DEL"), &containers[0], &lab.pod).run().exit,
        0
    );
    assert_eq!(
        interface(&lab),
        as_it_was_left(),
        "the late DEL touches nothing"
    );
    assert_eq!(
        uid(lab.plugin("DEL"), &containers[1], &second).run().exit,
        0
    );
    assert_eq!(
        interface(&lab),
        as_it_came(),
        "the second baseline was the first one"
    );
}

/// A directory of links and files, as sysfs has them.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&from, &to);
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&from).unwrap(), &to).unwrap();
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}
