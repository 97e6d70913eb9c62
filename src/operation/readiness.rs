//! STATUS: could an ADD be served now (CNI 1.1.0 §2 STATUS)?
//!
//! Everything that every ADD needs is looked at, in the order of an ADD; the first thing that is
//! missing is the answer.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::{Context, Failure, indicator, networks, owed};
use crate::delegate::Ran;
use crate::kernel::capabilities;
use crate::request::Source;

/// How long the agent may be away, as it is during its upgrade, before the node counts as not
/// ready: pods that need it wait.
const AGENT_MAY_BE_AWAY: Duration = Duration::from_secs(60);

/// What STATUS found.
#[derive(Debug)]
pub struct Ready {
    /// The cluster network.
    pub network: String,
    /// Whether its plugins were asked; older versions have no STATUS.
    pub asked: Ran,
}

/// Looks whether an ADD would work now.
///
/// # Errors
/// [`Failure::NotAvailable`]: code 50, or what a plugin of the cluster network says (11, 50, 51).
pub fn status(context: &Context<'_>) -> Result<Ready, Failure> {
    owed::try_one(context, None);
    look(context).map_err(|cause| Failure::NotAvailable(Box::new(cause)))
}

fn look(context: &Context<'_>) -> Result<Ready, Failure> {
    let node = &context.request.node;
    capabilities::require()?;
    context.node.journal.make_ready()?;
    indicator::is_there(node.readiness_indicator.as_deref())?;
    cluster_answers(context)?;
    let network = networks::administrators(context)?.cluster?;
    network.check_programs(context)?;
    let asked = network.status(context)?;
    Ok(Ready {
        network: network.label,
        asked,
    })
}

/// Whether the cluster answers, or did a short while ago.
fn cluster_answers(context: &Context<'_>) -> Result<(), Failure> {
    let answered = context.node.cluster.ready(context.deadline);
    if matches!(context.request.node.source, Source::Folder(_)) {
        return Ok(answered?);
    }
    let seen = context.node.lock_dir.with_file_name("cluster-answered");
    match answered {
        Ok(()) => {
            remember(&seen);
            Ok(())
        }
        Err(error) if error.is_transient() && is_recent(&seen) => {
            context.note(&format!("{error}; it answered within the last minute"));
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Nothing depends on this being kept: without it the node is not ready a minute earlier.
fn remember(seen: &PathBuf) {
    if let Some(dir) = seen.parent() {
        let _ = fs::create_dir_all(dir);
    }
    let _ = File::create(seen);
}

fn is_recent(seen: &PathBuf) -> bool {
    let changed = fs::metadata(seen).and_then(|metadata| metadata.modified());
    changed
        .ok()
        .and_then(|changed| SystemTime::now().duration_since(changed).ok())
        .is_some_and(|age| age < AGENT_MAY_BE_AWAY)
}
