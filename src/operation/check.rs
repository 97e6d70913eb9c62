//! CHECK: compares every attachment of a pod with the state in which ADD left it.

use std::path::Path;

use super::delegates::Delegates;
use super::devices::functions;
use super::note::damage;
use super::proof::{self, Proof, Shown};
use super::recovery;
use super::{Context, Failure, Note, default_route, network_status};
use crate::cluster::{Event, Phase};
use crate::cni::{CniResult, InterfaceName};
use crate::journal::{Key, Lookup, Sandbox};
use crate::kernel::{PodLinks, PodNetns};
use crate::npwg::StatusEntry;
use crate::plan::Attachment;
use crate::request::{NodeConfig, Strictness};
use crate::verify::Masters;

/// Checks a pod. For each attachment, calls CHECK of the delegates and then verifies the interface
/// in the kernel. At the end, verifies the settings of the attachments' VFs. Returns the
/// network-status of the attachments.
///
/// A change of the pod's networks may have failed or been interrupted before it could clean up. In
/// this case, skips the attachments that the change was adding or removing.
///
/// # Errors
/// - If an attachment fails its check, or if the settings of a VF differ.
/// - If the ADD of the sandbox did not complete, or if the record is damaged.
/// - If there is no record, and neither Multus' cache nor `prevResult` shows the sandbox.
/// - If the network namespace cannot be used, or if the lock is not free in time.
pub fn check(context: &Context<'_>) -> Result<Vec<StatusEntry>, Failure> {
    let call = &context.request.call;
    let key = context.key()?;
    let path = call.netns.as_deref().unwrap_or_else(|| Path::new(""));
    let netns = PodNetns::open(path)?;
    let _lock = context.lock(&key.container)?;
    let mut links = (context.host.links)(&netns)?;
    let sandbox = on_record(context, &key, links.as_mut())?;
    if !sandbox.complete {
        return Err(Failure::Incomplete(key.container));
    }
    let mut shown = Vec::with_capacity(sandbox.progress.len());
    let mut outvoted = Vec::new();
    let results = default_route::reflected(&sandbox);
    for (index, attachment) in sandbox.header.attachments.iter().enumerate() {
        if sandbox.is_pending(index) {
            shown.push(Shown::default());
            continue;
        }
        let result = results[index].as_ref();
        let asked = ask_delegates(context, &sandbox, attachment, result);
        let proven = prove_one(context, &sandbox, index, result, links.as_mut());
        let checked = weigh(&context.request.config, attachment, asked, proven);
        let stopwatch = context.host.stopwatch;
        stopwatch.attachment(&attachment.label, checked.is_ok());
        let (proof, refusal) = checked?;
        context.note_warnings(proof.warnings.iter().chain(&refusal));
        outvoted.extend(refusal);
        shown.push(proof.shown);
    }
    let attachments = sandbox.header.attachments.iter().enumerate();
    let attached = attachments.filter(|(index, _)| !sandbox.is_pending(*index));
    let warnings = functions::prove(context, attached.map(|(_, attachment)| attachment))?;
    context.note_warnings(&warnings);
    // The CHECK succeeds even if the events cannot be created.
    if let Err(untold) = context.tell(sandbox.header.pod.as_ref(), outvoted) {
        context.note(Note::Tolerated(untold.into()));
    }
    Ok(network_status::entries(context, &sandbox, &results, &shown))
}

/// Combines the outcome of the plugins' CHECK with the verification in the kernel. Some reference
/// plugins fail CHECK for attachments that they made themselves, for example bridge without `ipam`.
/// If the verification succeeds, a plugin's failure therefore becomes a warning. The failure
/// remains an error in these cases:
///
/// - if the plugin belongs to the cluster network;
/// - if the plugin belongs to the auxiliary chain (`auxiliaryCNIChainName`);
/// - with `"delegateCheck": "strict"`;
/// - with `"verify": "off"`, because then nothing shows that the attachment is intact;
/// - with `"verify": "warn"`, if the verification returns a warning.
fn weigh(
    config: &NodeConfig,
    attachment: &Attachment,
    asked: Result<(), Failure>,
    proven: Result<Proof, Failure>,
) -> Result<(Proof, Option<Event>), Failure> {
    let Err(refusal) = asked else {
        return Ok((proven?, None));
    };
    let is_further = !attachment.is_cluster && !attachment.is_auxiliary;
    let holds = |proof: &Proof| match config.verify {
        Strictness::Strict => true,
        Strictness::Warn => proof.warnings.is_empty(),
        Strictness::Off => false,
    };
    match proven {
        Ok(proof) if is_further && !config.strict_delegate_check && holds(&proof) => {
            let event = Event::warning("DelegateCheckFailed", refusal.to_string());
            Ok((proof, Some(event)))
        }
        _ => Err(refusal),
    }
}

/// Verifies one attachment in the kernel. If the attachment has `default-route`, also verifies the
/// pod's default routes (NPWG 1.3 §4.1.2.1.9).
fn prove_one(
    context: &Context<'_>,
    sandbox: &Sandbox,
    index: usize,
    result: Option<&CniResult>,
    links: &mut dyn PodLinks,
) -> Result<Proof, Failure> {
    let attachment = &sandbox.header.attachments[index];
    // A plugin of a later attachment may have enslaved this interface.
    let later = sandbox.header.attachments.iter().skip(index + 1);
    let later: Vec<InterfaceName> = later.map(|later| later.ifname.clone()).collect();
    let (config, masters) = (&context.request.config, Masters::Among(&later));
    let until = context.deadline;
    let prove = || proof::prove(config, attachment, result, masters, links, until);
    let proof = context.host.stopwatch.during(Phase::Verify, prove)?;
    let strictness = config.verify;
    if attachment.default_route.is_none() || strictness == Strictness::Off {
        return Ok(proof);
    }
    match default_route::prove(&sandbox.progress[index].routes, attachment, links) {
        Err(failure @ Failure::Route { .. }) if strictness == Strictness::Warn => {
            context.note(Note::Tolerated(failure));
        }
        outcome => outcome?,
    }
    Ok(proof)
}

/// Returns the recorded sandbox. If the record is unusable, returns an error. If there is no
/// record, reconstructs the sandbox from Multus' cache or from the runtime's `prevResult`.
fn on_record(
    context: &Context<'_>,
    key: &Key,
    links: &mut dyn PodLinks,
) -> Result<Sandbox, Failure> {
    let not_on_record = || Failure::NotOnRecord(key.clone());
    let record_lost = || Failure::RecordLost(key.container.clone());
    match context.host.journal.find(key)? {
        Lookup::Found(sandbox) => return Ok(*sandbox),
        Lookup::Absent if !context.host.journal.is_lost(key) => {}
        // A damaged record does not show what was attached, so CHECK cannot compare anything.
        Lookup::Damaged(aside) => {
            context.note(Note::DamagedRecord(damage(aside)));
            return Err(record_lost());
        }
        Lookup::Absent | Lookup::CutOff => return Err(record_lost()),
    }
    match recovery::find_unrecorded(context, key, false)? {
        Some(unrecorded) if unrecorded.is_attached => {
            // A runtime may send `prevResult` even after a DEL. The pod then lacks the interface
            // that `prevResult` names, and the CHECK fails (CNI 1.1.0 §2 CHECK).
            let answered = unrecorded.sandbox.progress.iter();
            let results = answered.filter_map(|attached| attached.result.as_ref());
            let mut interfaces = results.flat_map(|result| &result.interfaces);
            let is_named =
                interfaces.any(|it| it.sandbox.is_some() && it.name == key.ifname.as_str());
            if !unrecorded.is_of_multus && is_named && links.link(&key.ifname)?.is_none() {
                return Err(not_on_record());
            }
            Ok(unrecorded.sandbox)
        }
        _ => Err(not_on_record()),
    }
}

/// Calls CHECK of the plugins. `result` must not contain default routes that Jackfield has
/// replaced, because the plugins would report these routes as missing.
fn ask_delegates(
    context: &Context<'_>,
    sandbox: &Sandbox,
    attachment: &Attachment,
    result: Option<&CniResult>,
) -> Result<(), Failure> {
    let binaries = context.programs(&attachment.config);
    let netns = netns_for_delegates(context, sandbox);
    Delegates::new(context, &sandbox.header, attachment, &binaries, netns)?.check(result)
}

/// Returns the path of the network namespace for the plugins. The plugins compare this path with
/// the path in their result. If the path from ADD still refers to the same namespace as the path of
/// this call, returns the path from ADD. Otherwise returns the path of this call.
fn netns_for_delegates<'a>(context: &'a Context<'_>, sandbox: &'a Sandbox) -> Option<&'a Path> {
    let given = context.request.call.netns.as_deref()?;
    let attached = Path::new(&sandbox.header.netns);
    let id = |path: &Path| PodNetns::open(path).ok().map(|netns| netns.id());
    if given != attached && id(attached).is_some_and(|attached| id(given) == Some(attached)) {
        return Some(attached);
    }
    Some(given)
}
