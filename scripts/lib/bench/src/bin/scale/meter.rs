//! What the API server, etcd and connections have used.

use std::collections::HashMap;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::Failure;

/// Ticks of the kernel's clock for processor time in a second.
const TICKS: u64 = 100;

/// Where the API server and etcd are.
#[derive(Debug)]
pub(crate) struct Meter {
    pub(crate) api_server: u32,
    pub(crate) etcd: u32,
}

/// Processor time so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    at: Instant,
    api_server: Duration,
    etcd: Duration,
}

/// Processor time between two readings.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Used {
    pub(crate) seconds: f64,
    /// Of kube-apiserver, in milliseconds.
    pub(crate) api_server: f64,
    /// Of etcd, in milliseconds.
    pub(crate) etcd: f64,
}

impl Used {
    /// What is over what an idle cluster uses in the same time.
    pub(crate) fn over(self, idle: Used) -> Used {
        let share = self.seconds / idle.seconds.max(0.001);
        Used {
            seconds: self.seconds,
            api_server: (self.api_server - idle.api_server * share).max(0.0),
            etcd: (self.etcd - idle.etcd * share).max(0.0),
        }
    }

    /// The share of one of `count`.
    pub(crate) fn per(self, count: usize) -> Used {
        let count = count.max(1) as f64;
        Used {
            seconds: self.seconds / count,
            api_server: self.api_server / count,
            etcd: self.etcd / count,
        }
    }
}

impl Meter {
    pub(crate) fn read(&self) -> Result<Reading, Failure> {
        Ok(Reading {
            at: Instant::now(),
            api_server: processor_time(self.api_server)?,
            etcd: processor_time(self.etcd)?,
        })
    }

    /// What was used since a reading.
    pub(crate) fn since(&self, before: Reading) -> Result<Used, Failure> {
        let now = self.read()?;
        let milliseconds = |from: Duration, to: Duration| (to - from).as_secs_f64() * 1000.0;
        Ok(Used {
            seconds: (now.at - before.at).as_secs_f64(),
            api_server: milliseconds(before.api_server, now.api_server),
            etcd: milliseconds(before.etcd, now.etcd),
        })
    }
}

fn processor_time(pid: u32) -> Result<Duration, Failure> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields = text.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|it| it.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 1000 / TICKS))
}

/// The bytes that the API server has sent over each connection that is open now, with those of TLS, by
/// process and port.
#[derive(Debug)]
pub(crate) struct Received(HashMap<(u32, u64), u64>);

impl Received {
    pub(crate) fn now() -> Result<Received, Failure> {
        let mut command = Command::new("ss");
        command.args(["-tinpHO", "dport", "=", ":16443"]);
        #[allow(
            clippy::disallowed_methods,
            reason = "it starts nothing that outlives it"
        )]
        let output = command.output()?;
        let mut bytes = HashMap::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let port = after(line, "127.0.0.1:");
            if let (Some(pid), Some(port), Some(count)) =
                (after(line, "pid="), port, after(line, "bytes_received:"))
            {
                bytes.insert((u32::try_from(pid)?, port), count);
            }
        }
        Ok(Received(bytes))
    }

    /// What these processes have received since then. What came over connections that are closed
    /// again does not count.
    pub(crate) fn by(pids: &[u32], before: &Received) -> Result<f64, Failure> {
        let now = Received::now()?.0;
        let ours = now.iter().filter(|((pid, _), _)| pids.contains(pid));
        let more = ours.map(|(connection, count)| {
            let earlier = before.0.get(connection).copied().unwrap_or_default();
            count.saturating_sub(earlier)
        });
        Ok(more.sum::<u64>() as f64)
    }
}

fn after(line: &str, name: &str) -> Option<u64> {
    let (_, rest) = line.split_once(name)?;
    let end = rest.find(|it: char| !it.is_ascii_digit());
    rest.get(..end.unwrap_or(rest.len()))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_ss_has_a_process_and_its_bytes() {
        let line = r#"ESTAB 0 0 127.0.0.1:4 127.0.0.1:16443 users:(("a",pid=17,fd=9)) cubic bytes_sent:5 bytes_received:6022 segs"#;
        assert_eq!(after(line, "127.0.0.1:"), Some(4));
        assert_eq!(after(line, "pid="), Some(17));
        assert_eq!(after(line, "bytes_received:"), Some(6022));
        assert_eq!(after(line, "no:"), None);
    }

    #[test]
    fn what_an_idle_cluster_uses_is_not_counted() {
        let used = |seconds, api_server| Used {
            seconds,
            api_server,
            etcd: 0.0,
        };
        let over = used(2.0, 50.0).over(used(10.0, 100.0)).per(3);
        assert!((over.api_server - 10.0).abs() < 1e-9, "{over:?}");
    }
}
