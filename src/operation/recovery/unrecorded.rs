//! Reconstructs sandboxes without a record: Multus attached them, they are older than Jackfield on
//! this node, or their record is lost.
//!
//! ```text
//! Multus' cache ──▶ else: the current cluster network, with the runtime's prevResult
//!                         (and the networks that the pod selects, if a record was lost or their
//!                         interface is still in the pod)
//! ```

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::boot::boot_id;
use crate::cluster::{Answer, Question};
use crate::cni::CniResult;
use crate::journal::{Attached, CachedSandbox, Header, Journal, Key, MultusCache, Sandbox};
use crate::kernel::PodNetns;
use crate::operation::inquiry::{self, Inquiry};
use crate::operation::pod_facts::PodFacts;
use crate::operation::{Context, Failure, Note, networks};
use crate::plan::Attachment;

/// The identity of no network namespace. It marks a sandbox whose path leads to the namespace of
/// another sandbox on record, which must not be touched.
const NO_NETNS: &str = "none";

/// The time limit for asking the cluster what the pod selects; after that the DEL goes on without
/// the answer.
const AT_ONCE: Duration = Duration::from_secs(1);

/// What a sandbox without a record may have.
#[derive(Debug)]
pub(in crate::operation) struct Unrecorded {
    /// The sandbox in the form that an ADD of Jackfield would have recorded.
    pub(in crate::operation) sandbox: Sandbox,
    /// Whether there is any sign that the sandbox is attached. Without one a failure to detach it
    /// does not count: runtimes send repeated DELs, and DELs for sandboxes that were never set up.
    pub(in crate::operation) is_attached: bool,
    /// Whether Multus' cache has the sandbox.
    pub(in crate::operation) is_of_multus: bool,
}

/// Reconstructs what the sandbox `key` may have; `lost` says that it had a record which cannot be
/// read. `None` if it was already adopted from Multus, or if nothing is known of it.
///
/// # Errors
/// If there is a sign that the sandbox is attached, but even the configuration of the cluster
/// network cannot be found.
pub(in crate::operation) fn find(
    context: &Context<'_>,
    key: &Key,
    lost: bool,
) -> Result<Option<Unrecorded>, Failure> {
    if context.host.journal.is_adopted(key) {
        return Ok(None);
    }
    let cached = MultusCache::new(&context.request.config.cni_dir).read(key);
    for damage in &cached.damage {
        context.note(Note::MultusCache(damage.clone()));
    }
    let of_multus = cached.is_known();
    if !cached.attachments.is_empty() {
        return Ok(Some(Unrecorded {
            sandbox: from_cache(context, key, cached),
            is_attached: true,
            is_of_multus: true,
        }));
    }
    let lost = lost || of_multus;
    let (given, result) = prev_result(context);
    let version = context.request.config.version;
    let is_attached = lost
        || given
        || (!version.passes_prev_result_on_del() && context.request.call.netns.is_some());
    if !is_attached && !inquiry::is_on_disk(&context.request.config.cluster_network) {
        return Ok(None);
    }
    let others = match is_attached {
        _ if lost => Others::All,
        true => Others::There(interfaces(context, key)),
        false => Others::There(Vec::new()),
    };
    let attachments = match probable(context, key, &others) {
        Ok(attachments) => attachments,
        Err(failure) if is_attached => return Err(failure),
        Err(failure) => {
            context.note(Note::NotOnRecord(failure));
            return Ok(None);
        }
    };
    let results = attachments.iter().map(|attachment| {
        let cluster = attachment.is_cluster;
        result.clone().filter(|_| cluster)
    });
    let results = results.collect();
    let args = context.request.call.args.to_string();
    Ok(Some(Unrecorded {
        sandbox: sandbox(context, key, None, args, attachments, results),
        is_attached,
        is_of_multus: of_multus,
    }))
}

impl Unrecorded {
    /// Writes a record for the sandbox, so that a failed DEL leaves a debt like any other.
    pub(in crate::operation) fn adopt(&self, journal: &Journal, key: &Key) -> Result<(), Failure> {
        journal.adopt(&self.sandbox)?;
        if self.is_of_multus {
            journal.mark_adopted(key)?;
        }
        Ok(())
    }
}

/// The attachments that a sandbox without a record may have in addition to the cluster network.
enum Others {
    /// All networks that its pod selects.
    All,
    /// Only the networks with one of these interfaces.
    There(Vec<String>),
}

impl Others {
    fn may_be(&self) -> bool {
        matches!(self, Others::All) || matches!(self, Others::There(names) if !names.is_empty())
    }

    fn have(&self, attachment: &Attachment) -> bool {
        match self {
            Others::All => true,
            Others::There(names) => names.iter().any(|name| name == attachment.ifname.as_str()),
        }
    }
}

/// The interfaces in the pod that no record accounts for: the journal may have been removed.
fn interfaces(context: &Context<'_>, key: &Key) -> Vec<String> {
    let netns = context.request.call.netns.as_deref();
    let netns = netns.and_then(|path| PodNetns::open(path).ok());
    let is_on_record = |netns: &PodNetns| {
        let id = netns.id().to_string();
        !context.host.journal.containers_in(&id).is_empty()
    };
    let netns = netns.filter(|netns| !is_on_record(netns));
    let links = netns.and_then(|netns| (context.host.links)(&netns).ok()?.links().ok());
    let names = links.unwrap_or_default().into_iter().map(|link| link.name);
    names
        .filter(|name| name != "lo" && name != key.ifname.as_str())
        .collect()
}

/// The attachments that a sandbox without a record may have: the cluster network, and the networks
/// in `others` that its pod selects and the cluster still knows. There is no better source.
///
/// # Errors
/// If even the configuration of the cluster network is not found.
fn probable(context: &Context<'_>, key: &Key, others: &Others) -> Result<Vec<Attachment>, Failure> {
    let mut inquiry = Inquiry::legible(context);
    let all = others.may_be();
    let answer = all.then(|| answer_at_once(context, &inquiry)).flatten();
    let facts = match answer {
        Some(answer) => PodFacts::of(context, inquiry, answer),
        None => {
            let answer = cluster_network(context)?;
            inquiry.annotations = None;
            PodFacts::of(context, inquiry, answer)
        }
    };
    let allocation = facts.allocation(context, None);
    let runtime_config = inquiry::runtime_config(context).unwrap_or_default();
    let plan = facts.plan(context, key, &allocation, runtime_config);
    let mut attachments = plan.attachments;
    attachments.retain(|attachment| attachment.is_cluster || others.have(attachment));
    if !attachments.iter().any(|attachment| attachment.is_cluster)
        && let Some(problem) = plan.problems.into_iter().next()
    {
        return Err(problem.into());
    }
    Ok(attachments)
}

/// The cluster's answer about the cluster network. Empty without asking if the configuration is on
/// disk, so that no DEL depends on the cluster.
///
/// # Errors
/// If the cluster does not answer.
fn cluster_network(context: &Context<'_>) -> Result<Answer, Failure> {
    let nothing = Answer::default();
    if networks::in_answer(context, &nothing).cluster.is_ok() {
        return Ok(nothing);
    }
    let question = Inquiry::default().question(context, Duration::ZERO);
    inquiry::ask(context, question.as_ref(), context.deadline)
}

/// What the cluster knows about the pod, if it answers at once. Does not wait for kubelet.
fn answer_at_once(context: &Context<'_>, inquiry: &Inquiry) -> Option<Answer> {
    let question = inquiry.question(context, Duration::ZERO);
    let question = question.map(|question| Question {
        kubelet: None,
        ..question
    });
    let until = context.deadline.min(Instant::now() + AT_ONCE);
    let answer = inquiry::ask(context, question.as_ref(), until).ok()?;
    inquiry.check_identity(&answer).is_ok().then_some(answer)
}

fn from_cache(context: &Context<'_>, key: &Key, cached: CachedSandbox) -> Sandbox {
    let now = context.request.call.args.to_string();
    // Multus passed arguments of its own to the plugins; their DEL needs those of the ADD.
    let args = cached
        .attachments
        .iter()
        .map(|cached| &cached.args)
        .find(|args| !args.is_empty())
        .cloned()
        .unwrap_or(now);
    let mut attachments = Vec::with_capacity(cached.attachments.len());
    let mut results = Vec::with_capacity(cached.attachments.len());
    for mut one in cached.attachments {
        if let Ok(own) = crate::cni::CniArgs::parse(&one.args) {
            let own = own.iter().map(|(key, value)| (key.into(), value.into()));
            one.attachment.extra_args.extend(own);
        }
        attachments.push(one.attachment);
        results.push(one.result);
    }
    sandbox(context, key, cached.netns, args, attachments, results)
}

fn sandbox(
    context: &Context<'_>,
    key: &Key,
    cached_netns: Option<String>,
    args: String,
    attachments: Vec<Attachment>,
    results: Vec<Option<CniResult>>,
) -> Sandbox {
    let given = context.request.call.netns.clone();
    // A cached path does not show which namespace it led to, so only the path of this call has an
    // identity.
    let identity = given.as_deref().map_or_else(String::new, identity);
    let there = context.host.journal.containers_in(&identity);
    let is_anothers = there.iter().any(|container| *container != key.container);
    let (netns, identity) = match given {
        Some(_) if is_anothers => (PathBuf::new(), NO_NETNS.to_owned()),
        Some(path) => (path, identity),
        None => (
            cached_netns.map(PathBuf::from).unwrap_or_default(),
            identity,
        ),
    };
    let header = Header::new(
        boot_id(),
        key,
        netns.display().to_string(),
        identity,
        args,
        inquiry::pod_name(context).ok().flatten(),
        attachments,
    );
    let mut sandbox = Sandbox::planned(header);
    sandbox.complete = true;
    sandbox.progress = results
        .into_iter()
        .map(|result| Attached {
            started: true,
            result,
            ..Attached::default()
        })
        .collect();
    sandbox
}

/// The identity of the network namespace at `path`; empty if there is none.
fn identity(path: &Path) -> String {
    PodNetns::open(path).map_or_else(|_| String::new(), |netns| netns.id().to_string())
}

/// Whether the runtime sent a result of the ADD, and that result if it can be read.
fn prev_result(context: &Context<'_>) -> (bool, Option<CniResult>) {
    let raw = context.request.stdin.get("prevResult");
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else {
        return (false, None);
    };
    let version = context.request.config.version;
    (true, CniResult::parse(raw.get().as_bytes(), version).ok())
}
