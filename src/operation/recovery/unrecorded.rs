//! Sandboxes without a record: attached by Multus, or before Jackfield came to the node, or their
//! record is lost. What they have is put together from what is left.
//!
//! ```text
//! Multus' cache ──▶ else: the cluster network of today, with the runtime's prevResult
//!                         (and what the pod selects, where a record was lost or its interface is
//!                         still in the pod)
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

/// The identity of no network namespace: that at the path which the runtime names is on record as
/// another sandbox's, and is not touched.
const NO_NETNS: &str = "none";

/// How quickly the cluster has to say what the pod selects: the DEL goes on without.
const AT_ONCE: Duration = Duration::from_secs(1);

/// What a sandbox without a record may have.
#[derive(Debug)]
pub(in crate::operation) struct Unrecorded {
    /// As if its ADD had been ours.
    pub(in crate::operation) sandbox: Sandbox,
    /// Whether anything says that this is attached at all. Without that a failure to detach it is
    /// no failure: runtimes send several DELs, and to sandboxes that never came to be.
    pub(in crate::operation) is_attached: bool,
    /// Whether Multus' cache says so.
    pub(in crate::operation) is_of_multus: bool,
}

/// Puts together what the sandbox `key` may have; `lost` when it had a record that cannot be
/// read. `None` when it was taken over from Multus before.
///
/// # Errors
/// When something says that it is attached, and not even the cluster network's configuration can
/// be found.
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
    /// Gives the sandbox a record, so that a DEL that fails leaves a debt like any other.
    pub(in crate::operation) fn adopt(&self, journal: &Journal, key: &Key) -> Result<(), Failure> {
        journal.adopt(&self.sandbox)?;
        if self.is_of_multus {
            journal.mark_adopted(key)?;
        }
        Ok(())
    }
}

/// What a sandbox without a record may have besides the cluster network.
enum Others {
    /// Everything that its pod selects.
    All,
    /// Of that, what has one of these interfaces.
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

/// The interfaces of the pod that no record accounts for: its journal may have been removed.
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

/// The attachments that a sandbox without a record may have: the cluster network, and of what its
/// pod selects `others`, as far as the cluster still knows it. Nobody can know better.
///
/// # Errors
/// When not even the cluster network's configuration is found.
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

/// What the cluster has to say of the cluster network: nothing where its configuration is on disk, so
/// that no DEL depends on who answers.
///
/// # Errors
/// When it does not answer.
fn cluster_network(context: &Context<'_>) -> Result<Answer, Failure> {
    let nothing = Answer::default();
    if networks::in_answer(context, &nothing).cluster.is_ok() {
        return Ok(nothing);
    }
    let question = Inquiry::default().question(context, Duration::ZERO);
    inquiry::ask(context, question.as_ref(), context.deadline)
}

/// What the cluster knows of the pod, where it says so at once; kubelet is not waited for.
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
    // The plugins got their arguments from Multus, which adds to them: those of the ADD count.
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
    // Which one was at a path of then, nobody knows any more.
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

/// Which netns is at `path` now; nothing when none is.
fn identity(path: &Path) -> String {
    PodNetns::open(path).map_or_else(|_| String::new(), |netns| netns.id().to_string())
}

/// Whether the runtime gave a result of the ADD, and that result where it can be read.
fn prev_result(context: &Context<'_>) -> (bool, Option<CniResult>) {
    let raw = context.request.stdin.get("prevResult");
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else {
        return (false, None);
    };
    let version = context.request.config.version;
    (true, CniResult::parse(raw.get().as_bytes(), version).ok())
}
