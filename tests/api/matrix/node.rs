//! A node with an agent and one pod in the API server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::{RECOVERS_WITHIN, Request, within};
use crate::lab::{AgentProcess, Fault, Lab, NETWORKS, Outcome, Sandbox, cni_bin};
use crate::table::call::Verb;
use crate::table::faults::Trouble;
use crate::table::leftovers::Holdings;
use crate::table::wall_clock;

/// The annotation of an ADD.
const FIRST: &str = "storage, management@mgmt0";
/// The annotation of a change.
const OTHERS: &str = "backup, management@mgmt1";
/// A plugin that fails while a file `break` has no content, and on ADD while the file has any.
const BREAKABLE: &str = r#"#!/bin/sh
if [ -e LAB/break ] && [ $CNI_COMMAND = ADD -o ! -s LAB/break ]; then
  echo '{"code":7,"msg":"broken"}'; exit 1
fi
exec CNI_BIN/bridge
"#;
/// A node with an agent.
pub(super) struct Node {
    pub(super) lab: Lab,
    agent: AgentProcess,
    /// The number of the current pod.
    number: usize,
    uid: String,
    before: Holdings,
}

impl Node {
    /// Sets everything up, and attaches and detaches a pod once, so that the plugins' own links and
    /// files exist.
    pub(super) fn set_up() -> Node {
        let mut lab = Lab::new();
        let (dir, bin) = (lab.path(""), lab.path("bin"));
        let dir = dir.to_str().unwrap().trim_end_matches('/');
        fs::create_dir(&bin).unwrap();
        for plugin in ["bridge", "host-local", "static"] {
            std::os::unix::fs::symlink(cni_bin().join(plugin), bin.join(plugin)).unwrap();
        }
        let script = BREAKABLE.replace("LAB", dir);
        let script = script.replace("CNI_BIN", cni_bin().to_str().unwrap());
        fs::write(bin.join("breakable"), script).unwrap();
        fs::set_permissions(bin.join("breakable"), fs::Permissions::from_mode(0o755)).unwrap();
        lab.configure("binDir", json!(bin));
        lab.definition("storage", "10.2.0.5/24");
        lab.definition("backup", "10.4.0.5/24");
        let ipam = json!({"type": "host-local", "dataDir": format!("{dir}/ipam"), "subnet": "10.3.0.0/24"});
        lab.definition_of(
            "management",
            &json!({"type": "breakable", "bridge": "mgmt", "ipam": ipam}),
        );
        let agent = lab.start_agent();
        let mut node = Node {
            lab,
            agent,
            number: 0,
            uid: String::new(),
            before: Holdings::default(),
        };
        for first in [Verb::SelectFirst, Verb::SelectOthers] {
            node.new_pod();
            for verb in [first, Verb::Add, Verb::Del] {
                node.attempt(verb).unwrap();
            }
            node.lab.delete_pod(&node.pod());
        }
        node.lab.wait_until_told();
        node.before = node.holdings();
        node
    }

    pub(super) fn pod(&self) -> String {
        format!("web{}", self.number)
    }

    fn container(&self) -> String {
        format!("{}-{}", self.lab.namespace, self.pod())
    }

    /// Creates the next pod.
    pub(super) fn new_pod(&mut self) {
        self.number += 1;
        let pod = self.pod();
        self.uid = self.lab.pod(&pod, &json!({NETWORKS: FIRST}));
    }

    /// Makes requests of this kind meet the trouble. Returns whether one has met it.
    pub(super) fn inject(&self, trouble: Trouble, place: Request) -> Arc<AtomicBool> {
        let agent = Pid::from_raw(self.agent.pid().cast_signed());
        let happened = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&happened);
        self.lab.proxy.fault(move |method, path| {
            if !place.is(method, path) {
                return None;
            }
            seen.store(true, Ordering::Relaxed);
            Some(match trouble {
                Trouble::Answered(code) => Fault::Answer(code, "the matrix says so"),
                Trouble::Cut => Fault::HangUp,
                Trouble::Slow(pause) => Fault::Slow(pause),
                Trouble::Stale => Fault::Stale,
                Trouble::AgentKilled => {
                    let _ = kill(agent, Signal::SIGKILL);
                    Fault::HangUp
                }
            })
        });
        // The watches begin again, with a list.
        if place == Request::Read {
            self.lab.proxy.cut();
        }
        happened
    }

    /// Lets the agent see what it has missed. Starts another one if it was killed.
    pub(super) fn recover(&mut self, is_killed: bool) {
        if is_killed {
            self.agent.kill();
            self.agent = self.lab.start_agent();
        } else {
            self.lab.proxy.cut();
        }
    }

    /// Makes a call that should succeed, or lets an event happen.
    pub(super) fn attempt(&self, verb: Verb) -> Result<(), String> {
        let broken = self.lab.path("break");
        match verb {
            Verb::Break => fs::write(broken, "").unwrap(),
            Verb::BreakAdd => fs::write(broken, "ADD").unwrap(),
            Verb::Mend => drop(fs::remove_file(broken)),
            Verb::SelectFirst | Verb::SelectOthers => {
                let networks = if verb == Verb::SelectFirst {
                    FIRST
                } else {
                    OTHERS
                };
                let annotations = json!({"metadata": {"annotations": {NETWORKS: networks}}});
                let path = format!("{}/{}", self.lab.pods(), self.pod());
                self.lab.admin.merge(&path, &annotations);
            }
            Verb::BecomeDue => wall_clock::set(&self.lab.path("journal"), i64::from(u32::MAX)),
            _ => {
                let done = self.call(verb);
                if (done.exit == Some(0)) == (verb == Verb::OwedDel) {
                    return Err(format!("the {verb:?}: {done}"));
                }
            }
        }
        Ok(())
    }

    pub(super) fn call(&self, verb: Verb) -> Outcome {
        let mut conf = self.lab.conf().clone();
        let pod = self.pod();
        let sandbox = Sandbox {
            container: &pod,
            pod: &pod,
            uid: &self.uid,
            annotations: None,
        };
        let name = match verb {
            Verb::Add => "ADD",
            Verb::Del | Verb::OwedDel => "DEL",
            Verb::Check => "CHECK",
            Verb::Gc => "GC",
            Verb::Status => "STATUS",
            _ => return self.run(verb, &conf),
        };
        if matches!(verb, Verb::Gc | Verb::Status) {
            conf["cniVersion"] = json!("1.1.0");
            conf["cni.dev/valid-attachments"] = json!([]);
        }
        self.lab.start_with(name, &sandbox, conf).wait()
    }

    /// Runs a command, or one of the processes that STATUS starts.
    fn run(&self, verb: Verb, conf: &Value) -> Outcome {
        let file = self.lab.path("jackfield.conf");
        fs::write(&file, conf.to_string()).unwrap();
        let file = file.to_str().unwrap();
        let container = self.container();
        let arguments = match verb {
            Verb::Change => vec!["change", &container, "eth0"],
            Verb::Retry => vec!["retry", &container, "eth0"],
            Verb::Reconcile => vec!["reconcile", "--conf", file],
            verb => unreachable!("{verb:?}"),
        };
        let mut command = self.lab.on_the_node(&crate::lab::binary());
        command
            .args(arguments)
            .env("CNI_PATH", self.lab.path("bin"));
        command.stdin(fs::File::open(file).unwrap());
        Outcome::of(&mut command)
    }

    /// Whether the network-status lists the cluster network and these networks.
    pub(super) fn shows(&self, networks: [&str; 2]) -> bool {
        let status = self.lab.status(&self.pod()).unwrap_or_default();
        let entries = status.as_array().into_iter().flatten();
        let names: Vec<&str> = entries.filter_map(|it| it["name"].as_str()).collect();
        let [first, second] = networks.map(|name| format!("{}/{name}", self.lab.namespace));
        names == ["cluster", first.as_str(), second.as_str()]
    }

    /// Detaches the pod as a runtime does, and looks at everything.
    pub(super) fn clean_up(&self, place: Request) -> Vec<String> {
        let verb = if place == Request::Status {
            Verb::Gc
        } else {
            Verb::Del
        };
        let mut findings: Vec<String> = self.attempt(verb).err().into_iter().collect();
        self.lab.delete_pod(&self.pod());
        let netns = format!("{}-{}", self.lab.namespace, self.pod());
        let mut left = Vec::new();
        within(RECOVERS_WITHIN, || {
            left = self.holdings().differences(&self.before);
            left.is_empty()
        });
        findings.extend(left);
        let lock = format!("/run/jackfield/locks/{}.lock", self.container());
        if Path::new(&lock).exists() {
            findings.push(format!("left behind: file {lock}"));
        }
        let _ = Command::new("ip").args(["netns", "del", &netns]).status();
        findings
    }

    fn holdings(&self) -> Holdings {
        let container = self.container();
        let dirs = ["journal", "ipam"].map(|name| self.lab.path(name));
        let dirs = [&*dirs[0], &*dirs[1]];
        Holdings::of(
            Some(&self.lab.namespace),
            Some(&container),
            &dirs,
            &container,
        )
    }
}
