//! `jackfield agent`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::CommandError;
use super::doctor::given_node_name;
use super::install::absolute;
use crate::agent::{self, LogFormat, Options};
use crate::npwg::object_ref::is_subdomain;

/// Options of the agent.
#[derive(Debug, Args)]
pub(super) struct AgentArgs {
    /// This node's name in the cluster [default: $NODE_NAME]
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Credentials for the API server [default: this pod's service account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Socket on which the agent answers the plugin
    #[arg(long, value_name = "PATH", default_value = "/run/jackfield/agent/agent.sock", value_parser = absolute())]
    socket: PathBuf,
    /// Directory of the journal, where the plugin leaves status and events for the agent to publish
    #[arg(long, value_name = "DIR", default_value = "/var/lib/jackfield", value_parser = absolute())]
    journal_dir: PathBuf,
    /// Address for /metrics, /healthz and /readyz
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:9321")]
    metrics: SocketAddr,
    /// Format of the log on stderr
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log: LogFormat,
    /// Longest random wait before the first requests to the API server, in seconds; the wait ends
    /// early if a plugin asks about a pod
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    spread: u8,
}

/// Runs the agent until a signal ends it.
pub(super) fn agent(args: &AgentArgs) -> Result<(), CommandError> {
    let node = given_node_name(args.node.as_deref()).ok_or(CommandError::NoNodeName)?;
    if !is_subdomain(&node) {
        return Err(CommandError::NodeName(node));
    }
    let options = Options {
        node,
        kubeconfig: args.kubeconfig.clone(),
        socket: args.socket.clone(),
        journal_dir: args.journal_dir.clone(),
        metrics: args.metrics,
        log: args.log,
        spread: Duration::from_secs(args.spread.into()),
    };
    Ok(agent::run(options)?)
}
