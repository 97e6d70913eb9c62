//! The resources of the agent itself, under the names of Prometheus' client libraries.

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

/// This process, read at each scrape.
#[derive(Debug)]
pub(super) struct Process {
    started: Duration,
}

impl Process {
    /// Begins with the process.
    pub(super) fn start() -> Process {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Process {
            started: now.unwrap_or_default(),
        }
    }
}

impl Collector for Process {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let mut page = Page(encoder);
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let spent = Duration::new(
            u64::try_from(cpu.tv_sec).unwrap_or_default(),
            u32::try_from(cpu.tv_nsec).unwrap_or_default(),
        );
        let cpu = ConstCounter::new(spent.as_secs_f64());
        let (seconds, bytes) = (Some(&Unit::Seconds), Some(&Unit::Bytes));
        page.put(
            "process_cpu",
            "CPU time of the agent, user and system",
            seconds,
            &cpu,
        )?;
        let [virtual_size, resident] = memory();
        page.gauge(
            "process_virtual_memory",
            "Address space of the agent",
            bytes,
            virtual_size,
        )?;
        page.gauge(
            "process_resident_memory",
            "Resident memory of the agent",
            bytes,
            resident,
        )?;
        page.gauge(
            "process_open_fds",
            "Files that the agent has open",
            None,
            open_files(),
        )?;
        let most = getrlimit(Resource::Nofile).current;
        page.gauge(
            "process_max_fds",
            "Maximum number of open files",
            None,
            most,
        )?;
        let started = ConstGauge::new(self.started.as_secs_f64());
        page.put(
            "process_start_time",
            "Start time of the agent, since 1970",
            seconds,
            &started,
        )
    }
}

struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    fn put(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        metric: &impl EncodeMetric,
    ) -> fmt::Result {
        let kind = metric.metric_type();
        metric.encode(
            self.0
                .encode_descriptor(name, &format!("{help}."), unit, kind)?,
        )
    }

    /// Values that the kernel does not report are left out.
    fn gauge(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        value: Option<u64>,
    ) -> fmt::Result {
        match value.and_then(|value| i64::try_from(value).ok()) {
            Some(value) => self.put(name, help, unit, &ConstGauge::new(value)),
            None => Ok(()),
        }
    }
}

/// Address space and resident memory, in bytes (proc(5), `statm`).
fn memory() -> [Option<u64>; 2] {
    let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut words = pages.split(' ');
    let mut next = || {
        let pages: u64 = words.next()?.parse().ok()?;
        pages.checked_mul(page_size() as u64)
    };
    [next(), next()]
}

/// All but the one that is open to count them.
fn open_files() -> Option<u64> {
    let entries = fs::read_dir("/proc/self/fd").ok()?;
    u64::try_from(entries.count()).ok()?.checked_sub(1)
}
