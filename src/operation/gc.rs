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
use super::{Context, Failure, Note};
use crate::cni::{ContainerId, InterfaceName, ValidAttachment};
use crate::delegate::Ran;
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
    let Some(named) = named.map_err(Failure::ValidAttachments)? else {
        context.note(Note::NoValidAttachments);
        return Ok(Collected::default());
    };
    let mut gc = Gc {
        context,
        collected: Collected::default(),
        failures: Vec::new(),
        attached: LiveAttachments::default(),
        networks: Networks::default(),
    };
    gc.detach_all_but(&named)?;
    if gc.collected.left > 0 {
        context.note(Note::GcOutOfTime(gc.collected.left));
    }
    gc.tell_networks(&named);
    Failure::of(gc.failures)?;
    Ok(gc.collected)
}

/// A GC in progress.
struct Gc<'a> {
    context: &'a Context<'a>,
    collected: Collected,
    failures: Vec<Failure>,
    /// What is still attached.
    attached: LiveAttachments,
    networks: Networks,
}

impl Gc<'_> {
    /// Detaches the sandboxes on record that are not `named`.
    fn detach_all_but(&mut self, named: &[ValidAttachment]) -> Result<(), Failure> {
        let named = named.iter().map(|it| (&it.container_id, &it.ifname));
        let named: HashSet<(&ContainerId, &InterfaceName)> = named.collect();
        let is_named = |key: &Key| named.contains(&(&key.container, &key.ifname));
        // GC asks the cluster later, so that a missing answer does not delay detaching.
        let context = self.context.sparing(KEPT);
        let (keys, damaged) = context.host.journal.keys_and_damaged()?;
        for damaged in damaged {
            let line = damaged.map_or_else(|error| error.to_string(), |it| it.to_string());
            context.note(Note::DamagedRecord(line));
        }
        let mut waiting = keys.iter().filter(|key| !is_named(key)).count();
        for key in keys {
            // Reads one record at a time, since a record holds the configurations of its networks.
            let Some(sandbox) = on_record(&context, &key)? else {
                continue;
            };
            self.networks.add_recorded(&sandbox);
            if is_named(&key) {
                self.attached.keep(&sandbox);
                continue;
            }
            waiting -= 1;
            if let Err(failure) = self.collect(&context, key, &sandbox, waiting > 0) {
                self.failures.push(failure);
            }
        }
        Ok(())
    }

    /// Detaches one sandbox, which was `seen` before and which the runtime does not list. Takes at
    /// most half of the remaining time if others wait.
    fn collect(
        &mut self,
        context: &Context<'_>,
        key: Key,
        seen: &Sandbox,
        others_wait: bool,
    ) -> Result<(), Failure> {
        if context.left() < LEAST {
            // Without an attempt it is not owed. The plugins of its networks must not free what it
            // still has.
            self.attached.keep(seen);
            self.collected.left += 1;
            return Ok(());
        }
        let until = context.deadline.min(Instant::now() + BUSY);
        let lock = Lock::take(&context.host.lock_dir, &key.container, until);
        if let Err(LockError::Busy { .. }) = lock {
            // Another process works on it, so it is alive.
            self.attached.keep(seen);
        }
        let _lock = lock?;
        let Lookup::Found(sandbox) = context.host.journal.find(&key)? else {
            // Another call detached it.
            return Ok(());
        };
        if sandbox.complete && !seen.complete {
            // Its ADD has completed in the meantime; the runtime could not list it yet.
            self.attached.keep(seen);
            return Ok(());
        }
        let own = match others_wait {
            true => context.sparing(2),
            false => context.until(context.deadline),
        };
        detach::detach(&own, *sandbox, Detachment::Earlier)?;
        self.collected.sandboxes.push(key);
        Ok(())
    }

    /// Runs the GC of every network with its remaining attachments, each within its share of the
    /// time, unless a live container is unknown.
    fn tell_networks(&mut self, named: &[ValidAttachment]) {
        let context = self.context;
        let cache = MultusCache::new(&context.request.config.cni_dir);
        context.host.journal.prune_adopted(&cache);
        self.attached.keep_cached(&cache, &context.host.journal);
        if let Some(unknown) = self.attached.unknown(named) {
            context.note(Note::UnrecordedContainer(unknown.clone()));
            return;
        }
        let until = Instant::now() + context.left() / ASKING;
        let networks = &mut self.networks;
        networks.add_administrators(context, until, &mut self.failures);
        networks.note_left_out(context);
        for (index, network) in networks.known.iter().enumerate() {
            let left = u32::try_from(networks.known.len() - index).unwrap_or(u32::MAX);
            let until = Instant::now() + context.left() / left;
            let valid = self.attached.to(&network.name);
            match network.gc(context, &valid, until) {
                Ok(Ran::All) => {
                    let told = (network.label.clone(), valid.len());
                    self.collected.networks.push(told);
                }
                Ok(Ran::None) => {}
                Err(failure) => self.failures.push(failure),
            }
        }
    }
}

fn on_record(context: &Context<'_>, key: &Key) -> Result<Option<Box<Sandbox>>, Failure> {
    Ok(match context.host.journal.find(key)? {
        Lookup::Found(sandbox) => Some(sandbox),
        Lookup::Absent | Lookup::CutOff => None,
        Lookup::Quarantined(damaged) => {
            context.note(Note::DamagedRecord(damaged.to_string()));
            None
        }
    })
}
