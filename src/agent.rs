//! The agent answers the questions that Jackfield's plugin on this node asks about the cluster. An
//! answer from the agent's cache takes microseconds.
//!
//! ```text
//! API server ──watch──▶ cache ──▶ answers ◀──socket── plugin
//! API server ◀──patch, event── publisher ◀──disk── owed writes of the plugin
//! ```
//!
//! The agent caches this node's pods and ResourceSlices, and the definitions that these pods
//! select. Of each pod, the agent caches only the fields that concern networks and devices. It asks
//! kubelet for the devices of a pod. It has no Linux capabilities and runs no program.
//!
//! The plugin stores statuses (of pods and of ResourceClaims) and events as files in a directory.
//! These statuses and events are called owed writes until the agent has sent them to the API
//! server. The agent creates files only in that directory and in the directory of its socket.
//!
//! The agent may end at any moment. An ADD that needs the agent then waits up to 10 s for the next
//! agent. If the plugin has a kubeconfig, the ADD asks the API server instead.

mod attached_sandboxes;
mod cache;
mod census;
mod connection;
mod definition_cache;
mod device_usage;
mod error;
mod http;
mod knowledge;
mod log;
mod lookups;
mod metrics;
mod node_events;
mod owed_by_pod;
mod pause;
mod privileges;
mod publisher;
mod record_sync;
mod serve;
mod socket;
mod spread_start;
mod watch;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{LocalSet, spawn_local};
use tracing::info;

pub use error::{AgentError, PrivilegeError, SocketError};
pub use log::LogFormat;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use metrics::Exposition;

use crate::cluster::OwedWrites;
use attached_sandboxes::AttachedSandboxes;
use cache::Cache;
use connection::ApiConnection;
use device_usage::DeviceUsage;
use knowledge::Knowledge;
use metrics::Metrics;
use node_events::NodeEvents;
use publisher::Publisher;
use record_sync::RecordSync;
use serve::PluginService;
use spread_start::SpreadStart;

/// The options of the agent.
#[derive(Debug, Clone)]
pub struct Options {
    /// This node's name in the cluster.
    pub node: String,
    /// The credentials for the API server; `None` for the service account of the agent's pod.
    pub kubeconfig: Option<PathBuf>,
    /// The path of the socket for the plugin.
    pub socket: PathBuf,
    /// The directory of the journal. The agent accesses only the subdirectory `publish`.
    pub journal_dir: PathBuf,
    /// The address on which the agent serves metrics and health.
    pub metrics: SocketAddr,
    /// The format of the log.
    pub log: LogFormat,
    /// The longest random wait before the first requests to the API server.
    pub spread: Duration,
}

/// Runs the agent until SIGTERM or SIGINT.
///
/// # Errors
/// If the agent cannot start. A running agent fails only if the directory of owed writes is removed
/// from the node while the directory is mounted into the agent's container.
pub fn run(options: Options) -> Result<(), AgentError> {
    // Give up the capabilities while the process has one thread. Later threads inherit the empty
    // capability sets.
    privileges::give_up()?;
    log::start(options.log);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(AgentError::Runtime)?;
    LocalSet::new().block_on(&runtime, live(options))
}

async fn live(options: Options) -> Result<(), AgentError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(AgentError::Runtime)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(AgentError::Runtime)?;
    let owed = OwedWrites::new(&options.journal_dir);
    let owed_dir = owed.dir().to_owned();
    let unusable = |source| AgentError::Directory {
        path: owed_dir.clone(),
        source,
    };
    owed.create_dir().map_err(unusable)?;
    let metrics = Rc::new(Metrics::new());
    let durable = RecordSync::start(metrics.synced.clone())?;
    let socket = tokio::select! {
        socket = socket::AgentSocket::bind(&options.socket) => socket?,
        _ = terminate.recv() => return Ok(()),
        _ = interrupt.recv() => return Ok(()),
    };
    let connection = Rc::new(ApiConnection::open(options.kubeconfig, options.node.clone()).await?);
    info!(node = options.node, socket = %options.socket.display(), "the agent has started");
    spawn_local(Rc::clone(&connection).keep_fresh());
    let cache = Rc::new(Cache::default());
    let devices = Rc::new(DeviceUsage::default());
    let pages = http::Pages {
        metrics: Rc::clone(&metrics),
        cache: Rc::clone(&cache),
        devices: Rc::clone(&devices),
    };
    spawn_local(pages.serve(options.metrics));
    let start = SpreadStart::within(options.spread);
    let knowledge = Knowledge::new(options.node, cache, metrics, connection, start);
    let knowledge = Rc::new(knowledge);
    let publisher = Rc::new(Publisher::new(owed, Rc::clone(&knowledge)));
    let publishing = spawn_local(Rc::clone(&publisher).run());
    let sandboxes = Rc::new(AttachedSandboxes::default());
    spawn_local(watch::pods(
        Rc::clone(&knowledge),
        Rc::clone(&publisher),
        Rc::clone(&sandboxes),
    ));
    spawn_local(watch::slices(Rc::clone(&knowledge)));
    spawn_local(watch::definitions(Rc::clone(&knowledge)));
    let node_events = Rc::new(NodeEvents::default());
    spawn_local(Rc::clone(&node_events).run(Rc::clone(&knowledge)));
    spawn_local(Rc::clone(&devices).run(Rc::clone(&knowledge)));
    let service = PluginService {
        knowledge,
        publisher,
        durable,
        devices,
        node_events,
        sandboxes,
    };
    tokio::select! {
        () = service.serve(&socket.listener) => {}
        Ok(Err(error)) = publishing => return Err(unusable(error)),
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    info!("the agent ends; owed writes stay on disk");
    Ok(())
}
