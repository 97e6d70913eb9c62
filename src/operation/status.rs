//! STATUS: reports whether an ADD could succeed now (CNI 1.1.0 §2 STATUS).
//!
//! STATUS checks what every ADD needs, such as the cluster network and its plugins, and reports
//! the first problem. By default, STATUS tolerates an absent agent. Otherwise kubelet would report
//! the node as NotReady, and after some minutes the cluster would evict the node's pods, including
//! pods that do not need the agent. Without the agent, only the ADD of a pod that needs the agent
//! fails, with code 11. With `statusNeedsAgent`, STATUS fails if the agent has been absent for more
//! than a minute.

use std::time::Duration;

use super::{
    Context, Failure, Note, agent_absence, change, networks, readiness_indicator, recovery,
};
use crate::clock;
use crate::cluster::{Answer, ClusterError, NetworkError};
use crate::delegate::Ran;
use crate::kernel::capabilities;
use crate::plan::KnownNetwork;
use crate::request::Source;

/// How long the agent may be absent, for example during its upgrade, before STATUS fails. Applies
/// only if `statusNeedsAgent` is set.
const AGENT_MAY_BE_AWAY: Duration = Duration::from_secs(60);

/// The outcome of a successful STATUS.
#[derive(Debug)]
pub struct Ready {
    /// The name of the cluster network.
    pub network: String,
    /// Whether the plugins of the cluster network ran STATUS. `Some(Ran::None)` means that the CNI
    /// version of the network is too old for STATUS. The field is `None` if the cluster does not
    /// answer and the network's configuration is not on disk.
    pub asked: Option<Ran>,
}

/// Checks whether an ADD could succeed now.
///
/// # Errors
/// [`Failure::NotAvailable`], with code 50. If a plugin of the cluster network returned code 11 or
/// 51, the failure has the plugin's code.
pub fn status(context: &Context<'_>) -> Result<Ready, Failure> {
    recovery::begin_retry(context, None);
    look(context).map_err(|cause| Failure::NotAvailable(Box::new(cause)))
}

fn look(context: &Context<'_>) -> Result<Ready, Failure> {
    let config = &context.request.config;
    capabilities::require()?;
    context.host.journal.make_ready()?;
    readiness_indicator::is_there(config.readiness_indicator.as_deref())?;
    let (network, asked) = match cluster_network(context)? {
        None => (config.cluster_network.label().to_owned(), None),
        Some(network) => {
            network.check_programs(context)?;
            let asked = network.status(context)?;
            (network.label, Some(asked))
        }
    };
    Ok(Ready { network, asked })
}

/// Returns the cluster network, or `None` if its configuration is not on disk and the cluster does
/// not answer.
fn cluster_network(context: &Context<'_>) -> Result<Option<KnownNetwork>, Failure> {
    let answer = ask(context)?;
    let is_answered = answer.is_some();
    let (cluster, _) = networks::named(context, &answer.unwrap_or_default());
    // The cluster network may be a definition, which only the cluster can return.
    if !is_answered && matches!(cluster.found, Err(NetworkError::Unknown(_))) {
        return Ok(None);
    }
    cluster.read(context).map(Some)
}

/// Asks the cluster for the networks in the node configuration. If the cluster does not answer and
/// STATUS tolerates the missing answer, adds a note and returns `None`.
fn ask(context: &Context<'_>) -> Result<Option<Answer>, Failure> {
    if let Source::Folder(_) = context.request.config.source {
        return Ok(Some(networks::ask(context, context.deadline)?));
    }
    // Leave time for the plugins if the cluster does not answer.
    match networks::ask(context, clock::now() + context.left() / 4) {
        Ok(answer) => {
            context.host.stopwatch.agent_answered(true);
            let config = &context.request.config;
            if config.status_needs_agent
                && let Some(last) = agent_absence::last_answer(context.host, config)
            {
                // If the time of this answer cannot be written, keep the time of an earlier answer.
                let _ = last.date_now();
            }
            change::workers::begin(context, &answer);
            Ok(Some(answer))
        }
        Err(error) => {
            context.host.stopwatch.agent_answered(false);
            bear(context, error)?;
            Ok(None)
        }
    }
}

/// Notes that the cluster does not answer.
///
/// # Errors
/// Returns `error` if `statusNeedsAgent` is set, except during a brief absence of the agent.
fn bear(context: &Context<'_>, error: ClusterError) -> Result<(), Failure> {
    if !context.request.config.status_needs_agent {
        context.note(Note::AgentAway(error));
        return Ok(());
    }
    let last = agent_absence::last_answer(context.host, &context.request.config);
    let age = last.and_then(|last| last.age());
    if error.is_transient() && age.is_some_and(|age| age < AGENT_MAY_BE_AWAY) {
        context.note(Note::AgentAwayBriefly(error));
        return Ok(());
    }
    Err(error.into())
}
