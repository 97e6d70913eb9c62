//! A named network namespace that ends with its test.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// `ip netns add` shares a folder's mount with all others; one at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A network namespace below `/run/netns`.
pub(crate) struct Netns {
    name: String,
    gone: AtomicBool,
}

impl Netns {
    /// A new one.
    pub(crate) fn new(name: &str) -> Netns {
        let _turn = ONE_AT_A_TIME.lock();
        run("ip", &["netns", "add", name]);
        Netns {
            name: name.to_owned(),
            gone: AtomicBool::new(false),
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What a runtime gives as CNI_NETNS.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from("/run/netns").join(&self.name)
    }

    /// `ip` within, for what a test changes: words separated by blanks.
    pub(crate) fn ip(&self, words: &str) -> String {
        let words: Vec<&str> = words.split_whitespace().collect();
        run("ip", &[&["-n", &self.name], &words[..]].concat())
    }

    /// `ip -json` within.
    pub(crate) fn show(&self, words: &str) -> Vec<Value> {
        let text = self.ip(&format!("-json -details {words}"));
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// The addresses on an interface, as `10.1.1.5/24`, without link-local ones.
    pub(crate) fn addresses(&self, link: &str) -> Vec<String> {
        let shown = self.show(&format!("addr show dev {link}"));
        let infos = shown
            .iter()
            .flat_map(|link| link["addr_info"].as_array().cloned().unwrap_or_default());
        infos
            .filter(|info| info["scope"] != "link")
            .map(|info| format!("{}/{}", info["local"].as_str().unwrap(), info["prefixlen"]))
            .collect()
    }

    /// The MAC address of an interface.
    pub(crate) fn mac(&self, link: &str) -> String {
        let shown = self.show(&format!("link show dev {link}"));
        shown[0]["address"].as_str().unwrap().to_owned()
    }

    /// The names of its interfaces besides `lo`, sorted.
    pub(crate) fn links(&self) -> Vec<String> {
        let shown = self.show("link show");
        let names = shown
            .iter()
            .map(|link| link["ifname"].as_str().unwrap().to_owned());
        let mut names: Vec<String> = names.filter(|name| name != "lo").collect();
        names.sort();
        names
    }

    /// The default routes of both families as `10.1.1.1 dev net1 metric 0`.
    pub(crate) fn default_routes(&self) -> Vec<String> {
        let both = ["-4 route show default", "-6 route show default"];
        let shown = both.iter().flat_map(|words| self.show(words));
        shown
            .map(|route| {
                format!(
                    "{} dev {} metric {}",
                    route["gateway"].as_str().unwrap_or("-"),
                    route["dev"].as_str().unwrap_or("-"),
                    route["metric"].as_u64().unwrap_or(0)
                )
            })
            .collect()
    }

    /// The processes within, as `PID command`.
    pub(crate) fn processes(&self) -> Vec<(i32, String)> {
        if self.gone.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let pids = run("ip", &["netns", "pids", &self.name]);
        let pids = pids.lines().filter_map(|pid| pid.trim().parse().ok());
        pids.map(|pid: i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            (pid, String::from_utf8_lossy(&line).replace('\0', " "))
        })
        .collect()
    }

    /// Ends what a failed test left running within.
    pub(crate) fn end_processes(&self) {
        for (pid, _) in self.processes() {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }

    /// The namespace vanishes before its time.
    pub(crate) fn delete(&self) {
        if !self.gone.swap(true, Ordering::Relaxed) {
            run("ip", &["netns", "del", &self.name]);
        }
    }

    /// Whether it was deleted.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        if !self.is_gone() {
            let _ = Command::new("ip")
                .args(["netns", "del", &self.name])
                .stderr(Stdio::null())
                .status();
        }
    }
}

/// Runs a command that is to succeed: its output.
#[allow(
    clippy::disallowed_methods,
    reason = "these commands leave no grandchildren that hold stdout"
)]
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}; scripts/test installs it"));
    assert!(
        output.status.success(),
        "{program} {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
