//! Calls as the runtime makes them, and as people do.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use super::{Lab, netns_path};
use crate::table::call::{Call, Verb};

impl Lab {
    /// Makes a call that must succeed, or lets an event happen.
    pub(crate) fn act(&self, verb: Verb) {
        let done = self.attempt(Call::of(verb));
        assert!(done.is_ok(), "without any fault: {}", done.unwrap_err());
    }

    /// Makes a call, or lets an event happen.
    ///
    /// # Errors
    /// What the call said, if it failed or printed something unexpected.
    pub(crate) fn attempt(&self, call: Call) -> Result<(), String> {
        let broken = self.control("break-management");
        match call.verb {
            Verb::Break => fs::write(broken, "").unwrap(),
            Verb::BreakAdd => fs::write(broken, "ADD").unwrap(),
            Verb::Mend => drop(fs::remove_file(broken)),
            Verb::SelectFirst | Verb::SelectOthers => self.select_for(call.verb),
            Verb::BecomeDue => self.set_clock(i64::from(u32::MAX)),
            _ => return self.succeeds(call),
        }
        Ok(())
    }

    fn succeeds(&self, call: Call) -> Result<(), String> {
        let done = self.command(call).output().unwrap();
        let expected = call.verb != Verb::OwedDel;
        let is_silent = call.verb != Verb::Del || done.stdout.is_empty();
        if done.status.success() == expected && is_silent {
            return Ok(());
        }
        Err(format!("the {:?}: {}", call.verb, said(&done)))
    }

    /// The command of a call.
    pub(crate) fn command(&self, call: Call) -> Command {
        self.with_arguments(Command::new(&self.program), call)
    }

    /// The command of a call under strace with `options`. Strace follows only the main thread.
    pub(crate) fn traced(&self, verb: Verb, options: &[String]) -> Command {
        let mut command = Command::new("strace");
        let _ = fs::remove_file(self.trace_path());
        command.args(["-qq", "-y", "-o"]).arg(self.trace_path());
        command.args(options).arg(&self.program);
        self.with_arguments(command, Call::of(verb))
    }

    /// The command of a call for which the monotonic clock and the clock of the boot are ahead.
    pub(crate) fn in_time_namespace(&self, verb: Verb, seconds: u32) -> Command {
        let mut command = Command::new("unshare");
        let seconds = seconds.to_string();
        command.args(["--time", "--boottime", &seconds]);
        command.args(["--monotonic", &seconds]).arg(&self.program);
        self.with_arguments(command, Call::of(verb))
    }

    /// What strace has written so far.
    pub(crate) fn trace(&self) -> String {
        let bytes = fs::read(self.trace_path()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn trace_path(&self) -> PathBuf {
        self.control("trace")
    }

    fn with_arguments(&self, mut command: Command, call: Call) -> Command {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(self.stdin(call.verb))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let plugins = self.path("bin");
        match call.verb {
            Verb::Change | Verb::Retry => {
                let worker = if call.verb == Verb::Change {
                    "change"
                } else {
                    "retry"
                };
                command.args([worker, &self.container, "eth0"]);
                return self.with_path(command);
            }
            Verb::Reconcile => {
                let conf = self.conf(call.verb).to_string();
                fs::write(self.control("jackfield.conf"), conf).unwrap();
                command.args(["reconcile", "--conf"]);
                command.arg(self.control("jackfield.conf"));
                command.arg("--cni-path").arg(plugins);
                return command;
            }
            Verb::Install => {
                command.args(["install", "--wait", "0s", "--conf"]);
                command.arg(self.path("template.json"));
                return self.with_place(command);
            }
            Verb::Uninstall => {
                command.arg("uninstall").arg("--cni-path").arg(plugins);
                return self.with_place(command);
            }
            _ => {}
        }
        let netns = if call.with_netns {
            netns_path()
        } else {
            PathBuf::new()
        };
        command
            .env("CNI_COMMAND", name(call.verb))
            .env("CNI_CONTAINERID", &self.container)
            .env("CNI_NETNS", netns)
            .env("CNI_IFNAME", "eth0")
            .env(
                "CNI_ARGS",
                "IgnoreUnknown=1;K8S_POD_NAMESPACE=demo;K8S_POD_NAME=web",
            );
        self.with_path(command)
    }

    fn with_path(&self, mut command: Command) -> Command {
        command.env("CNI_PATH", self.path("bin"));
        command
    }

    fn with_place(&self, mut command: Command) -> Command {
        command.arg("--conf-dir").arg(self.path("net.d"));
        command.arg("--bin-dir").arg(self.path("cni-bin"));
        command
    }

    fn stdin(&self, verb: Verb) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(self.conf(verb).to_string().as_bytes())
            .unwrap();
        file.rewind().unwrap();
        file
    }
}

fn name(verb: Verb) -> &'static str {
    match verb {
        Verb::Add => "ADD",
        Verb::Del | Verb::OwedDel => "DEL",
        Verb::Check => "CHECK",
        Verb::Gc => "GC",
        Verb::Status => "STATUS",
        verb => unreachable!("{verb:?} is no verb of CNI"),
    }
}

/// Whether the verb answers as CNI demands.
fn is_of_cni(verb: Verb) -> bool {
    matches!(
        verb,
        Verb::Add | Verb::Del | Verb::Check | Verb::Gc | Verb::Status
    )
}

/// What is wrong with the way in which a call ended: a panic, or a failure without a CNI error.
pub(crate) fn bad_end(verb: Verb, done: &Output) -> Option<String> {
    let is_error = || {
        let answer: Value = serde_json::from_slice(&done.stdout).unwrap_or(json!(null));
        answer["code"].is_u64() && answer["msg"].is_string()
    };
    match done.status.code() {
        Some(0) => None,
        Some(1) if !is_of_cni(verb) || is_error() => None,
        _ => Some(format!("the walked {verb:?}: {}", said(done))),
    }
}

/// How a call ended, with its output.
pub(crate) fn said(done: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    let (out, err) = (text(&done.stdout), text(&done.stderr));
    format!("{}: {out} {err}", done.status)
}
