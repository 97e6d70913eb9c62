//! Installing on a node, staying there, and leaving it: with the real binary, a runtime's
//! directories, and libcni (cnitool) as the runtime that reads them.

mod bad;
mod doctor;
mod install;
mod migration;
mod ownership;
mod refusal;
mod takeover;
mod uninstall;
mod watch;

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::lab::{Call, Lab, Outcome, POD, real_plugins};

/// What the cluster network's file is called.
const CLUSTER: &str = "10-cluster.conflist";
/// What ours is called.
const OURS: &str = "00-jackfield.conflist";

/// A node with a runtime's directories, on which nothing of ours is installed.
struct Setup {
    lab: Lab,
}

impl Setup {
    /// A node whose cluster network is configured.
    fn new() -> Setup {
        let setup = Setup::bare();
        setup.cluster_network(CLUSTER, "cluster");
        setup
    }

    /// A node whose cluster network has not come yet.
    fn bare() -> Setup {
        let mut lab = Lab::new();
        fs::create_dir(lab.path("net.d")).unwrap();
        fs::create_dir(lab.path("cni-bin")).unwrap();
        for plugin in ["bridge", "host-local", "ptp"] {
            fs::copy(
                real_plugins().join(plugin),
                lab.path("cni-bin").join(plugin),
            )
            .unwrap();
        }
        lab.configure("binDir", json!(lab.path("cni-bin")));
        lab.configure("clusterNetwork", Value::Null);
        lab.write("template.json", &lab.conf().to_string());
        Setup { lab }
    }

    /// Puts a cluster network into the runtime's directory, whole from the beginning.
    fn cluster_network(&self, file: &str, name: &str) -> String {
        let mut bridge = self.lab.bridge("cni0", "10.10.0.0/24");
        bridge["ipam"]["dataDir"] = json!(self.lab.path("ipam"));
        let text = json!({ "cniVersion": "1.0.0", "name": name, "plugins": [bridge] }).to_string();
        self.lab.write("elsewhere/new", &text);
        fs::rename(
            self.lab.path("elsewhere/new"),
            self.lab.path("net.d").join(file),
        )
        .unwrap();
        text
    }

    /// The flags that say where everything is.
    fn place(&self) -> Vec<String> {
        let path = |name: &str| self.lab.path(name).display().to_string();
        vec![
            "--conf-dir".to_owned(),
            path("net.d"),
            "--bin-dir".to_owned(),
            path("cni-bin"),
        ]
    }

    /// A command about this node's installation.
    fn command(&self, command: &str, more: &[&str]) -> Call {
        let mut arguments = vec![command.to_owned()];
        arguments.extend(self.place());
        arguments.extend(more.iter().map(|&it| it.to_owned()));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.lab.cli(&arguments)
    }

    /// `install` with the lab's configuration, which waits for nothing.
    fn install(&self, more: &[&str]) -> Outcome {
        self.install_within("0s", more)
    }

    fn install_within(&self, wait: &str, more: &[&str]) -> Outcome {
        let template = self.lab.path("template.json").display().to_string();
        let mut arguments = vec!["--conf", &template, "--wait", wait];
        arguments.extend(more);
        self.command("install", &arguments).run()
    }

    /// `install`, which is to succeed.
    #[track_caller]
    fn installed(&self) -> Outcome {
        let outcome = self.install(&[]);
        assert_eq!(outcome.exit, 0, "{outcome}");
        outcome
    }

    fn uninstall(&self, more: &[&str]) -> Outcome {
        let plugins = real_plugins().display().to_string();
        let mut arguments = vec!["--cni-path", plugins.as_str()];
        arguments.extend(more);
        self.command("uninstall", &arguments).run()
    }

    /// Every file of the runtime's directories with its bytes.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.lab.path("net.d"), self.lab.path("cni-bin")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else {
                    found.push((entry.path(), fs::read(entry.path()).unwrap()));
                }
            }
        }
        found.sort();
        found
    }

    /// A file of the runtime's directory, read.
    fn conf(&self, name: &str) -> Value {
        let path = self.lab.path("net.d").join(name);
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    }

    /// The first configuration in the runtime's order.
    fn first(&self) -> String {
        let mut names: Vec<String> = fs::read_dir(self.lab.path("net.d"))
            .unwrap()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| {
                [".conf", ".conflist", ".json"]
                    .iter()
                    .any(|end| name.ends_with(end))
            })
            .collect();
        names.sort();
        names.remove(0)
    }

    /// libcni with the node's first configuration: `add`, `check`, `del`, `status`.
    fn runtime(&self, command: &str) -> Output {
        let lab = &self.lab;
        let (namespace, name) = POD.split_once('/').unwrap();
        let network = self.conf(&self.first())["name"]
            .as_str()
            .unwrap()
            .to_owned();
        Command::new("ip")
            .args(["netns", "exec", lab.node.name()])
            .arg(crate::reference_runtime::cnitool())
            .args([command, &network])
            .arg(lab.pod.path())
            .env("NETCONFPATH", lab.path("net.d"))
            .env("CNI_PATH", lab.path("cni-bin"))
            .env("CNI_IFNAME", "eth0")
            .env(
                "CNI_ARGS",
                format!("IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name}"),
            )
            .output()
            .unwrap()
    }

    /// The same, which is to succeed.
    #[track_caller]
    fn runs(&self, command: &str) {
        let output = self.runtime(command);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{command}: {out} {err}");
    }

    /// `install --watch` with the lab's configuration.
    fn watch(&self, more: &[&str]) -> Watching {
        self.start(&[&["--watch"], more].concat())
    }

    /// `install` with the lab's configuration, which goes on while others do something.
    fn start(&self, more: &[&str]) -> Watching {
        self.start_by(Command::new(env!("CARGO_BIN_EXE_jackfield")), more)
    }

    /// The same by a program that runs the binary.
    fn start_by(&self, mut program: Command, more: &[&str]) -> Watching {
        let log = self.lab.path("log/watch");
        let child = program
            .arg("install")
            .args(self.place())
            .arg("--conf")
            .arg(self.lab.path("template.json"))
            .args(more)
            .stdin(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Watching { child, log }
    }
}

/// A running `install --watch`; it ends with its test.
struct Watching {
    child: Child,
    log: PathBuf,
}

impl Watching {
    /// Everything that it has said.
    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Whether it still runs.
    fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until it has said `words`.
    #[track_caller]
    fn says(&self, words: &str) {
        eventually(words, || self.log().contains(words), || self.log());
    }

    /// Tells it to end; the answer is its exit code.
    fn end(mut self) -> Option<i32> {
        kill(
            Pid::from_raw(self.child.id().cast_signed()),
            Signal::SIGTERM,
        )
        .unwrap();
        self.child.wait().unwrap().code()
    }

    /// Waits for its end by itself.
    #[track_caller]
    fn gives_up(mut self) -> (Option<i32>, String) {
        let mut status = None;
        let child = &mut self.child;
        let log = self.log.clone();
        eventually(
            "the end",
            || {
                status = child.try_wait().unwrap();
                status.is_some()
            },
            || fs::read_to_string(&log).unwrap(),
        );
        (
            status.unwrap().code(),
            fs::read_to_string(&self.log).unwrap(),
        )
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for something that is to come true within half a minute.
#[track_caller]
fn eventually(what: &str, mut is_so: impl FnMut() -> bool, tell: impl Fn() -> String) {
    let until = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(
            Instant::now() < until,
            "not within 30 s: {what}\n{}",
            tell()
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}
