//! Detaches the sandboxes on record when Jackfield is uninstalled, without waiting for a DEL from
//! the runtime.

use std::path::Path;
use std::time::Duration;

use crate::boot::boot_id;
use crate::clock;
use crate::journal::{Header, Key, Lock, Lookup};
use crate::kernel::{NetnsError, PodNetns};
use crate::operation::detach::{self, Detachment, recorded_netns};
use crate::operation::{Context, Failure};

/// The time limit for one sandbox.
const PER_SANDBOX: Duration = Duration::from_secs(50);

/// The sandboxes to detach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Sandboxes without a network namespace, and sandboxes whose detachment failed and is still
    /// owed. These sandboxes may still hold IP addresses and devices.
    Gone,
    /// All sandboxes, including those of running pods.
    All,
}

/// The outcome for the recorded sandboxes.
#[derive(Debug, Default)]
pub struct Retired {
    /// The detached sandboxes.
    pub detached: Vec<Key>,
    /// The sandboxes that stay attached, each with its pod if the pod is known.
    pub attached: Vec<(Key, Option<String>)>,
    /// The failures, one for each sandbox that could not be detached. The journal keeps the records
    /// of these sandboxes.
    pub failed: Vec<Failure>,
}

/// Returns whether the recorded network namespace still exists. The recorded path may now lead to a
/// different namespace. So if the record has the namespace's identity (`netns_id`), the namespace
/// at the path must have this identity. After a reboot, no recorded namespace exists.
///
/// # Errors
/// If a lack of file descriptors or memory prevents the check.
pub fn has_netns(header: &Header) -> Result<bool, NetnsError> {
    let path = Path::new(&header.netns);
    if header.boot != boot_id() {
        return Ok(false);
    }
    if !header.netns_id.is_empty() {
        return Ok(recorded_netns(header, path)?.is_some());
    }
    match PodNetns::open(path) {
        Err(unknown) if unknown.is_shortage() => Err(unknown),
        opened => Ok(opened.is_ok()),
    }
}

/// Detaches the recorded sandboxes that `which` selects. Each sandbox has its own time limit, and
/// the deadline of `context` limits all of them together.
///
/// # Errors
/// If the journal cannot be read. Failed detachments are in [`Retired::failed`].
pub fn retire(context: &Context<'_>, which: Which) -> Result<Retired, Failure> {
    let journal = &context.host.journal;
    let mut retired = Retired::default();
    for key in journal.keys()? {
        let until = context.deadline.min(clock::now() + PER_SANDBOX);
        let one = context.until(until);
        if let Err(failure) = retire_one(&one, key, which, &mut retired) {
            retired.failed.push(failure);
        }
    }
    Ok(retired)
}

fn retire_one(
    context: &Context<'_>,
    key: Key,
    which: Which,
    retired: &mut Retired,
) -> Result<(), Failure> {
    let _lock = Lock::take(&context.host.lock_dir, &key.container, context.deadline)?;
    let Lookup::Found(sandbox) = context.host.journal.find(&key)? else {
        return Ok(());
    };
    // If the detachment is owed, an earlier call (for example a DEL) failed to detach the sandbox.
    // Try again, even if the network namespace still exists.
    let is_owed = context.host.journal.owed(&key).is_some();
    if which == Which::Gone && !is_owed && has_netns(&sandbox.header)? {
        let pod = sandbox.header.pod.as_ref().map(ToString::to_string);
        retired.attached.push((key, pod));
    } else {
        detach::detach(context, *sandbox, Detachment::Earlier)?;
        retired.detached.push(key);
    }
    Ok(())
}
