//! A node with a configuration and a journal of its own, and its measured pod.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::Outcome;
use crate::call::{Called, Verb, run};

/// Everything of the node is below one folder. `bin/` beside it has the delegates, and `jackfield`
/// beside it is the program under test.
#[derive(Debug)]
pub(crate) struct Node {
    root: PathBuf,
    folder: PathBuf,
    /// The measured pod, its container and its network namespace.
    name: String,
    conf: Value,
    /// The other containers, which every GC keeps.
    pub(crate) others: Vec<String>,
    /// What ADD answered.
    result: Option<Value>,
}

impl Node {
    /// A node whose cluster is the folder `cluster/`, still without manifests. The measured pod has
    /// the same name as the node.
    ///
    /// # Errors
    /// If its files cannot be written.
    pub(crate) fn new(root: &Path, name: &str) -> Outcome<Node> {
        let folder = root.join(name);
        fs::create_dir_all(folder.join("cluster"))?;
        let conf = json!({
            "cniVersion": "1.1.0", "name": "jackfield", "type": "jackfield",
            "clusterNetwork": root.join("10-cluster.conflist"),
            "manifestDir": folder.join("cluster"),
            "confDir": folder.join("conf"),
            "binDir": root.join("bin"),
            "cniDir": folder.join("multus"),
            "devInfoDir": folder.join("devinfo"),
            "journalDir": folder.join("journal"),
        });
        let node = Node {
            root: root.to_owned(),
            folder,
            name: name.to_owned(),
            conf,
            others: Vec::new(),
            result: None,
        };
        node.write("node.conf", &node.conf)?;
        Ok(node)
    }

    /// Lets the node ask its agent instead of the folder. The socket is in the node's folder, and
    /// the agent has the journal beside that folder.
    ///
    /// # Errors
    /// If the configuration cannot be written.
    pub(crate) fn ask_agent(&mut self) -> Outcome<()> {
        if let Some(conf) = self.conf.as_object_mut() {
            conf.remove("manifestDir");
        }
        self.configure("agentSocket", json!(self.path("agent.sock")))?;
        self.configure("journalDir", json!(self.folder.with_extension("journal")))
    }

    /// Sets a key of the node configuration.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn configure(&mut self, key: &str, value: Value) -> Outcome<()> {
        self.conf[key] = value;
        self.write("node.conf", &self.conf)
    }

    /// A path in the node's folder.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.folder.join(relative)
    }

    /// The name of the measured pod and of its network namespace.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Writes a file in the node's folder.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(&self, relative: &str, value: &Value) -> Outcome<()> {
        Ok(fs::write(self.path(relative), value.to_string())?)
    }

    /// Calls for the measured pod. CHECK and DEL get the result of the last ADD.
    ///
    /// # Errors
    /// If the call fails.
    pub(crate) fn call(&mut self, verb: Verb) -> Outcome<Called> {
        let name = self.name.clone();
        self.call_for(verb, &name)
    }

    /// Calls for the pod with that name, which is the name of its container and its namespace too.
    ///
    /// # Errors
    /// If the call fails.
    pub(crate) fn call_for(&mut self, verb: Verb, pod: &str) -> Outcome<Called> {
        let mut command = Command::new(self.root.join("jackfield"));
        command.env_clear();
        if verb == Verb::Doctor {
            command.args(["doctor", "--output", "json", "--node", &self.name, "--conf"]);
            command.arg(self.path("node.conf"));
            // It finds that nothing is installed here, and that no kubelet answers.
            return run(&mut command, &[], &[0, 1]);
        }
        command
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("CNI_COMMAND", verb.name())
            .env("CNI_PATH", self.root.join("bin"));
        if !matches!(verb, Verb::Gc | Verb::Status) {
            let args = format!("IgnoreUnknown=1;K8S_POD_NAMESPACE=bench;K8S_POD_NAME={pod}");
            command
                .env("CNI_CONTAINERID", pod)
                .env("CNI_NETNS", format!("/run/netns/{pod}"))
                .env("CNI_IFNAME", "eth0")
                .env("CNI_ARGS", args);
        }
        let called = run(&mut command, self.stdin(verb).to_string().as_bytes(), &[0])?;
        if verb == Verb::Add {
            self.result = Some(serde_json::from_slice(&called.answer)?);
        }
        Ok(called)
    }

    fn stdin(&self, verb: Verb) -> Value {
        let mut conf = self.conf.clone();
        match (verb, &self.result) {
            (Verb::Check | Verb::Del, Some(result)) => conf["prevResult"] = result.clone(),
            (Verb::Gc, _) => {
                let all = self.others.iter().chain([&self.name]);
                let valid = all.map(|it| json!({ "containerID": it, "ifname": "eth0" }));
                conf["cni.dev/valid-attachments"] = valid.collect();
            }
            _ => {}
        }
        conf
    }
}
