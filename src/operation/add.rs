//! ADD: attach the pod to every network of the plan, prove it, tell it; or leave nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;

use super::default_route;
use super::delegates::Delegates;
use super::detach::{self, Detachment};
use super::exclusive;
use super::hardware::Hardware;
use super::prepare::{Prepared, prepare};
use super::proof::{self, Shown};
use super::{Context, Failure, functions, restore, status};
use crate::boot::boot_id;
use crate::cluster::{Event, EventKind, Phase, Publication};
use crate::cni::CniResult;
use crate::delegate::Binaries;
use crate::journal::{Entry, Header, Key, Lookup, Sandbox, Step};
use crate::kernel::{PodLinks, PodNetns, capabilities};
use crate::npwg::StatusEntry;
use crate::plan::{Attachment, PlanError, Reason};
use crate::verify::Masters;

/// The share of the time that is kept for unwinding: a quarter.
const KEPT_FOR_UNWINDING: u32 = 4;

/// What an ADD brought.
#[derive(Debug)]
pub struct Added {
    /// For the runtime: the cluster network's result, and no other's, since some runtimes take
    /// every address in it for the pod's.
    pub result: CniResult,
    /// Every attachment, as it was published.
    pub status: Vec<StatusEntry>,
}

/// Attaches a pod.
///
/// # Errors
/// Everything that was attached is detached again by then; what could not be stays on record as
/// owed, and the error says so beside its cause.
pub fn add(context: &Context<'_>) -> Result<Added, Failure> {
    let call = &context.request.call;
    let (container, ifname) = call.attachment()?;
    let key = Key { container, ifname };
    capabilities::require()?;
    let netns = open_netns(context)?;
    let prepared = prepare(&with_time_to_unwind(context))?;
    note_warnings(context, &prepared.events);
    if let Some(problem) = prepared.problems.first() {
        if let Some(place) = &problem.place {
            context.node.stopwatch.attachment(&place.label, false);
        }
        tell_problems(context, &prepared);
        return Err(problem.clone().into());
    }
    let _lock = context.lock(&key.container)?;
    settle_earlier(context, &key)?;
    let mut links = (context.node.links)(&netns)?;
    let previous = previous_result(context)?;
    check_free(&prepared, previous.as_ref(), links.as_mut())?;
    let header = Header::new(
        boot_id(),
        &key,
        netns.path().display().to_string(),
        netns.id().to_string(),
        call.args.to_string(),
        prepared.pod.clone(),
        prepared
            .attachments
            .iter()
            .map(|(attachment, _)| attachment.clone())
            .collect(),
    );
    let stopwatch = context.node.stopwatch;
    let entry = stopwatch.during(Phase::Journal, || context.node.journal.begin(&header))?;
    stopwatch.wrote(&key);
    if let Err(taken) = exclusive::take(context, &header) {
        return Err(never_begun(context, &header, taken));
    }
    let baseline = match restore::baseline(context, &header) {
        Ok(baseline) => baseline,
        Err(cause) => return Err(never_begun(context, &header, cause.into())),
    };
    let mut adding = Adding {
        context,
        netns: &netns,
        links: links.as_mut(),
        entry,
        sandbox: Sandbox {
            baseline,
            ..Sandbox::planned(header)
        },
        previous,
        events: prepared.events.clone(),
        shown: Vec::new(),
    };
    match adding.attach_all(&prepared) {
        Ok(added) => Ok(added),
        Err(cause) => Err(stopwatch.during(Phase::Unwind, || adding.unwind(cause))),
    }
}

/// Takes back a record of which nothing was begun, the devices that it already had with it.
fn never_begun(context: &Context<'_>, header: &Header, cause: Failure) -> Failure {
    let journal = &context.node.journal;
    journal.give_back(header);
    match journal.forget(&header.key()) {
        Ok(()) => cause,
        Err(cleanup) => Failure::Unwinding {
            cause: Box::new(cause),
            cleanup: Box::new(cleanup.into()),
        },
    }
}

fn open_netns(context: &Context<'_>) -> Result<PodNetns, Failure> {
    let call = &context.request.call;
    let path = call.netns.as_deref().unwrap_or_else(|| Path::new(""));
    let netns = PodNetns::open(path)?;
    if netns.is_ours()? && !call.netns_override {
        return Err(Failure::OwnNetns(path.display().to_string()));
    }
    Ok(netns)
}

/// Tells the pod's owner why nothing was attached, with Multus' reason where a network is missing
/// or broken. The runtime gets the error in any case, so an event that cannot be told is no other.
fn tell_problems(context: &Context<'_>, prepared: &Prepared) {
    let Some(pod) = &prepared.pod else { return };
    let missing = |problem: &&PlanError| matches!(problem.reason, Reason::Network(_));
    let problems = prepared.problems.iter().filter(missing);
    let told = problems.map(|problem| Event::warning("NoNetworkFound", problem.to_string()));
    let events: Vec<Event> = prepared.events.iter().cloned().chain(told).collect();
    if !events.is_empty() {
        let _ = context.node.cluster.publish(&Publication {
            pod: pod.clone(),
            status: None,
            events,
        });
    }
}

/// What the pod's owner is warned about, whoever made the call should know too.
fn note_warnings(context: &Context<'_>, events: &[Event]) {
    for event in events {
        if event.kind == EventKind::Warning {
            context.note(&event.message);
        }
    }
}

/// The time until which something new may be begun.
fn with_time_to_unwind<'a>(context: &Context<'a>) -> Context<'a> {
    let left = context.deadline.saturating_duration_since(Instant::now());
    let kept: Duration = left / KEPT_FOR_UNWINDING;
    Context::until(context.node, context.request, context.deadline - kept)
}

/// What an earlier ADD of the same name left behind is detached first. One that is complete, of
/// this boot and in a netns that is still there is no leftover: the runtime must send a DEL.
fn settle_earlier(context: &Context<'_>, key: &Key) -> Result<(), Failure> {
    let sandbox = match context.node.journal.find(key)? {
        Lookup::Found(sandbox) => sandbox,
        // Its writer was ended before it began anything: this netns is new.
        Lookup::CutOff => return Ok(context.node.journal.forget(key)?),
        Lookup::Absent | Lookup::Quarantined { .. } => return Ok(()),
    };
    let header = &sandbox.header;
    let there = PodNetns::open(Path::new(&header.netns));
    let is_alive = there.is_ok_and(|netns| netns.id().to_string() == header.netns_id);
    if sandbox.complete && header.boot == boot_id() && is_alive {
        return Err(Failure::AlreadyAttached {
            container: key.container.to_string(),
            ifname: key.ifname.to_string(),
        });
    }
    detach::detach(context, *sandbox, Detachment::Earlier)
}

/// `prevResult`: what the plugins before us did, where the runtime has us in a chain.
fn previous_result(context: &Context<'_>) -> Result<Option<CniResult>, Failure> {
    let request = context.request;
    let raw = request.stdin.get("prevResult").map(RawValue::get);
    raw.map(|text| CniResult::parse(text.as_bytes(), request.node.version))
        .transpose()
        .map_err(Failure::PrevResult)
}

/// Names that the netns already has, be it as an alternative name, fail before anything runs
/// (NPWG 1.3 §4.1.2.1.5). Behind other plugins the cluster network's may be theirs.
fn check_free(
    prepared: &Prepared,
    previous: Option<&CniResult>,
    links: &mut dyn PodLinks,
) -> Result<(), Failure> {
    for (attachment, _) in &prepared.attachments {
        let may_be_there = attachment.is_cluster && previous.is_some();
        if !may_be_there && links.link(&attachment.ifname)?.is_some() {
            return Err(attachment.taken().into());
        }
    }
    Ok(())
}

/// An ADD under way.
struct Adding<'a> {
    context: &'a Context<'a>,
    netns: &'a PodNetns,
    links: &'a mut dyn PodLinks,
    entry: Entry,
    sandbox: Sandbox,
    previous: Option<CniResult>,
    events: Vec<Event>,
    shown: Vec<Shown>,
}

impl Adding<'_> {
    fn attach_all(&mut self, prepared: &Prepared) -> Result<Added, Failure> {
        if !self.sandbox.baseline.is_empty() {
            write(&mut self.entry, &[Step::Baseline(&self.sandbox.baseline)])?;
        }
        let time = with_time_to_unwind(self.context);
        for (index, (attachment, binaries)) in prepared.attachments.iter().enumerate() {
            self.step(&[Step::Started(index)])?;
            self.sandbox.progress[index].started = true;
            let attached = self.attach(&time, index, attachment, binaries);
            let stopwatch = self.context.node.stopwatch;
            stopwatch.attachment(&attachment.label, attached.is_ok());
            attached?;
        }
        self.prove_functions(prepared)?;
        // Last of all, since a later network may bring default routes of its own, which go too.
        for (index, (attachment, _)) in prepared.attachments.iter().enumerate() {
            self.route(index, attachment)?;
        }
        let mut results = default_route::reflected(&self.sandbox);
        let addresses = self.context.request.node.status_addresses;
        let status = status::entries(&self.sandbox, &results, &self.shown, addresses);
        // Complete first: nothing is told of an ADD that then fails for want of its last record.
        self.step(&[Step::Complete])?;
        self.publish(prepared, &status)?;
        let result = results
            .first_mut()
            .and_then(Option::take)
            .unwrap_or_default();
        Ok(Added { result, status })
    }

    /// One attachment, and the proof of it.
    fn attach(
        &mut self,
        time: &Context<'_>,
        index: usize,
        attachment: &Attachment,
        binaries: &Binaries,
    ) -> Result<(), Failure> {
        if attachment.device_info_file.is_some() {
            Hardware::of(&self.context.request.node).write_file(attachment)?;
        }
        let previous = self.previous(attachment);
        let result = self.delegates(time, attachment, binaries)?.add(previous)?;
        self.step(&[Step::Attached(index, &result)])?;
        if attachment.is_cluster {
            result.fits(self.context.request.node.version)?;
        }
        self.sandbox.progress[index].result = Some(result);
        let stopwatch = self.context.node.stopwatch;
        stopwatch.during(Phase::Verify, || self.prove(index, attachment))
    }

    /// What stands before an attachment's first plugin: before the cluster network's, whoever the
    /// runtime called before us (CNI 1.1.0 §2 ADD).
    fn previous(&self, attachment: &Attachment) -> Option<CniResult> {
        if attachment.is_cluster {
            return self.previous.clone();
        }
        // Plugins that are written to be chained want something in front of them.
        attachment.is_auxiliary.then(CniResult::default)
    }

    fn delegates<'b>(
        &'b self,
        time: &'b Context<'b>,
        attachment: &'b Attachment,
        binaries: &'b Binaries,
    ) -> Result<Delegates<'b>, Failure> {
        let container = &self.sandbox.header.container;
        let runtime = &self.context.request.call.args;
        let netns = Some(self.netns.path());
        Delegates::new(time, attachment, binaries, container, netns, runtime)
    }

    /// The attachment is what was asked for, before the next one runs: a later one may enslave it.
    fn prove(&mut self, index: usize, attachment: &Attachment) -> Result<(), Failure> {
        let result = self.sandbox.progress[index].result.as_ref();
        let node = &self.context.request.node;
        let until = self.context.deadline;
        let proof = proof::prove(node, attachment, result, Masters::Any, self.links, until)?;
        note_warnings(self.context, &proof.warnings);
        self.events.extend(proof.warnings);
        self.shown.push(proof.shown);
        Ok(())
    }

    /// Likewise of what physical functions say, once for all of them.
    fn prove_functions(&mut self, prepared: &Prepared) -> Result<(), Failure> {
        let attachments = prepared
            .attachments
            .iter()
            .map(|(attachment, _)| attachment);
        let warnings = functions::prove(self.context, attachments)?;
        note_warnings(self.context, &warnings);
        self.events.extend(warnings);
        Ok(())
    }

    fn route(&mut self, index: usize, attachment: &Attachment) -> Result<(), Failure> {
        let Some(gateways) = &attachment.default_route else {
            return Ok(());
        };
        let since = Instant::now();
        let change = default_route::plan(gateways, &attachment.ifname, self.links)?;
        self.step(&[Step::Routes(index, &change)])?;
        self.sandbox.progress[index].routes = change.clone();
        let applied = default_route::apply(&change, attachment, self.links);
        self.context.node.stopwatch.spent(Phase::Routes, since);
        applied
    }

    fn publish(&mut self, prepared: &Prepared, status: &[StatusEntry]) -> Result<(), Failure> {
        let Some(pod) = &prepared.pod else {
            return Ok(());
        };
        self.events.push(status::added(&self.sandbox));
        let status = Some(status.to_vec());
        let events = std::mem::take(&mut self.events);
        let publication = Publication {
            pod: pod.clone(),
            status,
            events,
        };
        let node = self.context.node;
        let publish = || node.cluster.publish(&publication);
        Ok(node.stopwatch.during(Phase::Publish, publish)?)
    }

    fn step(&mut self, steps: &[Step<'_>]) -> Result<(), Failure> {
        let stopwatch = self.context.node.stopwatch;
        stopwatch.during(Phase::Journal, || write(&mut self.entry, steps))
    }

    /// Takes back whatever was begun, and says what could not be taken back beside the cause.
    fn unwind(self, cause: Failure) -> Failure {
        match detach::detach(self.context, self.sandbox, Detachment::Unwinding) {
            Ok(()) => cause,
            Err(cleanup) => Failure::Unwinding {
                cause: Box::new(cause),
                cleanup: Box::new(cleanup),
            },
        }
    }
}

fn write(entry: &mut Entry, steps: &[Step<'_>]) -> Result<(), Failure> {
    entry
        .write(steps)
        .map_err(|cause| Failure::JournalStep(cause.to_string()))
}
