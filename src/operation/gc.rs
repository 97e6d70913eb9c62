//! GC: free what the runtime no longer knows (CNI 1.1.0 §2 GC).
//!
//! What is on record and not named any more is detached by DELs, since hardly any plugin frees on
//! GC what its DEL would. Then every network is told who is still attached to it. The runtime
//! knows sandboxes as (container, eth0); the journal knows each one's net1, net2, …

mod attached;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use attached::Attached;

use super::detach::{self, Detachment};
use super::networks::{self, KnownNetwork};
use super::{Context, Failure};
use crate::cni::{InterfaceName, NetworkName, ValidAttachment};
use crate::journal::{Key, Lock, LockError, Lookup, MultusCache, Sandbox};

/// How long somebody else's work on a sandbox is waited for.
const BUSY: Duration = Duration::from_secs(1);

/// What a GC did.
#[derive(Debug, Default)]
pub struct Collected {
    /// The sandboxes that were detached.
    pub sandboxes: Vec<Key>,
    /// The networks whose plugins were told, each with how many attachments it still has.
    pub networks: Vec<(String, usize)>,
}

/// Collects what the configuration on stdin does not name; nothing when it names no list at all.
///
/// # Errors
/// Everything that failed, once everything was tried.
pub fn gc(context: &Context<'_>) -> Result<Collected, Failure> {
    let named = ValidAttachment::read_list(&context.request.stdin);
    let mut collected = Collected::default();
    let Some(named) = named.map_err(Failure::ValidAttachments)? else {
        context.note("the runtime names no list of valid attachments, so nothing is collected");
        return Ok(collected);
    };
    let valid: HashSet<&ValidAttachment> = named.iter().collect();
    let mut failures = Vec::new();
    let on_record = records(context)?;
    let networks = every_network(context, &on_record, &mut failures);
    let mut attached = Attached::default();
    for (key, sandbox) in on_record {
        if is_named(&valid, &key) {
            attached.keep(&sandbox);
            continue;
        }
        match collect(context, &key, &sandbox) {
            Ok(Fate::Detached) => collected.sandboxes.push(key),
            Ok(Fate::Gone) => {}
            Ok(Fate::Alive) => attached.keep(&sandbox),
            Err(failure) => {
                if matches!(failure, Failure::Lock(LockError::Busy { .. })) {
                    // Somebody is at work on it, so it lives.
                    attached.keep(&sandbox);
                }
                failures.push(failure);
            }
        }
    }
    let cache = MultusCache::new(&context.request.node.cni_dir);
    context.node.journal.prune_adopted(&cache);
    let first = InterfaceName::first();
    attached.keep_cached(&cache, &context.node.journal, &first);
    match attached.unknown(&named) {
        Some(unknown) => context.note(&format!(
            "container {unknown} is attached and not on record, so no network is collected: \
             what it has might be freed"
        )),
        None => forward(context, &networks, &attached, &mut collected, &mut failures),
    }
    Failure::of(failures)?;
    Ok(collected)
}

fn is_named(named: &HashSet<&ValidAttachment>, key: &Key) -> bool {
    named.contains(&ValidAttachment {
        container_id: key.container.clone(),
        ifname: key.ifname.clone(),
    })
}

fn records(context: &Context<'_>) -> Result<Vec<(Key, Sandbox)>, Failure> {
    let journal = &context.node.journal;
    let (keys, damaged) = journal.keys_and_damaged()?;
    for line in damaged {
        context.note(&format!(
            "{line}; what it was about may still be attached: \
             delete its pod, whose DEL detaches what can be known"
        ));
    }
    let mut records = Vec::new();
    for key in keys {
        if let Lookup::Found(sandbox) = journal.find(&key)? {
            records.push((key, *sandbox));
        }
    }
    Ok(records)
}

/// What became of a sandbox that the runtime does not name.
enum Fate {
    Detached,
    /// Somebody else detached it.
    Gone,
    /// Its ADD has come to its end meanwhile: the runtime could not know it yet.
    Alive,
}

/// Detaches one sandbox, which was as `seen` before.
fn collect(context: &Context<'_>, key: &Key, seen: &Sandbox) -> Result<Fate, Failure> {
    let until = context.deadline.min(Instant::now() + BUSY);
    let _lock = Lock::take(&context.node.lock_dir, &key.container, until)?;
    match context.node.journal.find(key)? {
        Lookup::Found(sandbox) if sandbox.complete && !seen.complete => Ok(Fate::Alive),
        Lookup::Found(sandbox) => {
            detach::detach(context, *sandbox, Detachment::Earlier)?;
            Ok(Fate::Detached)
        }
        Lookup::Absent | Lookup::CutOff | Lookup::Quarantined { .. } => Ok(Fate::Gone),
    }
}

/// Every network that may hold something: the administrator's of today, and those on record.
fn every_network(
    context: &Context<'_>,
    on_record: &[(Key, Sandbox)],
    failures: &mut Vec<Failure>,
) -> Vec<KnownNetwork> {
    let mut networks: Vec<KnownNetwork> = Vec::new();
    match networks::administrators(context) {
        Ok(found) => {
            for network in std::iter::once(found.cluster).chain(found.others) {
                match network {
                    Ok(network) => networks.push(network),
                    Err(failure) => failures.push(failure),
                }
            }
        }
        Err(failure) => failures.push(failure),
    }
    let recorded = on_record
        .iter()
        .flat_map(|(_, sandbox)| &sandbox.header.attachments);
    let own = networks.iter();
    let own = own.map(|network| (&network.name, network.config.raw().trim()));
    let mut known: HashSet<(&NetworkName, &str)> = own.collect();
    let unknown: Vec<KnownNetwork> = recorded
        .filter(|attachment| known.insert((&attachment.network, attachment.config.raw().trim())))
        .map(|attachment| KnownNetwork {
            label: attachment.label.clone(),
            name: attachment.network.clone(),
            config: attachment.config.clone(),
        })
        .collect();
    networks.extend(unknown);
    networks
}

/// Tells every network who is still attached to it, each within its share of the time.
fn forward(
    context: &Context<'_>,
    networks: &[KnownNetwork],
    attached: &Attached,
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
            Ok(Ran::TooOld | Ran::Disabled) => {}
            Err(failure) => failures.push(failure),
        }
    }
}
