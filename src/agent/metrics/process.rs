//! Metrics of the agent's own process, such as its CPU time and memory. The metrics have the names
//! that the client libraries of Prometheus use.

use std::fmt;
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

/// The metrics of this process. The start time is stored. Each scrape reads the other values from
/// the kernel.
#[derive(Debug)]
pub(super) struct Process {
    started: Duration,
}

impl Process {
    /// Takes the current time as the start time of the process.
    pub(super) fn start() -> Process {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Process {
            started: now.unwrap_or_default(),
        }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let mut put = |name, help: &str, unit, metric: &dyn EncodeMetric| {
            let (help, kind) = (format!("{help}."), metric.metric_type());
            metric.encode(encoder.encode_descriptor(name, &help, unit, kind)?)
        };
        let (seconds, bytes) = (Some(&Unit::Seconds), Some(&Unit::Bytes));
        let [address_space, resident] = memory();
        let most_files = getrlimit(Resource::Nofile).current;
        let spent = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime));
        let spent = ConstCounter::new(spent.unwrap_or_default().as_secs_f64());
        let help = "Total user and system CPU time of the agent";
        put("process_cpu", help, seconds, &spent)?;
        for (name, help, unit, value) in [
            (
                "process_virtual_memory",
                "Address space of the agent",
                bytes,
                address_space,
            ),
            (
                "process_resident_memory",
                "Resident memory of the agent",
                bytes,
                resident,
            ),
            (
                "process_open_fds",
                "Files that the agent has open",
                None,
                open_files(),
            ),
            (
                "process_max_fds",
                "Maximum number of open files",
                None,
                most_files,
            ),
        ] {
            // Omit a value that the kernel does not report. Also omit the maximum number of open
            // files if there is no limit.
            if let Some(value) = value.and_then(|value| i64::try_from(value).ok()) {
                put(name, help, unit, &ConstGauge::new(value))?;
            }
        }
        let started = ConstGauge::new(self.started.as_secs_f64());
        let help = "Unix time at which the agent started";
        put("process_start_time", help, seconds, &started)
    }
}

/// Reads the size of the address space and the resident memory, in bytes (proc(5), `statm`).
fn memory() -> [Option<u64>; 2] {
    let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut words = pages.split(' ');
    let mut next = || {
        let pages: u64 = words.next()?.parse().ok()?;
        pages.checked_mul(page_size() as u64)
    };
    [next(), next()]
}

/// Returns the number of open files. Does not count the descriptor of `/proc/self/fd` itself.
fn open_files() -> Option<u64> {
    let entries = fs::read_dir("/proc/self/fd").ok()?;
    u64::try_from(entries.count()).ok()?.checked_sub(1)
}
