//! Detaching what is on record although no runtime asks: Jackfield leaves the node.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::boot::boot_id;
use crate::journal::{Header, Key, Lock, Lookup};
use crate::kernel::PodNetns;
use crate::operation::detach::{self, Detachment};
use crate::operation::{Context, Failure};

/// How long one sandbox may take.
const PER_SANDBOX: Duration = Duration::from_secs(50);

/// Which sandboxes are detached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Those whose network namespace is gone: nobody is attached any more, but leases and devices
    /// are still taken.
    Gone,
    /// All of them, with pods that run.
    All,
}

/// What became of the sandboxes on record.
#[derive(Debug, Default)]
pub struct Retired {
    /// Detached.
    pub detached: Vec<Key>,
    /// Still attached, each with its pod where one is known.
    pub attached: Vec<(Key, Option<String>)>,
    /// What could not be detached; it is owed.
    pub failed: Vec<Failure>,
}

/// Whether the namespace that a record is about is still there: a path is used again, and a boot
/// ends them all.
pub fn has_netns(header: &Header) -> bool {
    let same =
        |netns: PodNetns| header.netns_id.is_empty() || netns.id().to_string() == header.netns_id;
    header.boot == boot_id() && PodNetns::open(Path::new(&header.netns)).is_ok_and(same)
}

/// Detaches sandboxes on record, each within a time of its own; the context's bounds the whole.
///
/// # Errors
/// When the journal cannot be read. What could not be detached is in [`Retired::failed`].
pub fn retire(context: &Context<'_>, which: Which) -> Result<Retired, Failure> {
    let journal = &context.host.journal;
    let mut retired = Retired::default();
    for key in journal.keys()? {
        let until = context.deadline.min(Instant::now() + PER_SANDBOX);
        let one = context.until(until);
        match one_sandbox(&one, &key, which) {
            Ok(Outcome::Detached) => retired.detached.push(key),
            Ok(Outcome::Attached(pod)) => retired.attached.push((key, pod)),
            Ok(Outcome::Nothing) => {}
            Err(failure) => retired.failed.push(failure),
        }
    }
    Ok(retired)
}

enum Outcome {
    Detached,
    Attached(Option<String>),
    Nothing,
}

fn one_sandbox(context: &Context<'_>, key: &Key, which: Which) -> Result<Outcome, Failure> {
    let _lock = Lock::take(&context.host.lock_dir, &key.container, context.deadline)?;
    let Lookup::Found(sandbox) = context.host.journal.find(key)? else {
        return Ok(Outcome::Nothing);
    };
    // What is owed no pod needs any more: its runtime has sent a DEL.
    let is_owed = context.host.journal.owed(key).is_some();
    if which == Which::Gone && !is_owed && has_netns(&sandbox.header) {
        let pod = sandbox.header.pod.as_ref().map(ToString::to_string);
        return Ok(Outcome::Attached(pod));
    }
    detach::detach(context, *sandbox, Detachment::Earlier)?;
    Ok(Outcome::Detached)
}
