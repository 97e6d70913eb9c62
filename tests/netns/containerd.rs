//! Calls as containerd makes them: everything it has in its environment, arguments in any order,
//! capability arguments in its own spelling.

use serde_json::{Value, json};

use crate::lab::{Call, Lab, real_plugins};

/// What stands in containerd's own environment, which its plugins inherit.
const INHERITED: [(&str, &str); 5] = [
    ("LD_LIBRARY_PATH", "/opt/containerd/lib:"),
    ("HOME", "/root"),
    ("PWD", "/"),
    ("SHLVL", "1"),
    ("_", "/usr/bin/env"),
];

struct Containerd {
    lab: Lab,
    uid: &'static str,
}

impl Containerd {
    fn new() -> Containerd {
        let mut lab = Lab::new();
        lab.configure("cniVersions", json!(["0.3.1", "0.4.0", "1.0.0", "1.1.0"]));
        lab.configure(
            "capabilities",
            json!({ "cgroupPath": true, "io.kubernetes.cri.pod-annotations": true, "portMappings": true }),
        );
        lab.recorder("bridge-rec", "bridge", "env >$LAB/log/env");
        let mut bridge = lab.bridge("cni0", "10.10.0.0/24");
        bridge["type"] = json!("bridge-rec");
        bridge["capabilities"] = json!({ "portMappings": true, "cgroupPath": true });
        lab.cluster_network("1.1.0", &[bridge]);
        lab.definition("demo/vfnet", &lab.ptp("10.20.0.0/24"));
        Containerd {
            lab,
            uid: "5fac4d5d-c6b3-4633-affe-85d5405ab3b9",
        }
    }

    /// A call about the lab's pod, the pod's name at the end of the arguments or at their start.
    fn call(&self, verb: &str, name_last: bool, prev_result: Option<&Value>) -> Call {
        let lab = &self.lab;
        let mut conf = lab.conf().clone();
        conf["cniVersion"] = json!("1.1.0");
        conf["runtimeConfig"] = json!({
            "cgroupPath": format!("/kubepods/besteffort/pod{}", self.uid),
            "portMappings": [{ "HostPort": 8080, "ContainerPort": 80, "Protocol": "tcp", "HostIP": "" }],
            "io.kubernetes.cri.pod-annotations": {
                "k8s.v1.cni.cncf.io/networks": "vfnet",
                "kubernetes.io/config.seen": "2026-11-21T03:18:58.593086112Z",
                "kubernetes.io/config.source": "api",
            },
        });
        if let Some(result) = prev_result {
            conf["prevResult"] = result.clone();
        }
        let mut args = [
            format!("K8S_POD_INFRA_CONTAINER_ID={}", lab.container()),
            format!("K8S_POD_UID={}", self.uid),
            "IgnoreUnknown=1".to_owned(),
            "K8S_POD_NAMESPACE=demo".to_owned(),
            "K8S_POD_NAME=web".to_owned(),
        ];
        if !name_last {
            args.rotate_right(1);
        }
        let call = lab.plugin(verb).env("CNI_ARGS", &args.join(";"));
        INHERITED
            .iter()
            .fold(call, |call, (name, value)| call.env(name, value))
            .stdin(conf.to_string().as_bytes())
    }
}

#[test]
fn a_sandboxs_life_is_one_add_and_three_dels() {
    let containerd = Containerd::new();
    let lab = &containerd.lab;
    let result = containerd.call("ADD", true, None).run().success();
    assert_eq!(result["cniVersion"], "1.1.0");
    assert_eq!(lab.pod.links(), ["eth0", "net1"]);
    // Every index is in range and every name there once: containerd does not look.
    let interfaces = result["interfaces"].as_array().unwrap();
    for ip in result["ips"].as_array().unwrap() {
        assert!((ip["interface"].as_u64().unwrap() as usize) < interfaces.len());
    }
    let told = &lab.recorded("bridge-rec", "ADD")[0];
    assert_eq!(
        told["runtimeConfig"]["portMappings"][0]["HostPort"], 8080,
        "as it was spelt"
    );
    let keys: Vec<_> = told["runtimeConfig"].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        ["cgroupPath", "portMappings"],
        "what the plugin declares, and no more"
    );
    let del = containerd.call("DEL", false, Some(&result)).run();
    assert_eq!((del.exit, del.stdout.as_str()), (0, ""), "{del}");
    lab.assert_nothing_left();
    for _ in 0..2 {
        let del = containerd
            .call("DEL", true, None)
            .env("CNI_NETNS", "")
            .run();
        assert_eq!((del.exit, del.stdout.as_str()), (0, ""), "{del}");
    }
    lab.assert_nothing_left();
}

#[test]
fn after_a_reboot_the_del_has_a_result_and_no_netns() {
    let containerd = Containerd::new();
    let result = containerd.call("ADD", true, None).run().success();
    containerd.lab.pod.delete();
    let del = containerd
        .call("DEL", true, Some(&result))
        .env("CNI_NETNS", "")
        .run();
    assert_eq!((del.exit, del.stdout.as_str()), (0, ""), "{del}");
    let left = containerd.lab.leftovers();
    assert!(
        left.with("/ipam/").is_empty() && left.with("/journal/").is_empty(),
        "{left:?}"
    );
}

#[test]
fn a_failed_add_and_its_del_leave_nothing_and_the_next_sandbox_starts() {
    let containerd = Containerd::new();
    let lab = &containerd.lab;
    lab.definition(
        "demo/vfnet",
        &json!({ "cniVersion": "1.0.0", "type": "absent" }),
    );
    containerd
        .call("ADD", true, None)
        .run()
        .fails(102, &["no binary named absent"]);
    let del = containerd.call("DEL", true, None).run();
    assert_eq!((del.exit, del.stdout.as_str()), (0, ""), "{del}");
    lab.assert_nothing_left();
    lab.definition("demo/vfnet", &lab.ptp("10.20.0.0/24"));
    let next = format!("{}-next", lab.container());
    containerd
        .call("ADD", true, None)
        .env("CNI_CONTAINERID", &next)
        .run()
        .success();
    containerd
        .call("DEL", true, None)
        .env("CNI_CONTAINERID", &next)
        .run();
    lab.assert_nothing_left();
}

#[test]
fn delegates_do_not_inherit_the_runtimes_libraries() {
    let containerd = Containerd::new();
    containerd.call("ADD", true, None).run().success();
    let env = containerd.lab.log("env");
    assert!(
        !env.iter().any(|line| line.starts_with("LD_LIBRARY_PATH=")),
        "{env:?}"
    );
    let path = real_plugins().display().to_string();
    assert!(
        env.iter()
            .any(|line| line.starts_with("CNI_PATH=") && line.contains(&path))
    );
    containerd.lab.del();
}
