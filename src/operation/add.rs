//! ADD: attaches the pod to every network of the plan, verifies the attachments and publishes them.
//! If any step fails, ADD detaches everything that it has attached.

use std::path::Path;

use serde_json::value::RawValue;

use super::attach::{Attaching, KEPT_FOR_DETACHING, check_free};
use super::detach::{self, Detachment};
use super::devices::{reserve, restore};
use super::prepare::{self, Prepared};
use super::{Context, Failure, default_route, network_status, readiness_indicator};
use crate::boot::boot_id;
use crate::cluster::{Event, Phase, SandboxNetworks};
use crate::cni::{CniResult, code};
use crate::journal::{Header, Key, Lookup, Sandbox, Step};
use crate::kernel::{PodNetns, capabilities};
use crate::npwg::StatusEntry;
use crate::plan::{Attachment, PlanError};

/// The outcome of a successful ADD.
#[derive(Debug)]
pub struct Added {
    /// The answer to the runtime. It contains only the result of the cluster network, because some
    /// runtimes treat every address in the answer as a pod IP.
    pub result: CniResult,
    /// The status of every attachment. If the runtime named the pod, ADD has published this status.
    pub status: Vec<StatusEntry>,
}

/// Attaches a pod.
///
/// # Errors
/// The failure of any step. Before ADD returns the error, it detaches everything that it has
/// attached. If ADD cannot detach an attachment, the journal keeps that attachment for a retry. The
/// error then also contains the failure to detach.
pub fn add(context: &Context<'_>) -> Result<Added, Failure> {
    let call = &context.request.call;
    let key = context.key()?;
    capabilities::require()?;
    let netns = open_netns(context)?;
    let time = context.sparing(KEPT_FOR_DETACHING);
    readiness_indicator::wait(&time)?;
    let announced = prepare::announce(&time)?;
    let mut links = (context.host.links)(&netns)?;
    let prepared = announced.prepare()?;
    context.note_warnings(&prepared.events);
    if let Some(problem) = prepared.problems.first() {
        if let Some(place) = &problem.place {
            let stopwatch = context.host.stopwatch;
            stopwatch.network(&place.label, prepared.is_first_known, false);
        }
        tell_problems(context, &prepared);
        return Err(problem.clone().into());
    }
    let _lock = context.lock(&key.container)?;
    settle_earlier(context, &key)?;
    let previous = previous_result(context)?;
    // If the runtime has called other plugins of its chain before Jackfield, the interface of the
    // cluster network may already exist.
    let may_be_there = |attachment: &Attachment| attachment.is_cluster && previous.is_some();
    check_free(&prepared, links.as_mut(), may_be_there)?;
    let header = Header {
        netns: netns.path().display().to_string(),
        netns_id: netns.id().to_string(),
        args: call.args.to_string(),
        pod: prepared.pod.clone(),
        networks: Some(prepared.networks.clone()),
        ..Header::new(&key, prepared.attachments().cloned().collect())
    };
    let stopwatch = context.host.stopwatch;
    let entry = stopwatch.during(Phase::Journal, || context.host.journal.begin(&header))?;
    stopwatch.wrote(&key);
    let taken = reserve::take(context, &header, &header.attachments);
    let baseline = taken.and_then(|()| restore::baseline(context, &header, &header.attachments));
    let baseline = baseline.map_err(|cause| {
        // No delegate was started, so the sandbox needs no record and no devices.
        let journal = &context.host.journal;
        journal.give_back(&key, &header.attachments);
        cause.after_cleanup(journal.forget(&key))
    })?;
    let mut attaching = Attaching {
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
    match attach_all(&mut attaching, &prepared) {
        Ok(added) => {
            stopwatch.sandbox(SandboxNetworks {
                container: key.container,
                ifname: key.ifname,
                pod: prepared.pod,
                networks: prepared.networks,
            });
            Ok(added)
        }
        Err(cause) => {
            let unwind = || detach::detach(context, attaching.sandbox, Detachment::Unwinding);
            Err(cause.after_cleanup(stopwatch.during(Phase::Unwind, unwind)))
        }
    }
}

/// Attaches and verifies every network of the plan. If the runtime named the pod, publishes the
/// network-status.
///
/// # Errors
/// The first failure. The caller must then detach the attachments that this function started.
fn attach_all(attaching: &mut Attaching<'_>, prepared: &Prepared) -> Result<Added, Failure> {
    attaching.attach_networks(prepared, 0)?;
    // Record `Complete` before publishing. Otherwise ADD could publish the status and then fail to
    // record this step.
    attaching.step(&[Step::Complete])?;
    let (context, sandbox) = (attaching.context, &attaching.sandbox);
    let mut events = std::mem::take(&mut attaching.events);
    events.push(network_status::added(sandbox, 0));
    let results = default_route::answered(sandbox);
    let status = network_status::publish(context, sandbox, &results, &attaching.shown, events)?;
    let result = results.into_iter().next().flatten().unwrap_or_default();
    Ok(Added { result, status })
}

fn open_netns(context: &Context<'_>) -> Result<PodNetns, Failure> {
    let call = &context.request.call;
    let path = call.netns.as_deref().unwrap_or_else(|| Path::new(""));
    let netns = PodNetns::open(path)?;
    if netns.is_ours()? && !call.netns_override {
        return Err(Failure::OwnNetns(path.to_owned()));
    }
    Ok(netns)
}

/// Creates the prepared events, and a warning for each problem with code 102 (network not usable).
/// The warning has the same `reason` as in Multus. Ignores a failure to create the events, because
/// ADD returns the first problem in any case.
fn tell_problems(context: &Context<'_>, prepared: &Prepared) {
    let missing = |problem: &&PlanError| problem.code() == code::NETWORK;
    let problems = prepared.problems.iter().filter(missing);
    let told = problems.map(|problem| Event::warning("NoNetworkFound", problem.to_string()));
    let events = prepared.events.iter().cloned().chain(told).collect();
    let _ = context.tell(prepared.pod.as_ref(), events);
}

/// Detaches the earlier sandbox with the same key, if there is one. An ADD or a failed DEL has left
/// it behind.
///
/// # Errors
/// - [`Failure::AlreadyAttached`] if the earlier sandbox is in use. The runtime must then send a
///   DEL first.
/// - [`Failure::Owed`] if an attachment cannot be detached.
/// - [`Failure::Netns`] if the recorded network namespace cannot be examined.
/// - [`Failure::Journal`] if the journal cannot be read or written.
fn settle_earlier(context: &Context<'_>, key: &Key) -> Result<(), Failure> {
    let sandbox = match context.host.journal.find(key)? {
        Lookup::Found(sandbox) => sandbox,
        // The pod has no attachment: either a power loss ended every network namespace, or a
        // process of an older release was killed before it started a delegate.
        Lookup::CutOff => return Ok(context.host.journal.forget(key)?),
        Lookup::Absent => return Ok(()),
        Lookup::Damaged(aside) => return Ok(aside.map(drop)?),
    };
    let header = &sandbox.header;
    let is_alive = detach::recorded_netns(header, Path::new(&header.netns))?.is_some();
    let is_owed = context.host.journal.owed(key).is_some()
        || sandbox.progress.iter().any(|attached| attached.detached);
    if sandbox.complete && !is_owed && header.boot == boot_id() && is_alive {
        return Err(Failure::AlreadyAttached(key.clone()));
    }
    detach::detach(context, *sandbox, Detachment::Earlier)
}

/// The `prevResult`: the result of the plugins before Jackfield, if the runtime calls Jackfield as
/// part of a chain.
fn previous_result(context: &Context<'_>) -> Result<Option<CniResult>, Failure> {
    let request = context.request;
    let raw = request.stdin.get("prevResult").map(RawValue::get);
    let read = |text: &str| {
        let result = CniResult::parse(text.as_bytes(), request.config.version)?;
        result.within_limits()?;
        Ok(result)
    };
    raw.map(read).transpose().map_err(Failure::PrevResult)
}
