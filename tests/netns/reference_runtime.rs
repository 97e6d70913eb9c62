//! The reference runtime's own tool, cnitool, drives every verb in every version that it speaks.

#![allow(
    clippy::disallowed_methods,
    reason = "what the tests call outside of the node needs no deadline"
)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::lab::{Lab, POD, real_plugins};

/// `$CNITOOL`, else where the scripts put it.
pub(crate) fn cnitool() -> PathBuf {
    if let Some(path) = std::env::var_os("CNITOOL") {
        return path.into();
    }
    let path = real_plugins().with_file_name("cnitool-v1.3.1/cnitool");
    assert!(
        path.exists(),
        "no {}; run scripts/test --only netns, which builds it, or set CNITOOL",
        path.display()
    );
    path
}

struct Tool {
    lab: Lab,
}

impl Tool {
    /// The lab's configuration in `version`, as a file that cnitool finds.
    fn new(version: &str) -> Tool {
        let mut lab = Lab::new();
        // Its GC takes every sandbox of the network, those of other tests too.
        let network = format!("net-{}", lab.container());
        lab.configure("cniVersion", json!(version));
        lab.configure("name", json!(network));
        lab.definition("demo/a", &lab.ptp("10.20.0.0/24"));
        lab.selects("a");
        let tool = Tool { lab };
        let conf = tool.lab.conf();
        // From 1.0.0 on there are lists only.
        let list = json!({ "cniVersion": version, "name": network, "plugins": [conf] });
        tool.lab
            .write("net.d/00-jackfield.conflist", &list.to_string());
        let binary = env!("CARGO_BIN_EXE_jackfield");
        fs::create_dir(tool.lab.path("ours")).unwrap();
        symlink(binary, tool.lab.path("ours/jackfield")).unwrap();
        tool
    }

    fn run(&self, command: &str) -> Output {
        let lab = &self.lab;
        let (namespace, name) = POD.split_once('/').unwrap();
        let path = format!(
            "{}:{}",
            lab.path("ours").display(),
            real_plugins().display()
        );
        Command::new("ip")
            .args(["netns", "exec", lab.node.name()])
            .arg(cnitool())
            .args([command, lab.conf()["name"].as_str().unwrap()])
            .arg(lab.pod.path())
            .env("NETCONFPATH", lab.path("net.d"))
            .env("CNI_PATH", path)
            .env("CNI_IFNAME", "eth0")
            .env(
                "CNI_ARGS",
                format!("K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name}"),
            )
            .output()
            .unwrap()
    }

    fn succeeds(&self, command: &str) -> String {
        let output = self.run(command);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }
}

// clause: CNI-1.1.0 §5 ADD: as the reference runtime reads it
// clause: CNI-1.1.0 §2 STATUS ready
// clause: CNI-1.1.0 §2 GC valid attachments: as the reference runtime writes them
#[test]
fn add_check_del_gc_and_status_work_in_every_version() {
    for version in ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let tool = Tool::new(version);
        let lab = &tool.lab;
        if version == "1.1.0" {
            tool.succeeds("status");
        }
        let result: Value = serde_json::from_str(&tool.succeeds("add")).unwrap();
        assert_eq!(result["cniVersion"], version);
        assert_eq!(lab.pod.links(), ["eth0", "net1"], "{version}");
        if version >= "0.4.0" {
            tool.succeeds("check");
        }
        if version == "1.1.0" {
            // It keeps nobody: it detaches what it has on record itself, then has us collect.
            tool.succeeds("gc");
        } else {
            tool.succeeds("del");
        }
        tool.succeeds("del");
        lab.assert_nothing_left();
    }
}

// clause: CNI-1.1.0 §5 ADD version: before 0.3.0
#[test]
fn a_gc_that_names_nobody_and_no_list_collects_nothing() {
    let tool = Tool::new("1.1.0");
    tool.succeeds("add");
    let netns = tool.lab.pod.path().display().to_string();
    let mut forgotten = 0;
    for entry in fs::read_dir("/var/lib/cni/results").unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        if text.contains(&format!("\"netns\":\"{netns}\"")) {
            fs::remove_file(entry.path()).unwrap();
            forgotten += 1;
        }
    }
    assert_eq!(forgotten, 1);
    tool.succeeds("gc");
    assert_eq!(tool.lab.pod.links(), ["eth0", "net1"]);
    tool.succeeds("del");
    tool.lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §5 ADD version: before 0.3.0
#[test]
fn versions_before_lists_work_too() {
    for version in ["0.1.0", "0.2.0"] {
        let tool = Tool::new(version);
        let lab = &tool.lab;
        fs::remove_file(lab.path("net.d/00-jackfield.conflist")).unwrap();
        lab.write("net.d/00-jackfield.conf", &lab.conf().to_string());
        let result: Value = serde_json::from_str(&tool.succeeds("add")).unwrap();
        assert!(result["ip4"]["ip"].is_string(), "{version}: {result}");
        assert_eq!(lab.pod.links(), ["eth0", "net1"], "{version}");
        tool.succeeds("del");
        lab.assert_nothing_left();
    }
}

// clause: CNI-1.1.0 §5 Error: as the reference runtime reads it
#[test]
fn an_error_reaches_the_runtime_in_one_line() {
    let tool = Tool::new("1.0.0");
    tool.lab.selects("absent");
    let output = tool.run("add");
    assert!(!output.status.success());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("network demo/absent (net1): no NetworkAttachmentDefinition"),
        "{stderr}"
    );
    tool.lab.assert_nothing_left();
}
