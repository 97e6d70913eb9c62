//! Changes the networks of a running pod, so that its attachments agree with its annotation. The
//! cluster network and the other networks of the node configuration stay as they are.
//!
//! ```text
//! compare ▶ record the intent ▶ detach what is no longer selected ▶ attach what is new ▶ publish
//! ```
//!
//! The sandbox's record contains the intent ([`PendingChange`]) until the change is complete or
//! rolled back. If this process is killed before that, a DEL still detaches everything that the
//! change may have started. If no DEL comes, the next change first detaches the attachments that
//! the interrupted change was adding or removing.
//!
//! [`PendingChange`]: crate::journal::PendingChange

mod carry_out;
pub mod workers;

use std::path::Path;

use super::attach::check_free;
use super::detach::{self, Detachment};
use super::prepare::{self, Change};
use super::recovery::retire::has_netns;
use super::{Context, Failure, Note};
use crate::boot::boot_id;
use crate::cluster::{Event, SandboxNetworks};
use crate::cni::RawObject;
use crate::journal::{ChangesLock, Header, Key, Lookup, Sandbox};
use crate::kernel::{PodLinks, PodNetns, capabilities};
use crate::npwg::{NetworksDigest, StatusEntry};
use crate::plan::{Attachment, NetworkPlace};
use crate::request::{Call, Request, RequestError};
use carry_out::{carry_out, publish};

/// The outcome of a change.
#[derive(Debug, Default)]
pub struct Changed {
    /// The detached networks.
    pub detached: Vec<NetworkPlace>,
    /// The attached networks.
    pub attached: Vec<NetworkPlace>,
    /// The status of every attachment, as the change published it; empty if the change published no
    /// status.
    pub status: Vec<StatusEntry>,
}

impl Changed {
    /// Whether no network was detached or attached.
    pub fn is_empty(&self) -> bool {
        self.detached.is_empty() && self.attached.is_empty()
    }
}

/// Builds the request for a change of the sandbox that `header` describes. The request is an ADD
/// with the recorded values of the sandbox, and with `cni_path` as `CNI_PATH`. `conf` is the node
/// configuration.
///
/// # Errors
/// If the node configuration or a recorded value is invalid.
pub fn request(header: &Header, cni_path: &str, conf: RawObject) -> Result<Request, RequestError> {
    let call = Call::read(|wanted| match wanted {
        "CNI_COMMAND" => Some("ADD".to_owned()),
        "CNI_CONTAINERID" => Some(header.container.to_string()),
        "CNI_IFNAME" => Some(header.ifname.to_string()),
        "CNI_NETNS" => Some(header.netns.clone()),
        "CNI_ARGS" => Some(header.args.clone()),
        "CNI_PATH" => Some(cni_path.to_owned()),
        _ => None,
    })?;
    Request::for_people(call, conf)
}

/// Returns what [`change`] would detach and attach. Changes nothing. After an interrupted change,
/// the result may be inaccurate, because [`change`] first detaches the attachments that the
/// interrupted change was adding or removing.
///
/// # Errors
/// - If the container's lock cannot be taken, or if the record or the network namespace of the
///   sandbox cannot be read.
/// - If the node configuration forbids changes in the pod's Kubernetes namespace.
/// - If no plan can be made, or if the plan has problems.
pub fn foresee(context: &Context<'_>) -> Result<Changed, Failure> {
    let key = context.key()?;
    let _lock = context.lock(&key.container)?;
    let Some(sandbox) = running(context, &key)? else {
        return Ok(Changed::default());
    };
    let change = prepare(context, &sandbox)?;
    refuse_problems(&change)?;
    Ok(changed(&sandbox.header, &change))
}

/// Detaches the networks that the pod no longer selects, and attaches the newly selected networks.
/// Changes no network if the sandbox's pod is not running.
///
/// # Errors
/// The failure of any step. If a network cannot be attached, the change detaches the new networks,
/// but does not reattach the networks that it has removed. If the change fails after Jackfield has
/// found that the pod is running, the journal records the failure, and the pod gets an event.
pub fn change(context: &Context<'_>) -> Result<Changed, Failure> {
    capabilities::require()?;
    let key = context.key()?;
    let _lock = context.lock(&key.container)?;
    let _no_gc = ChangesLock::change(&context.host.lock_dir, context.deadline)?;
    let gone = SandboxNetworks::gone(&key.container, &key.ifname);
    let Some(sandbox) = running(context, &key)? else {
        context.host.stopwatch.sandbox(gone);
        return Ok(Changed::default());
    };
    let pod = sandbox.header.pod.clone();
    let mut networks = NetworksDigest::default();
    let outcome = change_locked(context, sandbox, &mut networks);
    let journal = &context.host.journal;
    match &outcome {
        Ok(_) => {
            journal.settle_change(&key);
            let changed = SandboxNetworks {
                pod,
                networks,
                ..gone
            };
            context.host.stopwatch.sandbox(changed);
        }
        Err(failure) => {
            if let Err(cause) = journal.fail_change(&key, networks) {
                context.note(Note::Tolerated(cause.into()));
            }
            let event = Event::warning("FailedNetworkChange", failure.in_full());
            // Ignore a failure to send the event, because the caller gets `failure` in any case.
            let _ = context.tell(pod.as_ref(), vec![event]);
        }
    }
    outcome
}

/// Returns the sandbox if its pod is running. The pod counts as running if all of these are true:
///
/// - the ADD of the sandbox completed in this boot;
/// - the record is intact and names the pod;
/// - the network namespace exists;
/// - no failed detachment of the sandbox waits for a retry.
fn running(context: &Context<'_>, key: &Key) -> Result<Option<Sandbox>, Failure> {
    let journal = &context.host.journal;
    let Lookup::Found(sandbox) = journal.find(key)? else {
        return Ok(None);
    };
    let header = &sandbox.header;
    let is_running = sandbox.complete
        && !sandbox.is_torn
        && header.boot == boot_id()
        && has_netns(header)?
        && header.pod.is_some()
        && journal.owed(key).is_none();
    Ok(is_running.then_some(*sandbox))
}

/// Compares the sandbox with the annotation of its pod.
///
/// # Errors
/// - If the node configuration forbids changes in the pod's Kubernetes namespace.
/// - If no plan can be made, for example because the cluster does not answer.
fn prepare(context: &Context<'_>, sandbox: &Sandbox) -> Result<Change, Failure> {
    let config = &context.request.config;
    let namespace = sandbox.header.pod.as_ref().map(|pod| &pod.namespace);
    if let Some(namespace) = namespace.filter(|it| !config.allows_changes(it)) {
        return Err(Failure::ChangesDenied(namespace.clone()));
    }
    prepare::change(context, &sandbox.header)
}

/// Checks that all networks of a change can be attached. If one network cannot, returns a failure
/// with the problems of all networks.
fn refuse_problems(change: &Change) -> Result<(), Failure> {
    let problems = change.prepared.problems.iter().cloned();
    Failure::of(problems.map(Failure::from).collect())
}

fn change_locked(
    context: &Context<'_>,
    sandbox: Sandbox,
    networks: &mut NetworksDigest,
) -> Result<Changed, Failure> {
    let netns = PodNetns::open(Path::new(&sandbox.header.netns))?;
    let mut links = (context.host.links)(&netns)?;
    let mut sandbox = settle(context, sandbox, links.as_mut())?;
    let change = prepare(context, &sandbox)?;
    *networks = change.prepared.networks.clone();
    context.note_warnings(&change.prepared.events);
    refuse_problems(&change)?;
    sandbox.set_selections(&change.kept);
    if change.removed.is_empty() && change.prepared.attachments.is_empty() {
        return Ok(Changed {
            status: agree(context, sandbox, networks.clone(), links.as_mut())?,
            ..Changed::default()
        });
    }
    let is_leaving = |attachment: &Attachment| {
        let mut leaving = sandbox.header.at(&change.removed);
        leaving.any(|it| it.ifname == attachment.ifname)
    };
    check_free(&change.prepared, links.as_mut(), is_leaving)?;
    let outcome = changed(&sandbox.header, &change);
    let status = carry_out(context, sandbox, change, &netns, links.as_mut())?;
    Ok(Changed { status, ..outcome })
}

/// Records that the attachments agree with the annotation, whose digest is `networks`.
///
/// A change records an empty digest when it begins, and replaces the empty digest after it has
/// published the status. If the record still has the empty digest, the previous change may not have
/// published the status. In this case, `agree` first publishes the status.
fn agree(
    context: &Context<'_>,
    mut sandbox: Sandbox,
    networks: NetworksDigest,
    links: &mut dyn PodLinks,
) -> Result<Vec<StatusEntry>, Failure> {
    let known = sandbox.header.networks.as_ref();
    if known == Some(&networks) {
        return Ok(Vec::new());
    }
    let mut status = Vec::new();
    if known == Some(&NetworksDigest::default()) {
        status = publish(context, &sandbox, links, Vec::new())?;
    }
    sandbox.header.networks = Some(networks);
    context.host.journal.write(&sandbox)?;
    Ok(status)
}

fn changed(header: &Header, change: &Change) -> Changed {
    let removed = header.at(&change.removed);
    Changed {
        detached: removed.map(Attachment::place).collect(),
        attached: change.prepared.attachments().map(|it| it.place()).collect(),
        status: Vec::new(),
    }
}

/// Detaches the attachments that an interrupted change was adding or removing. Publishes the status
/// of the remaining attachments, and returns the sandbox with only the remaining attachments.
fn settle(
    context: &Context<'_>,
    mut sandbox: Sandbox,
    links: &mut dyn PodLinks,
) -> Result<Sandbox, Failure> {
    if sandbox.header.change.is_none() {
        return Ok(sandbox);
    }
    let unfinished = sandbox.unfinished();
    detach::detach_some(context, &mut sandbox, &unfinished, Detachment::Earlier)?;
    // Release the devices and addresses of all attachments that the interrupted change was adding
    // or removing. `unfinished` lacks the attachments that are already detached or were never
    // started, but their devices and addresses may still be reserved.
    let attachments = sandbox.header.attachments.iter().enumerate();
    let ended = attachments.filter(|(index, _)| sandbox.is_pending(*index));
    let journal = &context.host.journal;
    journal.give_back(&sandbox.header.key(), ended.map(|(_, ended)| ended));
    let sandbox = sandbox.end_change(NetworksDigest::default());
    context.host.journal.write(&sandbox)?;
    publish(context, &sandbox, links, Vec::new())?;
    Ok(sandbox)
}
