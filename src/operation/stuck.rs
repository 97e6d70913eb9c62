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
use std::time::Duration;

use super::detach::detach_one;
use super::networks;
use super::{Context, Failure};
use crate::delegate::CallError;
use crate::journal::Sandbox;
use crate::plan::Attachment;

/// How long it is tried: a controller that its plugins ask may be away meanwhile.
const TRIED_FOR: Duration = Duration::from_secs(600);

/// Sees to the attachment `index`, whose DEL has just failed with `debt`.
///
/// # Errors
/// The same debt, as long as something may be attached.
pub(super) fn settle(
    context: &Context<'_>,
    sandbox: &Sandbox,
    index: usize,
    netns: Option<&Path>,
    debt: Failure,
) -> Result<(), Failure> {
    let attachment = &sandbox.header.attachments[index];
    let progress = &sandbox.progress[index];
    // Of a torn record nobody knows whether the ADD failed.
    let never_attached = !sandbox.complete && !sandbox.is_torn && progress.result.is_none();
    if !never_attached || !is_refusal(&debt) {
        return Err(debt);
    }
    if let Some(today) = of_today(context, attachment)
        && detach_one(context, sandbox, &today, progress, netns).is_ok()
    {
        context.note(&format!(
            "{}: detached by its configuration of today, which is another",
            attachment.place()
        ));
        return Ok(());
    }
    let owed = context.node.journal.owed(&sandbox.header.key());
    if !owed.is_some_and(|owed| owed.is_older_than(TRIED_FOR)) {
        return Err(debt);
    }
    context.note(&format!(
        "{debt}; it is given up, for its ADD failed too. \
         An address that its IPAM plugin may have given is to be freed by hand"
    ));
    Ok(())
}

/// Whether every plugin that failed has answered, and refused.
fn is_refusal(debt: &Failure) -> bool {
    let Failure::Delegates { causes, .. } = debt else {
        return false;
    };
    let mut causes = causes.iter();
    causes.all(|it| matches!(it.cause, CallError::Refused(_) | CallError::Failed { .. }))
}

/// The attachment by the configuration that its network has now, where that is another.
fn of_today(context: &Context<'_>, attachment: &Attachment) -> Option<Attachment> {
    let network = networks::find(context, attachment)?;
    let is_another = network.config.raw() != attachment.config.raw();
    is_another.then(|| Attachment {
        network: network.name,
        config: network.config,
        ..attachment.clone()
    })
}
