//! A node with a cluster of its own: folders, network namespaces, the binary under test, and a
//! look at whatever it leaves behind.
//!
//! ```text
//! lab ──manifests, conf──▶ jackfield (in the node's netns) ──▶ real plugins ──▶ the pod's netns
//!  └──────── leftovers: links, routes, leases, records, locks, processes ◀────────┘
//! ```

mod call;
mod cluster;
mod delegates;
mod leftovers;
mod netns;
mod plugins;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) use call::{Call, Outcome};
pub(crate) use leftovers::Leftovers;
pub(crate) use netns::{Netns, run};
pub(crate) use plugins::real_plugins;

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
        lab.before = lab.leftovers().without_processes();
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

    /// Writes a file of the lab.
    pub(crate) fn write(&self, relative: &str, text: &str) -> PathBuf {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
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

    /// The pod's netns vanishes, and another one has its name.
    pub(crate) fn renew_pod(&mut self) {
        self.pod.delete();
        self.pod = Netns::new(&format!("{}-pod", self.id));
    }

    /// Takes what is there now as what was there before: for what a test puts in by itself.
    pub(crate) fn set_out(&mut self) {
        self.before = self.leftovers();
    }

    /// No line of [`Lab::leftovers`] has any of `words`, once the kernel has cleaned up.
    pub(crate) fn assert_none_left(&self, words: &[&str]) {
        Leftovers::assert_without(words, || self.leftovers());
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
