//! STATUS: could an ADD be served now (CNI 1.1.0 §2 STATUS)?
//!
//! STATUS answers for the cluster network and its programs, in the order of an ADD, and reports the
//! first thing that is missing. It does not report an absent agent: kubelet would make the node
//! NotReady, and the cluster would evict every pod, whether it needs the agent or not. Pods that
//! need the agent get code 11 instead (`statusNeedsAgent` changes this).

use std::time::{Duration, Instant};

use super::networks::KnownNetwork;
use super::{
    Context, Failure, Note, agent_absence, inquiry, networks, readiness_indicator, recovery,
};
use crate::cluster::{Answer, ClusterError};
use crate::delegate::Ran;
use crate::kernel::capabilities;
use crate::request::Source;

/// How long the agent may be away, as during its upgrade, before the node counts as not ready, if
/// `statusNeedsAgent` is set.
const AGENT_MAY_BE_AWAY: Duration = Duration::from_secs(60);

/// The outcome of a successful STATUS.
#[derive(Debug)]
pub struct Ready {
    /// The name of the cluster network.
    pub network: String,
    /// Whether its plugins were asked; older CNI versions have no STATUS. `None` if only the agent
    /// knows the plugins, and it is away.
    pub asked: Option<Ran>,
}

/// Checks whether an ADD would work now.
///
/// # Errors
/// [`Failure::NotAvailable`]: code 50, or the code of a plugin of the cluster network (11, 50, 51).
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

/// The cluster network; `None` if only the agent knows it, and it is away.
fn cluster_network(context: &Context<'_>) -> Result<Option<KnownNetwork>, Failure> {
    let answer = ask(context)?;
    let known = answer.is_some() || inquiry::is_on_disk(&context.request.config.cluster_network);
    let (cluster, _) = networks::named(context, &answer.unwrap_or_default());
    match cluster.read(context) {
        // Without an answer it may still be in `confDir`.
        Err(_) if !known => Ok(None),
        found => found.map(Some),
    }
}

/// The cluster's answer about the administrator's networks. `None`, with a note, if it does not
/// answer.
fn ask(context: &Context<'_>) -> Result<Option<Answer>, Failure> {
    if let Source::Folder(_) = context.request.config.source {
        return Ok(Some(networks::ask(context, context.deadline)?));
    }
    // A cluster that hangs must leave time for the plugins.
    match networks::ask(context, Instant::now() + context.left() / 4) {
        Ok(answer) => {
            context.host.stopwatch.agent_answered(true);
            let config = &context.request.config;
            if config.status_needs_agent
                && let Some(last) = agent_absence::last_answer(context.host, config)
            {
                // Without the file STATUS does not tolerate the first minute of an absence.
                let _ = last.date_now();
            }
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
/// The same error if STATUS depends on the agent and the agent has been away for too long.
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
