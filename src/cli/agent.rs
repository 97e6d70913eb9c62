//! `jackfield agent`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::doctor::given_node_name;
use super::install::absolute;
use super::{CommandError, USAGE, note};
use crate::agent::{self, Credentials, LogFormat, Options};
use crate::npwg::object_ref::is_subdomain;

/// Options of the agent.
#[derive(Debug, Args)]
pub(super) struct AgentArgs {
    /// This node's name in the cluster [default: $NODE_NAME]
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Credentials for the API server [default: those of this pod]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Socket for plugins
    #[arg(long, value_name = "PATH", default_value = "/run/jackfield/agent/agent.sock", value_parser = absolute())]
    socket: PathBuf,
    /// The journal, in which plugins leave writes for the API server
    #[arg(long, value_name = "DIR", default_value = "/var/lib/jackfield", value_parser = absolute())]
    journal_dir: PathBuf,
    /// Address for /metrics, /healthz and /readyz
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:9321")]
    metrics: SocketAddr,
    /// Log format; the log goes to stderr
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Log::Text)]
    log: Log,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Log {
    /// For people
    Text,
    /// One JSON object per line
    Json,
}

/// Runs until a signal ends it.
pub(super) fn agent(args: &AgentArgs) -> Result<ExitCode, CommandError> {
    let Some(node) = given_node_name(args.node.as_deref()) else {
        note("agent: this node's name is unknown; give --node or set NODE_NAME");
        return Ok(ExitCode::from(USAGE));
    };
    if !is_subdomain(&node) {
        note(&format!(
            "agent: {node:?} is not a valid name of a node; give --node or set NODE_NAME as \
             `kubectl get nodes` shows it"
        ));
        return Ok(ExitCode::from(USAGE));
    }
    let credentials = args
        .kubeconfig
        .clone()
        .map_or(Credentials::InCluster, Credentials::File);
    let options = Options {
        node,
        credentials,
        socket: args.socket.clone(),
        journal_dir: args.journal_dir.clone(),
        metrics: args.metrics,
        log: match args.log {
            Log::Text => LogFormat::Text,
            Log::Json => LogFormat::Json,
        },
    };
    agent::run(options)
        .map(|()| ExitCode::SUCCESS)
        .map_err(|error| CommandError::Agent(Box::new(error)))
}
