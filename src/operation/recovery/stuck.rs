//! An attachment whose ADD failed and whose plugins refuse its DEL as well: what is wrong with a
//! configuration is wrong for both. It keeps no sandbox from being deleted for ever.
//!
//! ```text
//! refused ▶ does its network have another configuration by now? ▶ by that one
//!         ▶ refused for ten minutes? ▶ given up, and said
//! ```
//!
//! An interface that is left goes with the pod's network namespace, which its runtime keeps until
//! the DEL succeeds.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::cluster::PodName;
use crate::cni::{NetworkConfig, PluginType};
use crate::delegate::DelegateError;
use crate::journal::Sandbox;
use crate::operation::detach::detach_one;
use crate::operation::devices::hardware::Hardware;
use crate::operation::networks;
use crate::operation::{Context, Failure, Note};
use crate::plan::Attachment;

/// How long it is tried: a controller that its plugins ask may be away meanwhile.
const TRIED_FOR: Duration = Duration::from_secs(600);
/// And how often: a clock may be set meanwhile.
const TRIED: u32 = 5;

/// How quickly somebody has to answer who knows its network: nothing else waits for that.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// Sees to the attachment `index`, whose DEL has just failed with `debt`.
///
/// # Errors
/// The same debt, as long as it is to be tried.
pub(in crate::operation) fn settle(
    context: &Context<'_>,
    sandbox: &Sandbox,
    index: usize,
    netns: Option<&Path>,
    debt: Failure,
) -> Result<(), Failure> {
    let attachment = &sandbox.header.attachments[index];
    let progress = &sandbox.progress[index];
    // Where the ADD was interrupted its plugins may have done their work.
    if progress.failed_at.is_none() || !is_refusal(&debt) {
        return Err(debt);
    }
    if let Some(today) = of_today(context, attachment, sandbox.header.pod.as_ref())
        && detach_one(context, sandbox, &today, progress, netns).is_ok()
    {
        context.note(Note::DetachedByCurrentConfiguration(attachment.place()));
        return Ok(());
    }
    let owed = context.host.journal.owed(&sandbox.header.key());
    if !owed.is_some_and(|owed| owed.attempts >= TRIED && owed.is_older_than(TRIED_FOR)) {
        return Err(debt);
    }
    Hardware::remove_file(attachment)?;
    context.note(Note::GivenUp(debt));
    Ok(())
}

/// Whether every plugin that failed has answered, and refused, or cannot be started at all.
fn is_refusal(debt: &Failure) -> bool {
    let Failure::Delegates { causes, .. } = debt else {
        return false;
    };
    let mut causes = causes.iter();
    causes.all(|it| {
        use DelegateError::{Failed, NotStarted, Refused};
        matches!(it.cause, Refused(_) | Failed { .. } | NotStarted { .. })
    })
}

/// The attachment by the configuration that its network has now, where that is another one of the
/// same plugins: others know nothing of what these hold.
fn of_today(
    context: &Context<'_>,
    attachment: &Attachment,
    pod: Option<&PodName>,
) -> Option<Attachment> {
    let left = context.deadline.saturating_duration_since(Instant::now());
    let until = Instant::now() + ANSWERS_WITHIN;
    if left < ANSWERS_WITHIN || context.host.cluster.ready(until).is_err() {
        return None;
    }
    let network = networks::find(context, attachment, pod, until)?;
    let is_another = network.config.raw() != attachment.config.raw();
    let is_akin = network.name == attachment.network
        && plugins(&network.config).eq(plugins(&attachment.config));
    (is_another && is_akin).then(|| Attachment {
        network: network.name,
        config: network.config,
        ..attachment.clone()
    })
}

fn plugins(
    config: &NetworkConfig,
) -> impl Iterator<Item = (&PluginType, Option<&PluginType>)> + '_ {
    let plugins = config.plugins().iter();
    plugins.map(|plugin| (plugin.plugin_type(), plugin.ipam_type()))
}
