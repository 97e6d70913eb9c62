//! What the start of an agent costs.

use std::fs;
use std::ops::Range;
use std::time::{Duration, SystemTime};

use crate::Failure;
use crate::fleet::{Fleet, Start};
use crate::meter::{Meter, Received, Used};
use crate::multus::Daemon;
use crate::processes::folder_of;
use crate::settings::{STARTS, Settings};

/// How long after the last start the API server may still work on it.
const SETTLE: Duration = Duration::from_secs(2);
/// The time over which the measured starts of replayed agents are spread.
const SPREAD: Duration = Duration::from_secs(4);

/// A time in the audit log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) from: SystemTime,
    pub(crate) to: SystemTime,
}

impl Window {
    pub(crate) fn since(from: SystemTime) -> Window {
        let to = SystemTime::now();
        Window { from, to }
    }

    pub(crate) fn has(&self, at: SystemTime) -> bool {
        self.from <= at && at <= self.to
    }
}

/// What happened to some nodes, and what one of it cost.
#[derive(Debug, Clone)]
pub(crate) struct Cost {
    pub(crate) nodes: Range<usize>,
    pub(crate) count: usize,
    pub(crate) window: Window,
    /// Sent by the API server.
    pub(crate) bytes: f64,
    pub(crate) used: Used,
}

/// The starts in a cluster with so many definitions.
#[derive(Debug, Clone)]
pub(crate) struct Starts {
    pub(crate) definitions: usize,
    pub(crate) real: Cost,
    pub(crate) replayed: Cost,
    pub(crate) multus: Option<Cost>,
}

/// The nodes whose starts are replayed.
pub(crate) fn replayed_nodes(settings: &Settings) -> Range<usize> {
    settings.real..settings.nodes.min(settings.real + STARTS)
}

/// The nodes with daemons of Multus.
pub(crate) fn multus_nodes(settings: &Settings) -> Range<usize> {
    settings.real..settings.real + settings.daemons
}

/// Starts real agents, then replayed ones, and leaves them running.
pub(crate) async fn agents(
    settings: &Settings,
    fleet: &Fleet,
    meter: &Meter,
    idle: Used,
    nodes: Range<usize>,
    is_real: bool,
) -> Result<Cost, Failure> {
    let from = SystemTime::now();
    let before = meter.read()?;
    let received = Received::now()?;
    let start = Start {
        spread: match is_real {
            true => Duration::ZERO,
            false => SPREAD,
        },
        is_old: false,
    };
    let (ready, _) = fleet.start_all(nodes.clone(), start).await?;
    if ready < nodes.len() {
        let log = fs::read_to_string(folder_of(&settings.folder, 0).join("log"))?;
        return Err(format!("{ready} of {} agents are ready:\n{log}", nodes.len()).into());
    }
    tokio::time::sleep(SETTLE).await;
    let pids = match is_real {
        true => fleet.pids(),
        false => vec![std::process::id()],
    };
    Ok(Cost {
        count: nodes.len(),
        window: Window::since(from),
        bytes: Received::by(&pids, &received)? / nodes.len().max(1) as f64,
        used: meter.since(before)?.over(idle).per(nodes.len()),
        nodes,
    })
}

/// Starts the daemons of Multus and leaves them running.
pub(crate) async fn daemons(
    settings: &Settings,
    meter: &Meter,
    idle: Used,
) -> Result<(Cost, Vec<Daemon>), Failure> {
    let nodes = multus_nodes(settings);
    let from = SystemTime::now();
    let (before, received) = (meter.read()?, Received::now()?);
    let daemons: Result<Vec<Daemon>, Failure> = nodes
        .clone()
        .map(|node| Daemon::start(&settings.folder, node))
        .collect();
    let mut daemons = daemons?;
    for daemon in &mut daemons {
        daemon.until_ready().await?;
    }
    tokio::time::sleep(SETTLE).await;
    let pids: Vec<u32> = daemons.iter().map(Daemon::pid).collect();
    let cost = Cost {
        count: nodes.len(),
        window: Window::since(from),
        bytes: Received::by(&pids, &received)? / nodes.len().max(1) as f64,
        used: meter.since(before)?.over(idle).per(nodes.len()),
        nodes,
    };
    Ok((cost, daemons))
}
