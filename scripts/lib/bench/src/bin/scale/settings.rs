//! What `scripts/scale` sets.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::meter::Used;

/// Drives one API server with the requests of many nodes' agents. `scripts/scale` prepares the node and
/// the API server and calls it.
#[derive(Debug, Clone, Parser)]
pub(crate) struct Settings {
    /// Nodes in all
    #[arg(long)]
    pub(crate) nodes: usize,
    /// Nodes with a real agent
    #[arg(long)]
    pub(crate) real: usize,
    /// Nodes with a real daemon of thick Multus
    #[arg(long)]
    pub(crate) daemons: usize,
    /// Definitions at the end; there are ten at first
    #[arg(long)]
    pub(crate) definitions: usize,
    /// What decides on random times
    #[arg(long)]
    pub(crate) seed: u64,
    /// The longest wait of an agent before its first requests, in seconds, as the DaemonSet sets it
    #[arg(long)]
    pub(crate) spread: u64,
    /// The DaemonSet's `maxUnavailable`, in percent
    #[arg(long)]
    pub(crate) max_unavailable: usize,
    /// Seconds for which all agents are idle
    #[arg(long)]
    pub(crate) idle: u64,
    /// The process of kube-apiserver
    #[arg(long)]
    pub(crate) api_server: u32,
    /// The process of etcd
    #[arg(long)]
    pub(crate) etcd: u32,
    /// The folder with the programs and everything that the run writes
    pub(crate) folder: PathBuf,
}

/// Pods of each node that select two networks.
pub(crate) const PODS: usize = 2;
/// Replayed agents whose starts are measured.
pub(crate) const STARTS: usize = 200;
/// Definitions at first.
pub(crate) const FEW: usize = 10;
/// How long kubelet takes to end a pod and to start the next, in milliseconds.
pub(crate) const REPLACED_WITHIN: std::ops::Range<u64> = 2_000..4_000;
/// How long starts may take in all.
pub(crate) const LONGEST: Duration = Duration::from_secs(120);
/// The share of the processors that starts may use.
const USABLE: f64 = 0.7;

impl Settings {
    /// The longest wait of an agent before its first requests.
    pub(crate) fn spread(&self) -> Duration {
        Duration::from_secs(self.spread)
    }

    /// How many agents this machine can start in a second, where one start costs the API server and etcd
    /// this much, and this program half as much.
    pub(crate) fn bearable(&self, start: Used) -> f64 {
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let milliseconds = (start.api_server + start.etcd).max(1.0) * 1.5;
        cores * 1000.0 * USABLE / milliseconds
    }

    /// How many nodes the machine has memory for. The rest of the nodes are only extrapolated.
    pub(crate) fn held(&self) -> usize {
        const KIB_PER_NODE: usize = 1_000;
        const KIB_LEFT: usize = 1 << 20;
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let line = text.lines().find_map(|it| it.strip_prefix("MemAvailable:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        let kib: usize = number.and_then(|it| it.parse().ok()).unwrap_or_default();
        self.nodes.min(kib.saturating_sub(KIB_LEFT) / KIB_PER_NODE)
    }
}

/// The name of a node.
pub(crate) fn node_name(number: usize) -> String {
    format!("node-{number}")
}
