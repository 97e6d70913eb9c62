//! What happens beside the calls: the agent's processor time and memory, what it owes the cluster,
//! and requests to the API server.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

/// The agent, its directory of owed writes, and the API server's audit log, as the environment names
/// them: `AGENT`, `OWED`, `AUDIT_LOG`.
#[derive(Debug)]
pub(crate) struct Background {
    agent: Option<String>,
    owed: Option<PathBuf>,
    audit_log: Option<PathBuf>,
}

/// A moment in both.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moment {
    /// The agent's processor time so far.
    pub(crate) cpu: Duration,
    /// How long the log is.
    log: u64,
}

/// Requests to the API server, by their kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requests {
    /// Objects and lists read.
    pub(crate) reads: usize,
    /// Pods' status written.
    pub(crate) status: usize,
    /// Events made.
    pub(crate) events: usize,
    /// Anything else.
    pub(crate) others: usize,
}

impl Background {
    pub(crate) fn of_environment() -> Background {
        Background {
            agent: std::env::var("AGENT").ok(),
            owed: std::env::var_os("OWED").map(PathBuf::from),
            audit_log: std::env::var_os("AUDIT_LOG").map(PathBuf::from),
        }
    }

    /// Now.
    pub(crate) fn now(&self) -> Moment {
        Moment {
            cpu: self.agent.as_deref().map(cpu).unwrap_or_default(),
            log: self.log_length(),
        }
    }

    /// Whether the agent still owes the cluster something.
    pub(crate) fn owes(&self) -> bool {
        let owed = self.owed.as_ref().and_then(|owed| fs::read_dir(owed).ok());
        owed.is_some_and(|mut files| files.next().is_some())
    }

    /// How long the audit log is: it grows with each request that has come to its end.
    pub(crate) fn log_length(&self) -> u64 {
        let length = |path: &PathBuf| fs::metadata(path).map_or(0, |log| log.len());
        self.audit_log.as_ref().map_or(0, length)
    }

    /// The requests between two moments; those of the cluster itself and of whoever set it up do
    /// not count.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub(crate) fn requests(&self, from: Moment, to: Moment) -> Result<Requests, String> {
        let mut requests = Requests::default();
        let Some(path) = &self.audit_log else {
            return Ok(requests);
        };
        let failed = |cause: &dyn std::fmt::Display| format!("{}: {cause}", path.display());
        let mut log = fs::File::open(path).map_err(|cause| failed(&cause))?;
        log.seek(SeekFrom::Start(from.log))
            .map_err(|cause| failed(&cause))?;
        let mut text = String::new();
        log.take(to.log.saturating_sub(from.log))
            .read_to_string(&mut text)
            .map_err(|cause| failed(&cause))?;
        for line in text.lines() {
            let entry: Value = serde_json::from_str(line).map_err(|cause| failed(&cause))?;
            let by = entry["user"]["username"].as_str().unwrap_or_default();
            if by.starts_with("system:serviceaccount:") {
                requests.count(&entry);
            }
        }
        Ok(requests)
    }
}

impl Requests {
    fn count(&mut self, entry: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let object = &entry["objectRef"];
        let verb = text(&entry["verb"]);
        let (resource, part) = (text(&object["resource"]), text(&object["subresource"]));
        match (verb.as_str(), resource.as_str(), part.as_str()) {
            ("watch", ..) => {}
            ("get" | "list", ..) => self.reads += 1,
            ("patch" | "update", "pods", "status") => self.status += 1,
            ("create" | "patch", "events", _) => self.events += 1,
            _ => self.others += 1,
        }
    }

    /// Takes those of another call in.
    pub(crate) fn add(&mut self, more: Requests) {
        self.reads += more.reads;
        self.status += more.status;
        self.events += more.events;
        self.others += more.others;
    }

    /// All of them.
    pub(crate) fn sum(self) -> usize {
        self.reads + self.status + self.events + self.others
    }
}

/// The processor time of a process, all its threads together, to the nanosecond.
fn cpu(pid: &str) -> Duration {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Duration::ZERO;
    };
    let nanoseconds = threads.flatten().filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// What a process has in memory, in MiB: all of it, what is its own and in no file, and the most that
/// it ever had.
///
/// # Errors
/// When it is gone.
pub(crate) fn memory(pid: &str) -> Result<(f64, f64, f64), String> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).map_err(|cause| format!("{path}: {cause}"))?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next());
        let kib = number.and_then(|number| number.parse::<f64>().ok());
        kib.map(|kib| kib / 1024.0)
            .ok_or_else(|| format!("{path} has no {name}"))
    };
    Ok((field("VmRSS:")?, field("RssAnon:")?, field("VmHWM:")?))
}
