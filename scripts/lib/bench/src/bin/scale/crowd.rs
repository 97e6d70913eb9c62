//! All nodes at once: they start together, are idle, and are updated one after the other.

use std::cell::Cell;
use std::ops::Range;
use std::time::{Duration, Instant, SystemTime};

use futures_util::{StreamExt, stream};

use crate::Failure;
use crate::fleet::{Fleet, Start};
use crate::meter::{Meter, Received, Used};
use crate::settings::{REPLACED_WITHIN, Settings};
use crate::starts::{Cost, Window};

/// How long a rolling update may take.
const LONGEST_UPDATE: Duration = Duration::from_secs(150);

/// Agents that started together or one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Wave {
    pub(crate) nodes: usize,
    pub(crate) ready: usize,
    pub(crate) took: Duration,
    pub(crate) window: Window,
    /// Failed requests of replayed agents.
    pub(crate) failed: usize,
    pub(crate) used: Used,
}

/// Starts the agents of these nodes at the same time, and leaves them running.
pub(crate) async fn together(
    fleet: &Fleet,
    meter: &Meter,
    nodes: Range<usize>,
    spread: Duration,
) -> Result<Wave, Failure> {
    let (from, before, failed) = (SystemTime::now(), meter.read()?, fleet.board.count());
    let start = Start {
        spread,
        is_old: true,
    };
    let (ready, took) = fleet.start_all(nodes.clone(), start).await?;
    Ok(Wave {
        nodes: nodes.len(),
        ready,
        took,
        window: Window::since(from),
        failed: fleet.board.count() - failed,
        used: meter.since(before)?,
    })
}

/// Leaves all agents idle.
pub(crate) async fn idle(
    settings: &Settings,
    fleet: &Fleet,
    meter: &Meter,
    idle: Used,
    nodes: usize,
) -> Result<Cost, Failure> {
    // The work of the starts shall not count.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (from, before, received) = (SystemTime::now(), meter.read()?, Received::now()?);
    tokio::time::sleep(Duration::from_secs(settings.idle)).await;
    let mut pids = fleet.pids();
    pids.push(std::process::id());
    Ok(Cost {
        nodes: 0..nodes,
        count: nodes,
        window: Window::since(from),
        bytes: Received::by(&pids, &received)? / nodes.max(1) as f64,
        used: meter.since(before)?.over(idle),
    })
}

/// Updates all nodes as a DaemonSet's rolling update does: at most `maxUnavailable` of the agents are
/// not ready at any time.
pub(crate) async fn rolling_update(
    settings: &Settings,
    fleet: &Fleet,
    meter: &Meter,
    nodes: usize,
) -> Result<Wave, Failure> {
    let (from, before, failed) = (SystemTime::now(), meter.read()?, fleet.board.count());
    let began = Instant::now();
    let at_once = (nodes * settings.max_unavailable).div_ceil(100);
    let (begun, updated) = (Cell::new(0), Cell::new(0));
    let start = Start {
        spread: settings.spread(),
        is_old: true,
    };
    let mut order: Vec<usize> = (0..nodes).collect();
    fastrand::shuffle(&mut order);
    let updates = stream::iter(order).map(async |node| {
        if began.elapsed() > LONGEST_UPDATE {
            return Ok(());
        }
        begun.set(begun.get() + 1);
        fleet.stop(node).await?;
        tokio::time::sleep(Duration::from_millis(fastrand::u64(REPLACED_WITHIN))).await;
        let is_ready = fleet.start(node, start).await?;
        updated.set(updated.get() + usize::from(is_ready));
        Ok::<(), Failure>(())
    });
    let ended: Vec<Result<(), Failure>> = updates.buffer_unordered(at_once.max(1)).collect().await;
    ended.into_iter().collect::<Result<(), Failure>>()?;
    Ok(Wave {
        nodes: begun.get(),
        ready: updated.get(),
        took: began.elapsed(),
        window: Window::since(from),
        failed: fleet.board.count() - failed,
        used: meter.since(before)?,
    })
}
