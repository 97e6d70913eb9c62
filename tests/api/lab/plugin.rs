//! The plugin, called as the runtime calls it.

use std::fmt;
use std::fs;
use std::io::{Seek, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Lab;

/// What came of a call.
pub(crate) struct Outcome {
    pub(crate) exit: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

/// A call under way.
pub(crate) struct Running {
    pub(crate) child: Child,
    started: Instant,
    out: std::fs::File,
    err: std::fs::File,
}

/// Who is meant by a call.
pub(crate) struct Sandbox<'a> {
    pub(crate) container: &'a str,
    pub(crate) pod: &'a str,
    pub(crate) uid: &'a str,
    /// The annotations that the runtime hands over, if it does.
    pub(crate) annotations: Option<Value>,
}

impl Lab {
    /// ADD for a pod whose annotations the API alone knows.
    pub(crate) fn add(&self, pod: &str, uid: &str) -> Outcome {
        self.call(
            "ADD",
            &Sandbox {
                container: pod,
                pod,
                uid,
                annotations: None,
            },
        )
    }

    /// DEL of the same.
    pub(crate) fn del(&self, pod: &str, uid: &str) -> Outcome {
        self.call(
            "DEL",
            &Sandbox {
                container: pod,
                pod,
                uid,
                annotations: None,
            },
        )
    }

    /// A call to its end.
    pub(crate) fn call(&self, verb: &str, sandbox: &Sandbox<'_>) -> Outcome {
        self.start(verb, sandbox).wait()
    }

    /// A call that is begun. Each container has a network namespace of its own.
    pub(crate) fn start(&self, verb: &str, sandbox: &Sandbox<'_>) -> Running {
        self.start_with(verb, sandbox, self.conf.clone())
    }

    /// The same with a node configuration of its own.
    pub(crate) fn start_with(&self, verb: &str, sandbox: &Sandbox<'_>, mut conf: Value) -> Running {
        let netns = format!("{}-{}", self.namespace, sandbox.container);
        let path = format!("/run/netns/{netns}");
        if verb == "ADD" && !std::path::Path::new(&path).exists() {
            let made = Command::new("ip")
                .args(["netns", "add", &netns])
                .status()
                .unwrap();
            assert!(made.success());
        }
        if let Some(annotations) = &sandbox.annotations {
            conf["runtimeConfig"] = json!({"io.kubernetes.cri.pod-annotations": annotations});
        }
        let mut stdin = tempfile::tempfile().unwrap();
        stdin.write_all(conf.to_string().as_bytes()).unwrap();
        stdin.rewind().unwrap();
        let (out, err) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let args = format!(
            "K8S_POD_UID={};IgnoreUnknown=1;K8S_POD_NAMESPACE={};K8S_POD_NAME={}",
            sandbox.uid, self.namespace, sandbox.pod
        );
        let binary = super::binary();
        let child = self
            .on_the_node(&binary)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("CNI_COMMAND", verb)
            .env(
                "CNI_CONTAINERID",
                format!("{}-{}", self.namespace, sandbox.container),
            )
            .env("CNI_NETNS", &path)
            .env("CNI_IFNAME", "eth0")
            .env("CNI_ARGS", args)
            .env("CNI_PATH", super::cni_bin())
            .stdin(stdin)
            .stdout(out.try_clone().unwrap())
            .stderr(err.try_clone().unwrap())
            .spawn()
            .unwrap();
        Running {
            child,
            started: Instant::now(),
            out,
            err,
        }
    }

    /// A program in the node's network namespace.
    pub(crate) fn on_the_node(&self, program: &str) -> Command {
        let mut words = vec!["ip", "netns", "exec", &self.namespace];
        let netns = format!("--net=/run/netns/{}", self.namespace);
        if !self.has_own_sysfs {
            words = vec!["nsenter", &netns];
        }
        if self.beside_the_api_server {
            words = Vec::new();
        }
        words.push(program);
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        command
    }

    /// The interfaces of a container.
    pub(crate) fn interfaces(&self, container: &str) -> Vec<String> {
        let netns = format!("{}-{container}", self.namespace);
        let child = Command::new("ip")
            .args(["-n", &netns, "-json", "link"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let links: Value =
            serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap_or_default();
        let names = links
            .as_array()
            .into_iter()
            .flatten()
            .map(|link| link["ifname"].as_str().unwrap());
        names
            .filter(|name| *name != "lo")
            .map(str::to_owned)
            .collect()
    }
}

impl Running {
    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Outcome {
        let status = self.child.wait().unwrap();
        let took = self.started.elapsed();
        let text = |file: &mut std::fs::File| {
            file.rewind().unwrap();
            std::io::read_to_string(file).unwrap()
        };
        Outcome {
            exit: status.code(),
            stdout: text(&mut self.out),
            stderr: text(&mut self.err),
            took,
        }
    }
}

impl Outcome {
    /// Runs a command to its end.
    pub(crate) fn of(command: &mut Command) -> Outcome {
        let started = Instant::now();
        let done = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Outcome {
            exit: done.status.code(),
            stdout: text(&done.stdout),
            stderr: text(&done.stderr),
            took: started.elapsed(),
        }
    }

    /// The call succeeded.
    #[track_caller]
    pub(crate) fn succeeds(self) -> Outcome {
        assert_eq!(self.exit, Some(0), "{self}");
        self
    }

    /// The call failed with this code, in one line that holds all of `words`.
    #[track_caller]
    pub(crate) fn fails(self, code: u64, words: &[&str]) -> Outcome {
        let error: Value = serde_json::from_str(&self.stdout).unwrap_or_default();
        assert_eq!(error["code"], code, "{self}");
        let message = error["msg"].as_str().unwrap();
        assert!(!message.contains('\n'), "{self}");
        for word in words {
            assert!(message.contains(word), "{word:?} is missing: {message}");
        }
        self
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit {:?}\n{}\n{}", self.exit, self.stdout, self.stderr)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.beside_the_api_server {
            let bridge = super::bridge_name(&self.namespace);
            let _ = Command::new("ip").args(["link", "del", &bridge]).status();
        }
        let Ok(entries) = fs::read_dir("/run/netns") else {
            return;
        };
        let mine = format!("{}-", self.namespace);
        for entry in entries.flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            if name == self.namespace || name.starts_with(&mine) {
                let _ = Command::new("ip").args(["netns", "del", &name]).status();
            }
        }
    }
}
