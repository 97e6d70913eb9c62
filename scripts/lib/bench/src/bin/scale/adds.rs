//! What the ADD of a pod costs the API server, and what pods that churn cost.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::Failure;
use crate::call::{Sandbox, call};
use crate::meter::{Meter, Received, Used};
use crate::multus::Daemon;
use crate::population::Population;
use crate::processes::folder_of;
use crate::settings::{LONGEST, Settings, node_name};
use crate::starts::{Cost, Window, multus_nodes};

/// Pods that each real agent's node, and each daemon's node, attaches.
pub(crate) const ADDS: usize = 4;
/// Pods that churn, and how often each is attached while the API server does not answer.
pub(crate) const CHURNING: usize = 3;
pub(crate) const TIMES: usize = 10;
/// How long Multus may take to create the events of an ADD.
const SETTLE: Duration = Duration::from_secs(3);
/// How long the API server answers 429.
const BUSY: Duration = Duration::from_secs(8);
const POLL: Duration = Duration::from_millis(50);

/// Plugins whose pods are attached: the program, its configuration and its sandboxes.
struct Caller {
    plugin: &'static str,
    calls: Vec<(PathBuf, Sandbox)>,
}

impl Caller {
    fn call(&self, verb: &str, settings: &Settings) -> Result<(), Failure> {
        for (conf, sandbox) in &self.calls {
            call(verb, &settings.folder, self.plugin, conf, sandbox)?;
        }
        Ok(())
    }
}

fn sandbox(node: usize, number: usize, netns: usize) -> Sandbox {
    Sandbox {
        pod: format!("{}-add-{number}", node_name(node)),
        netns,
    }
}

/// Writes the configuration of a node's plugin.
fn jackfield(settings: &Settings, node: usize) -> Result<PathBuf, Failure> {
    let (folder, own) = (&settings.folder, folder_of(&settings.folder, node));
    let conf = serde_json::json!({
        "cniVersion": "1.0.0", "name": "jackfield", "type": "jackfield",
        "clusterNetwork": folder.join("10-cluster.conflist"), "agentSocket": own.join("agent/agent.sock"),
        "binDir": folder.join("bin"), "journalDir": own.join("journal"),
    });
    let path = own.join("jackfield.conf");
    fs::write(&path, conf.to_string())?;
    Ok(path)
}

/// Returns when the agents of these nodes owe the API server nothing.
async fn until_published(settings: &Settings) -> Result<(), Failure> {
    let began = Instant::now();
    let owes = |node| {
        let dir = folder_of(&settings.folder, node).join("journal/publish");
        fs::read_dir(dir).is_ok_and(|mut files| files.next().is_some())
    };
    while (0..settings.real).any(owes) {
        if began.elapsed() > LONGEST {
            return Err("an agent does not publish what it owes".into());
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

/// Attaches [`ADDS`] pods on each node of a real agent.
pub(crate) async fn of_agents(
    settings: &Settings,
    meter: &Meter,
    idle: Used,
    pids: &[u32],
) -> Result<Cost, Failure> {
    let mut calls = Vec::new();
    for node in 0..settings.real {
        let conf = jackfield(settings, node)?;
        let sandboxes = (0..ADDS).map(|number| sandbox(node, number, node * ADDS + number));
        calls.extend(sandboxes.map(|sandbox| (conf.clone(), sandbox)));
    }
    let caller = Caller {
        plugin: "jackfield",
        calls,
    };
    let add = async || {
        caller.call("ADD", settings)?;
        until_published(settings).await
    };
    let cost = measured(0..settings.real, caller.calls.len(), meter, idle, pids, add).await?;
    caller.call("DEL", settings)?;
    Ok(cost)
}

/// Attaches [`ADDS`] pods on each node of a daemon of Multus.
pub(crate) async fn of_multus(
    settings: &Settings,
    meter: &Meter,
    idle: Used,
    daemons: &[Daemon],
) -> Result<Cost, Failure> {
    let nodes = multus_nodes(settings);
    let mut calls = Vec::new();
    for (place, (node, daemon)) in nodes.clone().zip(daemons).enumerate() {
        let sandboxes = (0..ADDS).map(|number| sandbox(node, number, place * ADDS + number));
        calls.extend(sandboxes.map(|sandbox| (daemon.conf(), sandbox)));
    }
    let caller = Caller {
        plugin: "multus-shim",
        calls,
    };
    let pids: Vec<u32> = daemons.iter().map(Daemon::pid).collect();
    let add = async || {
        caller.call("ADD", settings)?;
        tokio::time::sleep(SETTLE).await;
        Ok(())
    };
    let cost = measured(nodes, caller.calls.len(), meter, idle, &pids, add).await?;
    caller.call("DEL", settings)?;
    Ok(cost)
}

async fn measured(
    nodes: std::ops::Range<usize>,
    count: usize,
    meter: &Meter,
    idle: Used,
    pids: &[u32],
    add: impl AsyncFnOnce() -> Result<(), Failure>,
) -> Result<Cost, Failure> {
    let (from, before, received) = (SystemTime::now(), meter.read()?, Received::now()?);
    add().await?;
    // The status of a finished request comes after the agent has its answer.
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok(Cost {
        nodes,
        count,
        window: Window::since(from),
        bytes: Received::by(pids, &received)? / count.max(1) as f64,
        used: meter.since(before)?.over(idle).per(count),
    })
}

/// Attaches the pods of the first node while the API server answers the agents with 429, and returns when
/// the agent has published them.
pub(crate) async fn beside_busy_api_server(
    settings: &Settings,
    population: &Population,
) -> Result<Window, Failure> {
    let conf = jackfield(settings, 0)?;
    let calls = (0..CHURNING).map(|number| (conf.clone(), sandbox(0, number, number)));
    let caller = Arc::new(Caller {
        plugin: "jackfield",
        calls: calls.collect(),
    });
    population.make_busy().await?;
    // The API server takes a moment to follow.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let from = SystemTime::now();
    // On another thread: this one keeps the API server busy.
    let (adding, all) = (Arc::clone(&caller), settings.clone());
    let add = tokio::task::spawn_blocking(move || {
        std::thread::sleep(Duration::from_secs(1));
        adding.call("ADD", &all).map_err(|cause| cause.to_string())
    });
    population.keep_busy(BUSY).await;
    population.make_free().await?;
    add.await??;
    until_published(settings).await?;
    caller.call("DEL", settings)?;
    Ok(Window::since(from))
}

/// Attaches and detaches the pods of the first node again and again while the API server does not
/// answer, and returns when the agent has published the rest.
pub(crate) async fn churn(settings: &Settings) -> Result<Cost, Failure> {
    let conf = jackfield(settings, 0)?;
    let calls = (0..CHURNING).map(|number| (conf.clone(), sandbox(0, number, number)));
    let caller = Caller {
        plugin: "jackfield",
        calls: calls.collect(),
    };
    let from = SystemTime::now();
    let api_server = Pid::from_raw(settings.api_server.cast_signed());
    kill(api_server, Signal::SIGSTOP)?;
    let churned = (0..TIMES).try_for_each(|time| {
        if time > 0 {
            caller.call("DEL", settings)?;
        }
        caller.call("ADD", settings)
    });
    kill(api_server, Signal::SIGCONT)?;
    churned?;
    until_published(settings).await?;
    caller.call("DEL", settings)?;
    Ok(Cost {
        nodes: 0..1,
        count: CHURNING * TIMES,
        window: Window::since(from),
        bytes: 0.0,
        used: Used::default(),
    })
}
