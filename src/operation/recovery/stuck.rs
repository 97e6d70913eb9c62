//! Gives up attachments whose ADD failed and whose plugins also refuse DEL, since a faulty
//! configuration fails both. Otherwise such an attachment would block the deletion of its sandbox
//! forever.
//!
//! ```text
//! refused ▶ does its network have another configuration by now? ▶ retry with that one
//!         ▶ refused for ten minutes? ▶ give up and report it
//! ```
//!
//! A leftover interface disappears with the pod's network namespace, which the runtime keeps until
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

/// How long DELs are retried: a controller that the plugins need may be away for a while.
const TRIED_FOR: Duration = Duration::from_secs(600);
/// How many attempts are made at least, since the clock may be set in the meantime.
const TRIED: u32 = 5;

/// The time limit for finding the current network: nothing else waits for that.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// Handles the attachment `index`, whose DEL has just failed with `debt`.
///
/// # Errors
/// The same debt while it is to be retried.
pub(in crate::operation) fn settle(
    context: &Context<'_>,
    sandbox: &Sandbox,
    index: usize,
    netns: Option<&Path>,
    debt: Failure,
) -> Result<(), Failure> {
    let attachment = &sandbox.header.attachments[index];
    let progress = &sandbox.progress[index];
    // If the ADD was interrupted, its plugins may have done their work.
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

/// Whether every failed plugin has answered with a refusal or cannot be started at all.
fn is_refusal(debt: &Failure) -> bool {
    let Failure::Delegates(_, causes) = debt else {
        return false;
    };
    let mut causes = causes.iter();
    causes.all(|it| {
        use DelegateError::{Failed, NotStarted, Refused};
        matches!(it.cause, Refused(_) | Failed { .. } | NotStarted { .. })
    })
}

/// The attachment with the current configuration of its network, if that configuration differs and
/// has the same plugins. Other plugins would know nothing of what these hold.
fn of_today(
    context: &Context<'_>,
    attachment: &Attachment,
    pod: Option<&PodName>,
) -> Option<Attachment> {
    let until = Instant::now() + ANSWERS_WITHIN;
    if context.left() < ANSWERS_WITHIN || context.host.cluster.ready(until).is_err() {
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
