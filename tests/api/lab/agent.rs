//! The agent, as the process that it is.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::{Lab, eventually};

/// A running agent; it ends with its test.
pub(crate) struct AgentProcess {
    child: Child,
    log: PathBuf,
    port: u16,
}

impl AgentProcess {
    /// Starts one on the lab's node and waits for nothing.
    pub(crate) fn start(lab: &Lab) -> AgentProcess {
        AgentProcess::start_with(lab, &[])
    }

    /// The same with further arguments.
    pub(crate) fn start_with(lab: &Lab, arguments: &[&str]) -> AgentProcess {
        AgentProcess::start_under(lab, &[], arguments)
    }

    /// The same by a program that becomes the agent.
    pub(crate) fn start_under(lab: &Lab, before: &[&str], arguments: &[&str]) -> AgentProcess {
        static AGENTS: AtomicU32 = AtomicU32::new(0);
        let log = lab.path(&format!(
            "agent-{}.log",
            AGENTS.fetch_add(1, Ordering::Relaxed)
        ));
        let port = super::port();
        let journal = lab.path("journal");
        let binary = super::binary();
        let words: Vec<&str> = before.iter().copied().chain([&*binary]).collect();
        let child = Command::new(words[0])
            .args(&words[1..])
            .args(["agent", "--node", &lab.node])
            .args(["--metrics", &format!("127.0.0.1:{port}")])
            .arg("--kubeconfig")
            .arg(lab.path("kubeconfig"))
            .arg("--socket")
            .arg(lab.socket())
            .args(arguments)
            .args(
                ["--journal-dir", journal.to_str().unwrap()]
                    .iter()
                    .filter(|_| !arguments.contains(&"--journal-dir")),
            )
            .args(
                ["--log", "json"]
                    .iter()
                    .filter(|_| !arguments.contains(&"--log")),
            )
            .env_clear()
            .stdin(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        AgentProcess { child, log, port }
    }

    /// Waits until it has both lists.
    #[track_caller]
    pub(crate) fn wait_until_ready(&self) {
        eventually("the agent is ready", || {
            self.get("/readyz").starts_with("HTTP/1.1 200")
        });
    }

    /// A page, head and all; empty when nobody answers.
    pub(crate) fn get(&self, path: &str) -> String {
        self.get_as(path, "*/*")
    }

    /// The metrics as this `Accept` asks for them: `Content-Type` and page.
    pub(crate) fn scrape(&self, accept: &str) -> (String, String) {
        let answer = self.get_as("/metrics", accept);
        let (head, page) = answer.split_once("\r\n\r\n").unwrap();
        let mut lines = head.lines();
        let kind = lines.find_map(|line| line.strip_prefix("content-type: "));
        (kind.unwrap().to_owned(), page.to_owned())
    }

    fn get_as(&self, path: &str, accept: &str) -> String {
        let mut answer = String::new();
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
            let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\naccept: {accept}\r\n\r\n");
            let _ = stream.write_all(request.as_bytes());
            let _ = stream.read_to_string(&mut answer);
        }
        answer
    }

    /// The value of a metric, named with its labels.
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        let page = self.get("/metrics");
        let line = page.lines().find(|line| line.starts_with(name))?;
        line.rsplit(' ').next()?.trim().parse().ok()
    }

    /// Waits until the agent's watch has shown so many pods of a test, and the agent keeps so many
    /// definitions that they select.
    #[track_caller]
    pub(crate) fn wait_until_it_knows(&self, pods: u32, definitions: u32) {
        for (kind, count) in [("pod", pods), ("definition", definitions)] {
            let metric = format!(r#"jackfield_cached_objects{{kind="{kind}"}}"#);
            eventually("the agent knows them", || {
                self.metric(&metric) == Some(f64::from(count))
            });
        }
    }

    /// The log so far, a JSON object a line.
    pub(crate) fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.log).unwrap();
        text.lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|_| Value::String(line.to_owned()))
            })
            .collect()
    }

    /// Whether a line of the log holds all of `words`.
    pub(crate) fn logged(&self, words: &[&str]) -> bool {
        let lines = self.log();
        lines
            .iter()
            .any(|line| words.iter().all(|word| line.to_string().contains(word)))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A field of /proc/PID/status.
    pub(crate) fn status(&self, field: &str) -> String {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = text.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    }

    /// Ends it at once, as the kernel would.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid().cast_signed()), signal).unwrap();
    }

    /// Waits for its end; the answer is the exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let mut status = None;
        eventually("the agent ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!(
                "the agent's log:\n{}",
                fs::read_to_string(&self.log).unwrap_or_default()
            );
        }
    }
}
