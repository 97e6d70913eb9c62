//! GC: free what the runtime no longer knows (CNI 1.1.0 §2 GC).
//!
//! GC first detaches, by DELs, the sandboxes on record that the runtime no longer lists, since
//! hardly any plugin frees on GC what its DEL would. Then it sends every network the list of its
//! remaining attachments. The runtime knows sandboxes as (container, eth0); the journal knows the
//! net1, net2, … of each.

mod attached;
mod networks;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use attached::LiveAttachments;
use networks::Networks;

use super::detach::{self, Detachment};
use super::networks::KnownNetwork;
use super::{Context, Failure, Note};
use crate::cni::{InterfaceName, ValidAttachment};
use crate::journal::{Key, Lock, LockError, Lookup, MultusCache, Sandbox};

/// How long to wait for another process that works on a sandbox.
const BUSY: Duration = Duration::from_secs(1);
/// The least time for detaching one sandbox; with less, GC leaves it to the next GC.
const LEAST: Duration = Duration::from_secs(1);
/// The fraction of the time that is reserved while sandboxes are detached: a quarter.
const KEPT: u32 = 4;
/// The fraction of the remaining time in which the cluster has to name the administrator's
/// networks.
const ASKING: u32 = 4;

/// The outcome of a GC.
#[derive(Debug, Default)]
pub struct Collected {
    /// The detached sandboxes.
    pub sandboxes: Vec<Key>,
    /// The networks whose plugins ran GC, each with the number of its remaining attachments.
    pub networks: Vec<(String, usize)>,
    /// The number of sandboxes that GC had no time to detach.
    pub left: usize,
}

/// Collects what the configuration on stdin does not list; collects nothing if it has no list.
///
/// # Errors
/// All failures, after everything was tried.
pub fn gc(context: &Context<'_>) -> Result<Collected, Failure> {
    let named = ValidAttachment::read_list(&context.request.stdin);
    let mut collected = Collected::default();
    let Some(named) = named.map_err(Failure::ValidAttachments)? else {
        context.note(Note::NoValidAttachments);
        return Ok(collected);
    };
    let valid: HashSet<&ValidAttachment> = named.iter().collect();
    let mut failures = Vec::new();
    let mut attached = LiveAttachments::default();
    let mut networks = Networks::default();
    // GC asks the cluster later, so that a missing answer does not delay detaching.
    let until = context.deadline - left(context) / KEPT;
    let collecting = context.until(until);
    let keys = keys(context)?;
    let mut waiting = keys.iter().filter(|key| !is_named(&valid, key)).count();
    for key in keys {
        // Reads one record at a time, since a record holds the configurations of its networks.
        let Some(sandbox) = on_record(context, &key)? else {
            continue;
        };
        networks.add_recorded(&sandbox);
        if is_named(&valid, &key) {
            attached.keep(&sandbox);
            continue;
        }
        waiting -= 1;
        match collect(&collecting, &key, &sandbox, waiting > 0) {
            Ok(Fate::Detached) => collected.sandboxes.push(key),
            Ok(Fate::Gone) => {}
            Ok(Fate::Alive) => attached.keep(&sandbox),
            Ok(Fate::NoTime) => {
                // The plugins of its networks must not free what it still has.
                attached.keep(&sandbox);
                collected.left += 1;
            }
            Err(failure) => {
                if matches!(failure, Failure::Lock(LockError::Busy { .. })) {
                    // Another process works on it, so it is alive.
                    attached.keep(&sandbox);
                }
                failures.push(failure);
            }
        }
    }
    if collected.left > 0 {
        context.note(Note::GcOutOfTime {
            left: collected.left,
        });
    }
    tell_networks(
        context,
        &named,
        networks,
        attached,
        &mut collected,
        &mut failures,
    );
    Failure::of(failures)?;
    Ok(collected)
}

/// Runs the GC of every network, unless a live container is unknown.
fn tell_networks(
    context: &Context<'_>,
    named: &[ValidAttachment],
    mut networks: Networks,
    mut attached: LiveAttachments,
    collected: &mut Collected,
    failures: &mut Vec<Failure>,
) {
    let cache = MultusCache::new(&context.request.config.cni_dir);
    context.host.journal.prune_adopted(&cache);
    let first = InterfaceName::first();
    attached.keep_cached(&cache, &context.host.journal, &first);
    match attached.unknown(named) {
        Some(unknown) => context.note(Note::UnrecordedContainer(unknown.clone())),
        None => {
            networks.add_administrators(context, Instant::now() + left(context) / ASKING, failures);
            networks.note_left_out(context);
            forward(context, &networks.known, &attached, collected, failures);
        }
    }
}

/// The remaining time.
fn left(context: &Context<'_>) -> Duration {
    context.deadline.saturating_duration_since(Instant::now())
}

fn is_named(named: &HashSet<&ValidAttachment>, key: &Key) -> bool {
    named.contains(&ValidAttachment {
        container_id: key.container.clone(),
        ifname: key.ifname.clone(),
    })
}

fn keys(context: &Context<'_>) -> Result<Vec<Key>, Failure> {
    let (keys, damaged) = context.host.journal.keys_and_damaged()?;
    let damaged = damaged.into_iter();
    damaged.for_each(|line| context.note(Note::DamagedRecord(line)));
    Ok(keys)
}

fn on_record(context: &Context<'_>, key: &Key) -> Result<Option<Box<Sandbox>>, Failure> {
    Ok(match context.host.journal.find(key)? {
        Lookup::Found(sandbox) => Some(sandbox),
        Lookup::Absent | Lookup::CutOff => None,
        Lookup::Quarantined { file, cause } => {
            let line = format!("a record was damaged ({cause}) and is now {file}");
            context.note(Note::DamagedRecord(line));
            None
        }
    })
}

/// The outcome for a sandbox that the runtime does not list.
enum Fate {
    Detached,
    /// Another call detached it.
    Gone,
    /// Its ADD has completed in the meantime; the runtime could not list it yet.
    Alive,
    /// Not tried: otherwise it would be owed without an attempt.
    NoTime,
}

/// Detaches one sandbox, which was `seen` before. Takes at most half of the remaining time if
/// others wait.
fn collect(
    context: &Context<'_>,
    key: &Key,
    seen: &Sandbox,
    others_wait: bool,
) -> Result<Fate, Failure> {
    let left = left(context);
    if left < LEAST {
        return Ok(Fate::NoTime);
    }
    let until = context.deadline.min(Instant::now() + BUSY);
    let _lock = Lock::take(&context.host.lock_dir, &key.container, until)?;
    match context.host.journal.find(key)? {
        Lookup::Found(sandbox) if sandbox.complete && !seen.complete => Ok(Fate::Alive),
        Lookup::Found(sandbox) => {
            let kept = Some(left / 2).filter(|_| others_wait).unwrap_or_default();
            let own = context.until(context.deadline - kept);
            let detached = detach::detach(&own, *sandbox, Detachment::Earlier);
            detached?;
            Ok(Fate::Detached)
        }
        Lookup::Absent | Lookup::CutOff | Lookup::Quarantined { .. } => Ok(Fate::Gone),
    }
}

/// Runs GC of every network with its remaining attachments, each within its share of the time.
fn forward(
    context: &Context<'_>,
    networks: &[KnownNetwork],
    attached: &LiveAttachments,
    collected: &mut Collected,
    failures: &mut Vec<Failure>,
) {
    use crate::delegate::Ran;
    for (index, network) in networks.iter().enumerate() {
        let now = Instant::now();
        let left = u32::try_from(networks.len() - index).unwrap_or(u32::MAX);
        let until = now + context.deadline.saturating_duration_since(now) / left;
        let valid = attached.to(&network.name);
        match network.gc(context, &valid, until) {
            Ok(Ran::All) => collected
                .networks
                .push((network.label.clone(), valid.len())),
            Ok(Ran::None) => {}
            Err(failure) => failures.push(failure),
        }
    }
}
