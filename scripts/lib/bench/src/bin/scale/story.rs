//! The run, from an empty cluster to one that is updated.

use std::time::{Duration, Instant, SystemTime};

use crate::adds;
use crate::crowd::{self, Wave};
use crate::fleet::Fleet;
use crate::meter::{Meter, Received, Used};
use crate::multus::Daemon;
use crate::population::Population;
use crate::settings::{FEW, PODS, Settings};
use crate::starts::{self, Cost, Starts, Window, multus_nodes, replayed_nodes};
use crate::{Failure, say};

/// How long an idle cluster is measured, and how long the daemons of Multus are idle.
const IDLE: Duration = Duration::from_secs(8);
const MULTUS_IDLE: Duration = Duration::from_secs(20);

/// Everything that was measured.
#[derive(Debug)]
pub(crate) struct Measured {
    /// The nodes that took part in what concerns all nodes.
    pub(crate) held: usize,
    pub(crate) setup: Duration,
    /// What the cluster uses without agents.
    pub(crate) idle_cluster: Used,
    pub(crate) starts: Vec<Starts>,
    pub(crate) adds: Cost,
    pub(crate) replayed_adds: Cost,
    pub(crate) multus_adds: Option<Cost>,
    pub(crate) multus_idle: Option<Cost>,
    pub(crate) churn: Cost,
    /// When the API server answered the first node's agent with 429.
    pub(crate) busy: Window,
    pub(crate) together: Wave,
    pub(crate) idle: Cost,
    pub(crate) update: Wave,
    pub(crate) failures: Vec<String>,
}

pub(crate) async fn tell(settings: &Settings) -> Result<Measured, Failure> {
    fastrand::seed(settings.seed);
    let meter = Meter {
        api_server: settings.api_server,
        etcd: settings.etcd,
    };
    let fleet = Fleet::new(&settings.folder, settings.real);
    let population = Population::new(&settings.folder).await?;
    say(&format!(
        "creating {} nodes with {PODS} pods each",
        settings.nodes
    ));
    let began = Instant::now();
    population.nodes(0..settings.nodes).await?;
    population.definitions(2..FEW).await?;
    let setup = began.elapsed();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = meter.read()?;
    tokio::time::sleep(IDLE).await;
    let idle = meter.since(before)?;

    say(&format!("starting agents beside {FEW} definitions"));
    let (few, daemons) = started(settings, &fleet, &meter, idle, FEW).await?;
    drop(daemons);
    fleet.stop_all().await?;
    say(&format!(
        "creating {} definitions",
        settings.definitions - FEW
    ));
    population.definitions(FEW..settings.definitions).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    say(&format!(
        "starting agents beside {} definitions",
        settings.definitions
    ));
    let (many, daemons) = started(settings, &fleet, &meter, idle, settings.definitions).await?;

    say("attaching pods");
    for node in (0..settings.real).chain(multus_nodes(settings)) {
        population.pods(node, "add", adds::ADDS).await?;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let adds = adds::of_agents(settings, &meter, idle, &fleet.pids()).await?;
    let replayed_adds = replayed_adds(settings, &fleet, &meter, idle).await?;
    let mut multus = (None, None);
    if !daemons.is_empty() {
        multus.0 = Some(adds::of_multus(settings, &meter, idle, &daemons).await?);
        multus.1 = Some(multus_idle(settings, &meter, idle, &daemons).await?);
    }
    drop(daemons);
    let churn = adds::churn(settings).await?;
    let busy = adds::beside_busy_api_server(settings, &population).await?;
    fleet.stop_all().await?;

    let held = settings.held();
    let rate = settings.bearable(many.replayed.used);
    let at_once = held.min((rate * settings.spread().as_secs_f64()) as usize);
    say(&format!("starting the agents of {at_once} nodes at once"));
    let together = crowd::together(&fleet, &meter, 0..at_once, settings.spread()).await?;
    let rest = Duration::from_secs_f64((held - at_once) as f64 / rate);
    say(&format!(
        "starting the agents of {} more nodes in {:.0} s",
        held - at_once,
        rest.as_secs_f64()
    ));
    let joined = crowd::together(&fleet, &meter, at_once..held, rest).await?;
    if joined.ready < joined.nodes {
        let (ready, nodes) = (joined.ready, joined.nodes);
        return Err(
            format!("only {ready} of {nodes} more agents are ready; try fewer --nodes").into(),
        );
    }
    say(&format!("leaving them idle for {} s", settings.idle));
    let idle_agents = crowd::idle(settings, &fleet, &meter, idle, held).await?;
    say("updating them as a DaemonSet does");
    let update = crowd::rolling_update(settings, &fleet, &meter, held).await?;
    fleet.stop_all().await?;
    Ok(Measured {
        held,
        setup,
        idle_cluster: idle,
        starts: vec![few, many],
        adds,
        replayed_adds,
        multus_adds: multus.0,
        multus_idle: multus.1,
        churn,
        busy,
        together,
        idle: idle_agents,
        update,
        failures: fleet.board.lines(),
    })
}

/// Starts everything in a cluster with so many definitions.
async fn started(
    settings: &Settings,
    fleet: &Fleet,
    meter: &Meter,
    idle: Used,
    definitions: usize,
) -> Result<(Starts, Vec<Daemon>), Failure> {
    let real = starts::agents(settings, fleet, meter, idle, 0..settings.real, true).await?;
    let nodes = replayed_nodes(settings);
    let replayed = starts::agents(settings, fleet, meter, idle, nodes, false).await?;
    let (multus, daemons) = match settings.daemons {
        0 => (None, Vec::new()),
        _ => {
            let (cost, daemons) = starts::daemons(settings, meter, idle).await?;
            (Some(cost), daemons)
        }
    };
    let starts = Starts {
        definitions,
        real,
        replayed,
        multus,
    };
    Ok((starts, daemons))
}

async fn replayed_adds(
    settings: &Settings,
    fleet: &Fleet,
    meter: &Meter,
    idle: Used,
) -> Result<Cost, Failure> {
    let (from, before, received) = (SystemTime::now(), meter.read()?, Received::now()?);
    let count = fleet.publish().await;
    Ok(Cost {
        nodes: replayed_nodes(settings),
        count,
        window: Window::since(from),
        bytes: Received::by(&[std::process::id()], &received)? / count.max(1) as f64,
        used: meter.since(before)?.over(idle).per(count),
    })
}

async fn multus_idle(
    settings: &Settings,
    meter: &Meter,
    idle: Used,
    daemons: &[Daemon],
) -> Result<Cost, Failure> {
    let (from, before, received) = (SystemTime::now(), meter.read()?, Received::now()?);
    tokio::time::sleep(MULTUS_IDLE).await;
    let pids: Vec<u32> = daemons.iter().map(Daemon::pid).collect();
    Ok(Cost {
        nodes: multus_nodes(settings),
        count: daemons.len(),
        window: Window::since(from),
        bytes: Received::by(&pids, &received)? / daemons.len().max(1) as f64,
        used: meter.since(before)?.over(idle),
    })
}
