//! GC: frees the resources of sandboxes that the runtime no longer lists (CNI 1.1.0 §2 GC).
//!
//! Jackfield first detaches the recorded sandboxes that the runtime no longer lists. To detach a
//! sandbox, Jackfield calls the plugins with DEL, because most plugins free less on GC than on DEL.
//! Then Jackfield calls every network's plugins with GC, and passes the remaining attachments of
//! that network. The runtime lists a sandbox only as (container, eth0). Jackfield finds the further
//! interfaces of the sandbox (net1, net2 and so on) in the journal.

mod attached;
mod networks;

use std::collections::HashSet;
use std::time::Duration;

use attached::LiveAttachments;
use networks::Networks;

use super::detach::{self, Detachment};
use super::note::damage;
use super::{Context, Failure, Note};
use crate::clock;
use crate::cni::{ContainerId, InterfaceName, ValidAttachment};
use crate::delegate::Ran;
use crate::journal::{ChangesLock, Key, Lock, LockError, Lookup, MultusCache, Sandbox, Turn};

/// How long GC waits at most for another process to release a container's lock, or the [`Turn`]
/// (the lock for reserving devices, MACs and GUIDs).
const BUSY: Duration = Duration::from_secs(1);
/// The minimum time for detaching one sandbox. If less time is left, GC leaves the sandbox to the
/// next GC.
const LEAST: Duration = Duration::from_secs(1);
/// While GC detaches sandboxes, it reserves a quarter of its time for the GC of the plugins.
const KEPT: u32 = 4;
/// GC waits until all changes of running pods have ended, but at most a quarter of its time.
const WAITING: u32 = 4;
/// GC asks the cluster for the networks in the node configuration. For the answer, GC waits at most
/// a quarter of the remaining time.
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

/// Detaches every recorded sandbox that the configuration on stdin does not list as valid, then
/// calls GC of the networks' plugins. Skips the GC of the plugins if the networks of a running pod
/// are being changed, or if the attachments of a live container are unknown. Does nothing if the
/// configuration has no list of valid attachments.
///
/// # Errors
/// All failures, combined. GC stops if the runtime's list or the journal cannot be read, or if an
/// I/O error occurs on the lock that excludes changes of running pods. After a failure to detach a
/// sandbox or to call a plugin, GC continues.
pub fn gc(context: &Context<'_>) -> Result<Collected, Failure> {
    let named = ValidAttachment::read_list(&context.request.stdin);
    let Some(named) = named.map_err(Failure::ValidAttachments)? else {
        context.note(Note::NoValidAttachments);
        return Ok(Collected::default());
    };
    // Note now which ADDs are complete. An ADD that completes while this GC waits is newer than the
    // runtime's list, so its sandbox must stay.
    let complete = context.host.journal.complete()?;
    let until = clock::now() + context.left() / WAITING;
    let no_change = match ChangesLock::exclude(&context.host.lock_dir, until) {
        Ok(lock) => Some(lock),
        Err(busy @ LockError::Busy { .. }) => {
            context.note(Note::ChangesUnderWay(busy));
            None
        }
        Err(failed) => return Err(failed.into()),
    };
    let mut gc = Gc {
        context,
        complete,
        collected: Collected::default(),
        failures: Vec::new(),
        attached: LiveAttachments::default(),
        networks: Networks::default(),
    };
    let detached = gc.detach_all_but(&named);
    if gc.collected.left > 0 {
        context.note(Note::GcOutOfTime(gc.collected.left));
    }
    if detached.is_ok() {
        sweep(context);
        if no_change.is_some() {
            gc.tell_networks(&named);
        }
    }
    gc.failures.extend(detached.err());
    Failure::of(gc.failures)?;
    Ok(gc.collected)
}

/// Removes files that killed or failed calls have left behind:
/// - the journal's files in `owed/`, `changes/` and `exclusive/` for sandboxes without a record;
/// - lock files that no process has locked.
///
/// These files do no harm, so a failure to remove them does not fail the GC.
fn sweep(context: &Context<'_>) {
    let (journal, locks) = (&context.host.journal, &context.host.lock_dir);
    journal.sweep_markers(locks);
    Lock::sweep(locks);
    let until = context.deadline.min(clock::now() + BUSY);
    if journal.has_stale_links()
        && let Ok(turn) = Turn::take(locks, until)
    {
        journal.sweep_links(&turn);
    }
}

/// A GC in progress.
struct Gc<'a> {
    context: &'a Context<'a>,
    /// The sandboxes whose ADD was complete when the GC began.
    complete: HashSet<Key>,
    collected: Collected,
    failures: Vec<Failure>,
    /// The attachments that the networks' plugins must keep.
    attached: LiveAttachments,
    networks: Networks,
}

impl Gc<'_> {
    /// Detaches the recorded sandboxes that are not in `named`.
    fn detach_all_but(&mut self, named: &[ValidAttachment]) -> Result<(), Failure> {
        let named = named.iter().map(|it| (&it.container_id, &it.ifname));
        let named: HashSet<(&ContainerId, &InterfaceName)> = named.collect();
        let is_named = |key: &Key| named.contains(&(&key.container, &key.ifname));
        let context = self.context.sparing(KEPT);
        let (keys, damaged) = context.host.journal.keys_and_damaged()?;
        for aside in damaged {
            context.note(Note::DamagedRecord(damage(aside)));
        }
        let mut waiting = keys.iter().filter(|key| !is_named(key)).count();
        for key in keys {
            // Keep only one record in memory at a time, because a record contains the
            // configurations of its networks and may be large.
            let Lookup::Found(sandbox) = context.host.journal.find(&key)? else {
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

    /// Detaches one sandbox that the runtime does not list. `seen` is the record of the sandbox as
    /// GC read it before taking the lock. Uses at most half of the remaining time if other
    /// sandboxes wait.
    fn collect(
        &mut self,
        context: &Context<'_>,
        key: Key,
        seen: &Sandbox,
        others_wait: bool,
    ) -> Result<(), Failure> {
        if context.left() < LEAST {
            // Keep the attachments of this sandbox, so that no plugin frees their resources. Do not
            // record a failed detachment, because GC has not tried to detach the sandbox.
            self.attached.keep(seen);
            self.collected.left += 1;
            return Ok(());
        }
        let until = context.deadline.min(clock::now() + BUSY);
        let lock = Lock::take(&context.host.lock_dir, &key.container, until);
        if let Err(LockError::Busy { .. }) = lock {
            // Another process is working on the sandbox, so treat the sandbox as alive.
            self.attached.keep(seen);
        }
        let _lock = lock?;
        let Lookup::Found(sandbox) = context.host.journal.find(&key)? else {
            // Another call has detached the sandbox in the meantime.
            return Ok(());
        };
        if sandbox.complete && !self.complete.contains(&key) {
            // The ADD of the sandbox completed after the GC had begun, so the runtime could not
            // list the sandbox yet.
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

    /// Calls GC of every network's plugins with the remaining attachments of that network. The
    /// networks share the remaining time equally. Calls no plugin if the attachments of a live
    /// container are unknown, because plugins would free the resources of that container.
    fn tell_networks(&mut self, named: &[ValidAttachment]) {
        let context = self.context;
        let cache = MultusCache::new(&context.request.config.cni_dir);
        context.host.journal.prune_adopted(&cache);
        self.attached.keep_cached(&cache, &context.host.journal);
        if let Some(unknown) = self.attached.unknown(named) {
            context.note(Note::UnrecordedContainer(unknown.clone()));
            return;
        }
        // Ask the cluster only now, so that a missing answer cannot delay the detachments.
        let until = clock::now() + context.left() / ASKING;
        let networks = &mut self.networks;
        networks.add_administrators(context, until, &mut self.failures);
        networks.note_left_out(context);
        for (index, network) in networks.known.iter().enumerate() {
            let left = u32::try_from(networks.known.len() - index).unwrap_or(u32::MAX);
            let until = clock::now() + context.left() / left;
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
