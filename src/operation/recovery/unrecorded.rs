//! Reconstructs sandboxes without a usable record. A record is missing or unusable for one of two
//! reasons:
//!
//! - Multus or another plugin attached the sandbox before Jackfield was installed on this node.
//! - The record was damaged or destroyed, or the journal was deleted.
//!
//! The reconstructed sandbox contains these attachments:
//!
//! ```text
//! Multus' cache lists attachments ▶ the attachments in the cache
//! otherwise                       ▶ the current cluster network, and other networks
//! ```
//!
//! If the cache lists no attachments, the result of the cluster network is the runtime's
//! `prevResult`. The other networks are those that an ADD would attach now, with these limits:
//!
//! ```text
//! the record was destroyed or damaged               ▶ all
//! the cache has only unreadable data of the sandbox ▶ all
//! there is no sign that the sandbox is attached     ▶ none
//! otherwise                                         ▶ those whose interface is still in the pod
//! ```

use std::path::PathBuf;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::clock;
use crate::cluster::{Answer, Question};
use crate::cni::{CniArgs, CniResult};
use crate::journal::{CachedSandbox, Header, Key, MultusCache, Progress, Sandbox};
use crate::kernel::PodNetns;
use crate::operation::inquiry::{self, Inquiry};
use crate::operation::pod_facts::PodFacts;
use crate::operation::{Context, Failure, Note, networks};
use crate::plan::Attachment;

/// A placeholder in `netns_id` for the identity of the sandbox's network namespace. No namespace
/// has this identity. A reconstructed sandbox gets the placeholder if the runtime passes a network
/// namespace that the journal records for another container. A DEL uses a namespace only if
/// `netns_id` is the identity of that namespace. So the DEL of the reconstructed sandbox leaves the
/// other container's namespace alone.
const NO_NETNS: &str = "none";

/// The time limit for asking the cluster which networks the pod selects. After that time, the call
/// continues without an answer.
const AT_ONCE: Duration = Duration::from_secs(1);

/// A sandbox without a record, with the attachments that it may have.
#[derive(Debug)]
pub(in crate::operation) struct Unrecorded {
    /// The sandbox, as an ADD of Jackfield would have recorded it.
    pub(in crate::operation) sandbox: Sandbox,
    /// Whether there is any sign that the sandbox is attached. Without a sign, a failed detachment
    /// only causes a note: runtimes repeat DELs, and send DELs for sandboxes that were never
    /// attached.
    pub(in crate::operation) is_attached: bool,
    /// Whether Multus' cache contains the sandbox.
    pub(in crate::operation) is_of_multus: bool,
}

/// Reconstructs the sandbox `key`. `lost` is true if the sandbox had a record that cannot be used.
/// Returns `None` in two cases:
///
/// - Jackfield adopted the sandbox from Multus' cache and has since removed the sandbox's record.
/// - There is no sign that the sandbox is attached, and the cluster network has no usable
///   configuration on disk ([`inquiry::is_on_disk`]).
///
/// # Errors
/// If there is a sign that the sandbox is attached, but the configuration of the cluster network
/// cannot be found or used.
pub(in crate::operation) fn find(
    context: &Context<'_>,
    key: &Key,
    lost: bool,
) -> Result<Option<Unrecorded>, Failure> {
    if !lost && context.host.journal.is_adopted(key) {
        return Ok(None);
    }
    let mut cached = MultusCache::new(&context.request.config.cni_dir).read(key);
    let of_multus = cached.is_known();
    for damage in cached.damage.drain(..) {
        context.note(Note::MultusCache(damage));
    }
    if !cached.attachments.is_empty() {
        return Ok(Some(Unrecorded {
            sandbox: from_cache(context, key, cached),
            is_attached: true,
            is_of_multus: true,
        }));
    }
    let lost = lost || of_multus;
    let given = context.request.stdin.get("prevResult");
    let given = given.map(RawValue::get).filter(|text| *text != "null");
    let version = context.request.config.version;
    let result = given.and_then(|text| CniResult::parse(text.as_bytes(), version).ok());
    let is_attached = lost
        || given.is_some()
        || (!version.passes_prev_result_on_del() && context.request.call.netns.is_some());
    if !is_attached && !inquiry::is_on_disk(&context.request.config.cluster_network) {
        return Ok(None);
    }
    let others = match is_attached {
        _ if lost => None,
        true => Some(interfaces(context, key)),
        false => Some(Vec::new()),
    };
    let attachments = match probable(context, key, others.as_deref()) {
        Ok(attachments) => attachments,
        Err(failure) if is_attached => return Err(failure),
        Err(failure) => {
            context.note(Note::NotOnRecord(failure));
            return Ok(None);
        }
    };
    let attachments = attachments.into_iter().map(|attachment| {
        let is_cluster = attachment.is_cluster;
        (attachment, result.clone().filter(|_| is_cluster))
    });
    let args = context.request.call.args.to_string();
    Ok(Some(Unrecorded {
        sandbox: sandbox(context, key, None, args, attachments),
        is_attached,
        is_of_multus: of_multus,
    }))
}

/// Returns the names of the pod's interfaces that may belong to unrecorded attachments: all except
/// `lo` and the interface in `key`. Returns no names if a recorded sandbox uses the pod's network
/// namespace, because the interfaces may then belong to that sandbox.
fn interfaces(context: &Context<'_>, key: &Key) -> Vec<String> {
    let netns = context.request.call.netns.as_deref();
    let netns = netns.and_then(|path| PodNetns::open(path).ok());
    let journal = &context.host.journal;
    let netns = netns.filter(|it| journal.containers_in(&it.id().to_string()).is_empty());
    let links = netns.and_then(|netns| (context.host.links)(&netns).ok()?.links().ok());
    let names = links.unwrap_or_default().into_iter().map(|link| link.name);
    names
        .filter(|name| name != "lo" && name != key.ifname.as_str())
        .collect()
}

/// Returns the attachments that a sandbox without a record probably has: the attachments that an
/// ADD would plan now. If `others` is given, keeps only the cluster network and the attachments
/// whose interface is in `others`. If the cluster does not answer about the pod, the result does
/// not contain the networks that the pod selects.
///
/// # Errors
/// If the configuration of the cluster network cannot be found or used.
fn probable(
    context: &Context<'_>,
    key: &Key,
    others: Option<&[String]>,
) -> Result<Vec<Attachment>, Failure> {
    let mut inquiry = Inquiry::legible(context);
    let all = others.is_none_or(|names| !names.is_empty());
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
    let is_among_others = |it: &Attachment| {
        others.is_none_or(|names| names.iter().any(|name| name == it.ifname.as_str()))
    };
    attachments.retain(|attachment| attachment.is_cluster || is_among_others(attachment));
    if !attachments.iter().any(|attachment| attachment.is_cluster)
        && let Some(problem) = plan.problems.into_iter().next()
    {
        return Err(problem.into());
    }
    Ok(attachments)
}

/// Asks the cluster for the definition of the cluster network. If the cluster network's
/// configuration is on disk, returns an empty answer without asking, so that the call does not
/// depend on the cluster.
///
/// # Errors
/// If the cluster does not answer.
fn cluster_network(context: &Context<'_>) -> Result<Answer, Failure> {
    let nothing = Answer::default();
    let (cluster, _) = networks::named(context, &nothing);
    if cluster.read(context).is_ok() {
        return Ok(nothing);
    }
    let question = Inquiry::default().question(context, Duration::ZERO);
    inquiry::ask(context, question.as_ref(), context.deadline)
}

/// Asks the cluster about the pod. Returns `None` if the cluster does not answer within
/// [`AT_ONCE`], or if the answer is about a new pod with the same name. Does not ask kubelet for
/// the pod's devices.
fn answer_at_once(context: &Context<'_>, inquiry: &Inquiry) -> Option<Answer> {
    let question = inquiry.question(context, Duration::ZERO);
    let question = question.map(|question| Question {
        kubelet: None,
        ..question
    });
    let until = context.deadline.min(clock::now() + AT_ONCE);
    let answer = inquiry::ask(context, question.as_ref(), until).ok()?;
    inquiry.check_identity(&answer).is_ok().then_some(answer)
}

fn from_cache(context: &Context<'_>, key: &Key, cached: CachedSandbox) -> Sandbox {
    let now = context.request.call.args.to_string();
    // Multus added its own arguments to `CNI_ARGS`, and the DEL must pass the same arguments as the
    // ADD.
    let mut args = cached.attachments.iter().map(|one| &one.args);
    let args = args.find(|args| !args.is_empty()).cloned();
    let args = args.unwrap_or(now);
    let attachments = cached.attachments.into_iter().map(|mut one| {
        if let Ok(own) = CniArgs::parse(&one.args) {
            let own = own.iter().map(|(key, value)| (key.into(), value.into()));
            one.attachment.extra_args.extend(own);
        }
        (one.attachment, one.result)
    });
    sandbox(context, key, cached.netns, args, attachments)
}

fn sandbox(
    context: &Context<'_>,
    key: &Key,
    cached_netns: Option<String>,
    args: String,
    attachments: impl Iterator<Item = (Attachment, Option<CniResult>)>,
) -> Sandbox {
    let (attachments, results): (Vec<_>, Vec<_>) = attachments.unzip();
    let given = context.request.call.netns.clone();
    // Read the namespace's identity only from the path of this call. The path in Multus' cache may
    // refer to another namespace now.
    let opened = given.as_deref().and_then(|path| PodNetns::open(path).ok());
    let identity = opened.map_or_else(String::new, |netns| netns.id().to_string());
    let there = context.host.journal.containers_in(&identity);
    let is_anothers = there.iter().any(|container| *container != key.container);
    let (netns, identity) = match given {
        Some(_) if is_anothers => (PathBuf::new(), NO_NETNS.to_owned()),
        Some(path) => (path, identity),
        None => (cached_netns.unwrap_or_default().into(), identity),
    };
    let header = Header {
        netns: netns.display().to_string(),
        netns_id: identity,
        args,
        pod: inquiry::pod_name(context).ok().flatten(),
        ..Header::new(key, attachments)
    };
    let progress = results.into_iter().map(|result| Progress {
        started: true,
        result,
        ..Progress::default()
    });
    Sandbox {
        complete: true,
        progress: progress.collect(),
        ..Sandbox::planned(header)
    }
}
