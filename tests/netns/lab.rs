//! A node with a cluster of its own: folders, network namespaces, the binary under test, and a
//! look at whatever it leaves behind.
//!
//! ```text
//! lab ──manifests, conf──▶ jackfield (in the node's netns) ──▶ real plugins ──▶ the pod's netns
//!  └──────── leftovers: links, routes, leases, records, locks, processes ◀────────┘
//! ```

mod call;
mod leftovers;
mod netns;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) use call::{Call, Outcome};
pub(crate) use leftovers::Leftovers;
pub(crate) use netns::{Netns, run};

/// The pod that a lab's calls are about unless they say otherwise.
pub(crate) const POD: &str = "demo/web";
/// The node's interface that macvlan and its like sit on.
pub(crate) const UPLINK: &str = "uplink0";

/// One test's node, cluster and pod.
pub(crate) struct Lab {
    id: String,
    dir: TempDir,
    conf: Value,
    /// The node's network namespace: everything runs in there.
    pub(crate) node: Netns,
    /// The pod's.
    pub(crate) pod: Netns,
    /// What was there before anything ran.
    before: Leftovers,
}

impl Lab {
    /// A node with an uplink and a bridge as cluster network, an empty cluster, and a pod's netns.
    ///
    /// The real plugins are found through CNI_PATH; `binDir` is the lab's own, empty unless the
    /// test puts a delegate there with [`Lab::delegate`].
    pub(crate) fn new() -> Lab {
        static LABS: AtomicU32 = AtomicU32::new(0);
        let number = LABS.fetch_add(1, Ordering::Relaxed);
        let id = format!("jf{}x{number}", std::process::id());
        let dir = tempfile::Builder::new()
            .prefix("jackfield-lab-")
            .tempdir()
            .unwrap();
        for folder in ["cluster", "conf", "bin", "log"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let node = Netns::new(&format!("{id}-node"));
        let pod = Netns::new(&format!("{id}-pod"));
        // Without addresses of its own, so that nothing changes by itself while a test looks.
        node.ip(&format!("link add {UPLINK} type veth peer name switch0"));
        for link in [UPLINK, "switch0"] {
            node.ip(&format!("link set {link} addrgenmode none"));
            node.ip(&format!("link set {link} up"));
        }
        let conf = json!({
            "cniVersion": "1.0.0", "name": "jackfield", "type": "jackfield",
            "clusterNetwork": dir.path().join("conf/10-cluster.conflist"),
            "manifestDir": dir.path().join("cluster"),
            "confDir": dir.path().join("conf"),
            "binDir": dir.path().join("bin"),
            "cniDir": dir.path().join("multus"),
            "devInfoDir": dir.path().join("devinfo"),
            "journalDir": dir.path().join("journal"),
        });
        let mut lab = Lab {
            id,
            dir,
            conf,
            node,
            pod,
            before: Leftovers::default(),
        };
        let bridge = lab.bridge("cni0", "10.10.0.0/24");
        lab.cluster_network("1.0.0", &[bridge]);
        lab.pod_with(POD, json!({}));
        lab.before = lab.leftovers();
        lab
    }

    /// The container ID of the lab's pod; no other lab has it.
    pub(crate) fn container(&self) -> String {
        format!("{}-web", self.id)
    }

    /// A path in the lab's folder: `cluster`, `conf`, `bin`, `journal`, `ipam`, `log`.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().join(relative)
    }

    /// The node configuration, as it will be on stdin.
    pub(crate) fn conf(&self) -> &Value {
        &self.conf
    }

    /// Sets a key of the node configuration; `null` takes it out.
    pub(crate) fn configure(&mut self, key: &str, value: Value) {
        let conf = self.conf.as_object_mut().unwrap();
        match value {
            Value::Null => conf.shift_remove(key),
            value => conf.insert(key.to_owned(), value),
        };
    }

    /// Writes the cluster network's configuration.
    pub(crate) fn cluster_network(&self, version: &str, plugins: &[Value]) {
        let conf = json!({ "cniVersion": version, "name": "cluster", "plugins": plugins });
        self.write("conf/10-cluster.conflist", &conf.to_string());
    }

    /// A bridge plugin that takes addresses from `subnet`.
    pub(crate) fn bridge(&self, bridge: &str, subnet: &str) -> Value {
        json!({ "type": "bridge", "bridge": bridge, "isGateway": true,
                "ipam": self.host_local(&[subnet], true) })
    }

    /// A host-local IPAM section whose leases are the lab's.
    pub(crate) fn host_local(&self, subnets: &[&str], default_routes: bool) -> Value {
        let ranges: Vec<Value> = subnets
            .iter()
            .map(|subnet| json!([{ "subnet": subnet }]))
            .collect();
        let mut ipam =
            json!({ "type": "host-local", "dataDir": self.path("ipam"), "ranges": ranges });
        if default_routes {
            let routes: Vec<Value> = subnets
                .iter()
                .map(|subnet| json!({ "dst": if subnet.contains(':') { "::/0" } else { "0.0.0.0/0" } }))
                .collect();
            ipam["routes"] = json!(routes);
        }
        ipam
    }

    /// A macvlan plugin that takes `ips` and `mac` from the pod, by static IPAM.
    pub(crate) fn macvlan(&self) -> Value {
        json!({ "cniVersion": "1.0.0", "type": "macvlan", "master": UPLINK, "mode": "bridge",
                "capabilities": { "ips": true, "mac": true }, "ipam": { "type": "static" } })
    }

    /// A ptp plugin that takes addresses from `subnet`.
    pub(crate) fn ptp(&self, subnet: &str) -> Value {
        json!({ "cniVersion": "1.0.0", "type": "ptp", "ipam": self.host_local(&[subnet], false) })
    }

    /// Puts a NetworkAttachmentDefinition into the cluster; `object` is `namespace/name`.
    pub(crate) fn definition(&self, object: &str, config: &Value) {
        self.definition_text(object, &config.to_string());
    }

    /// The same, with `spec.config` as it is, right or wrong.
    pub(crate) fn definition_text(&self, object: &str, config: &str) {
        let (namespace, name) = object.split_once('/').unwrap();
        let manifest = json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": { "name": name, "namespace": namespace },
            "spec": { "config": config },
        });
        self.write(
            &format!("cluster/nad-{namespace}-{name}.json"),
            &manifest.to_string(),
        );
    }

    /// The lab's pod asks for these networks: the annotation's value.
    pub(crate) fn selects(&self, networks: &str) {
        self.pod_with(POD, json!({ "k8s.v1.cni.cncf.io/networks": networks }));
    }

    /// The same, as the JSON form.
    pub(crate) fn selects_json(&self, networks: &Value) {
        self.selects(&networks.to_string());
    }

    /// Puts a pod with annotations into the cluster.
    pub(crate) fn pod_with(&self, pod: &str, annotations: Value) {
        let (namespace, name) = pod.split_once('/').unwrap();
        let manifest = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "namespace": namespace, "annotations": annotations },
        });
        self.write(
            &format!("cluster/pod-{namespace}-{name}.json"),
            &manifest.to_string(),
        );
    }

    /// Writes a file of the lab.
    pub(crate) fn write(&self, relative: &str, text: &str) -> PathBuf {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Puts a shell script into `binDir` as a delegate. `$LAB` in it is the lab's folder, `$REAL`
    /// the folder of the real plugins; stdin is the plugin configuration.
    pub(crate) fn delegate(&self, name: &str, script: &str) -> PathBuf {
        let text = format!(
            "#!/bin/bash\nLAB={}\nREAL={}\n{script}\n",
            self.path("").display(),
            real_plugins().display()
        );
        let path = self.write(&format!("bin/{name}"), &text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A delegate that notes each call in `log/calls` (`VERB interface name`) and its stdin in
    /// `log/NAME.VERB`, does what `script` says, and is the real plugin otherwise.
    pub(crate) fn recorder(&self, name: &str, real: &str, script: &str) {
        let text = format!(
            "stdin=$(cat)\n\
             echo \"$CNI_COMMAND $CNI_IFNAME {name}\" >>$LAB/log/calls\n\
             printf '%s\\n' \"$stdin\" >>$LAB/log/{name}.$CNI_COMMAND\n\
             {script}\n\
             exec $REAL/{real} <<<\"$stdin\""
        );
        self.delegate(name, &text);
    }

    /// A plugin for the end of a chain that records like [`Lab::recorder`] and passes on the
    /// result of those before it.
    pub(crate) fn bystander(&self, name: &str) {
        let script = "[ $CNI_COMMAND = ADD ] && jq -c '.prevResult' <<<\"$stdin\"; exit 0";
        self.recorder(name, "-", script);
    }

    /// The configurations that a recorder got with a verb.
    pub(crate) fn recorded(&self, name: &str, verb: &str) -> Vec<Value> {
        let lines = self.log(&format!("{name}.{verb}"));
        lines
            .iter()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect()
    }

    /// What the lab's delegates noted in `log/NAME`, line by line.
    pub(crate) fn log(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path("log").join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// A call of the runtime for the lab's pod.
    pub(crate) fn call(&self, verb: &str) -> Outcome {
        self.plugin(verb).run()
    }

    /// ADD, which is to succeed: its result.
    pub(crate) fn add(&self) -> Value {
        self.call("ADD").success()
    }

    /// DEL, which is to succeed and to say nothing.
    pub(crate) fn del(&self) {
        let outcome = self.call("DEL");
        assert_eq!(
            (outcome.exit, outcome.stdout.as_str()),
            (0, ""),
            "{outcome}"
        );
    }

    /// CHECK, which is to succeed and to say nothing.
    pub(crate) fn check(&self) {
        let outcome = self.call("CHECK");
        assert_eq!(
            (outcome.exit, outcome.stdout.as_str()),
            (0, ""),
            "{outcome}"
        );
    }

    /// A call of the runtime that the test goes on to change before it runs.
    pub(crate) fn plugin(&self, verb: &str) -> Call {
        let (namespace, name) = POD.split_once('/').unwrap();
        let args = format!(
            "IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name};K8S_POD_INFRA_CONTAINER_ID={}",
            self.container()
        );
        Call::in_netns(&self.node)
            .env("CNI_COMMAND", verb)
            .env("CNI_CONTAINERID", &self.container())
            .env("CNI_NETNS", &self.pod.path().display().to_string())
            .env("CNI_IFNAME", "eth0")
            .env("CNI_PATH", &real_plugins().display().to_string())
            .env("CNI_ARGS", &args)
            .stdin(self.conf.to_string().as_bytes())
    }

    /// A command of the command line with just these arguments.
    pub(crate) fn cli(&self, arguments: &[&str]) -> Call {
        Call::in_netns(&self.node).arguments(arguments)
    }

    /// `attach`, `detach`, `check` or `explain` for the lab's pod, with further arguments.
    pub(crate) fn command(&self, command: &str, more: &[&str]) -> Call {
        let conf = self.write("jackfield.conf", &self.conf.to_string());
        let path = |path: &Path| path.display().to_string();
        let mut arguments = vec![
            command.to_owned(),
            "--conf".to_owned(),
            path(&conf),
            "--pod".to_owned(),
            POD.to_owned(),
            "--cni-path".to_owned(),
            path(&real_plugins()),
        ];
        if command != "explain" {
            arguments.extend(["--netns".to_owned(), path(&self.pod.path())]);
            arguments.extend(["--container-id".to_owned(), self.container()]);
        }
        arguments.extend(more.iter().map(|&more| more.to_owned()));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.cli(&arguments)
    }

    /// The network-status that the cluster was told.
    pub(crate) fn status(&self) -> Vec<Value> {
        let path = self
            .path("cluster/status")
            .join(POD)
            .join("network-status.json");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        serde_json::from_str(&text).unwrap()
    }

    /// The events that the cluster was told: `type reason message`.
    pub(crate) fn events(&self) -> Vec<String> {
        let path = self.path("cluster/status").join(POD).join("events.jsonl");
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines()
            .map(|line| {
                let event: Value = serde_json::from_str(line).unwrap();
                let part = |key: &str| event[key].as_str().unwrap().to_owned();
                format!("{} {} {}", part("type"), part("reason"), part("message"))
            })
            .collect()
    }

    /// The pod's netns vanishes, and another one has its name.
    pub(crate) fn renew_pod(&mut self) {
        self.pod.delete();
        self.pod = Netns::new(&format!("{}-pod", self.id));
    }

    /// Takes what is there now as what was there before: for what a test puts in by itself.
    pub(crate) fn set_out(&mut self) {
        self.before = self.leftovers();
    }

    /// Nothing but records is left: no link, no lease, no process.
    pub(crate) fn check_is_gone(&self) {
        assert_eq!(self.pod.links(), [""; 0]);
        let left = self.leftovers();
        assert!(
            left.with("/ipam/").is_empty() && left.with("process").is_empty(),
            "{left:?}"
        );
    }

    /// What is there now.
    pub(crate) fn leftovers(&self) -> Leftovers {
        Leftovers::look(self)
    }

    /// Nothing is there that was not there before, and nothing is missing.
    pub(crate) fn assert_nothing_left(&self) {
        self.before.assert_same(|| self.leftovers());
    }
}

impl Drop for Lab {
    /// Files outside of the lab's folder; the rest goes with its own guards.
    fn drop(&mut self) {
        for netns in [&self.node, &self.pod] {
            netns.end_processes();
        }
        for path in leftovers::outside(&self.container()) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Where the real CNI plugins are: `$CNI_BIN`, else where the scripts put them.
pub(crate) fn real_plugins() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let dir = variable("CNI_BIN").unwrap_or_else(|| {
        variable("JACKFIELD_CACHE")
            .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("jackfield")))
            .or_else(|| Some(variable("HOME")?.join(".cache/jackfield")))
            .unwrap_or_default()
            .join("cni-plugins-v1.9.1")
    });
    assert!(
        dir.join("bridge").exists(),
        "no CNI plugins in {}; run scripts/test --only netns, which builds them, or set CNI_BIN",
        dir.display()
    );
    dir
}
