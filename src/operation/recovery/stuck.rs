//! Gives up an attachment if its ADD failed and its plugins also refuse DEL. The usual cause of
//! both failures is a faulty configuration. If Jackfield did not give up, the attachment would
//! block the deletion of its pod forever.
//!
//! ```text
//! refused ▶ does the network have a new configuration? ▶ retry DEL with the new configuration
//!         ▶ refused for ten minutes, and five times?   ▶ give up and report it
//! ```
//!
//! Giving up leaves no interface behind: Jackfield's DEL succeeds, and the runtime then deletes the
//! pod's network namespace with its interfaces.

use std::path::Path;
use std::time::Duration;

use crate::clock;
use crate::cluster::{PodName, Question};
use crate::cni::{NetworkConfig, PluginType};
use crate::delegate::DelegateError;
use crate::journal::Sandbox;
use crate::operation::detach::detach_one;
use crate::operation::devices::hardware::Hardware;
use crate::operation::networks;
use crate::operation::{Context, Failure, Note};
use crate::plan::Attachment;

/// The minimum time for which Jackfield retries the DEL. A controller that the plugins need may be
/// down for a while.
const TRIED_FOR: Duration = Duration::from_secs(600);
/// The minimum number of attempts. A minimum time alone is not enough, because the clock may jump
/// between two attempts.
const TRIED: u32 = 5;

/// The time limit for asking the cluster for the network's current configuration.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// Handles the attachment `index` after its DEL has failed with `debt`. Returns `Ok` if the
/// attachment is detached or given up.
///
/// # Errors
/// Returns `debt` if the DEL must be retried. Returns another failure if Jackfield gives up the
/// attachment and cannot remove its device-info file.
pub(in crate::operation) fn settle(
    context: &Context<'_>,
    sandbox: &Sandbox,
    index: usize,
    netns: Option<&Path>,
    debt: Failure,
) -> Result<(), Failure> {
    let attachment = &sandbox.header.attachments[index];
    let progress = &sandbox.progress[index];
    // Do not give up an attachment whose ADD succeeded or was interrupted, because its plugins may
    // hold resources. Do not give up after a timeout or crash of a plugin, because a retry may
    // succeed.
    if progress.failed_at.is_none() || !is_refusal(&debt) {
        return Err(debt);
    }
    let pod = sandbox.header.pod.as_ref();
    if let Some(current) = with_current_configuration(context, attachment, pod)
        && detach_one(context, sandbox, &current, progress, netns).is_ok()
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

/// Whether every failed plugin returned an error, exited with a status other than 0, or could not
/// be started. False, for example, if a plugin timed out.
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

/// Returns the attachment with the current configuration of its network. Returns `None` if the
/// cluster does not answer, or if the configuration has not changed since the ADD. Also returns
/// `None` if the current configuration has another CNI name or other plugins, because a DEL could
/// then not free the resources that the ADD allocated.
fn with_current_configuration(
    context: &Context<'_>,
    attachment: &Attachment,
    pod: Option<&PodName>,
) -> Option<Attachment> {
    let until = clock::now() + ANSWERS_WITHIN;
    let cluster = context.host.cluster;
    if context.left() < ANSWERS_WITHIN || cluster.ready(&Question::default(), until).is_err() {
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

fn plugins(config: &NetworkConfig) -> impl Iterator<Item = (&PluginType, Option<&PluginType>)> {
    let plugins = config.plugins().iter();
    plugins.map(|plugin| (plugin.plugin_type(), plugin.ipam_type()))
}
