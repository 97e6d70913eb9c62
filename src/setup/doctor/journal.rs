//! Checks the journal, and compares its records with the kernel.

mod problem;

use std::path::Path;

use problem::DetachCommand;
pub(super) use problem::JournalProblem;

use super::{Check, Diagnosis, ExclusiveUse, namespaces};
use crate::boot::boot_id;
use crate::journal::survey::{Damaged, Surveyed};
use crate::journal::{Exclusive, Header, Key, Sandbox};
use crate::kernel::PodNetns;
use crate::operation::Context;
use crate::operation::recovery::retire::has_netns;
use crate::setup::HostPaths;

/// Checks every record.
pub(super) fn look(
    context: &Context<'_>,
    conf: &Path,
    paths: &HostPaths,
    diagnosis: &mut Diagnosis,
) {
    let journal = &context.host.journal;
    let dir = context.request.config.journal_dir.display().to_string();
    if let Err(error) = journal.check_writable() {
        diagnosis.find(Check::Journal, &dir, JournalProblem::Unusable(error));
    }
    if is_full(&context.request.config.journal_dir) {
        diagnosis.find(Check::Journal, &dir, JournalProblem::Full);
    }
    let survey = match journal.survey() {
        Ok(survey) => survey,
        Err(error) => {
            return diagnosis.find(Check::Journal, &dir, JournalProblem::Unusable(error));
        }
    };
    let is_of_earlier_boot = |record: &&Surveyed| record.sandbox.header.boot != boot_id();
    let (earlier, current): (Vec<&Surveyed>, Vec<&Surveyed>) =
        survey.records.iter().partition(is_of_earlier_boot);
    rebooted(context, conf, &earlier, diagnosis);
    for record in current {
        diagnosis
            .exclusive_uses
            .extend(exclusive_uses(&record.sandbox));
        examine(context, conf, record, diagnosis);
    }
    namespaces::look(paths, &survey.records, diagnosis);
    let at_work = context.request.config.deadlines.add;
    let is_damaged = |it: &&Damaged| !it.may_be_unfinished || it.age > at_work;
    for damaged in survey.damaged.iter().filter(is_damaged) {
        let problem = JournalProblem::Damaged(damaged.cause.clone());
        diagnosis.find(Check::Journal, damaged.path.display(), problem);
    }
    for aside in &survey.quarantined {
        let is_settled = aside.is_settled;
        let problem = JournalProblem::Quarantined { is_settled };
        diagnosis.find(Check::Journal, aside.path.display(), problem);
    }
    for path in journal.half_adopted() {
        let problem = JournalProblem::HalfAdopted;
        diagnosis.find(Check::Journal, path.display(), problem);
    }
    if diagnosis.is_fine(Check::Journal) {
        let count = survey.records.len();
        diagnosis.fine(
            Check::Journal,
            format!("{count} sandboxes on record in {dir}"),
        );
    }
}

/// Reports the sandboxes of an earlier boot in one finding, since the runtime usually sends their DELs
/// within minutes.
fn rebooted(context: &Context<'_>, conf: &Path, records: &[&Surveyed], diagnosis: &mut Diagnosis) {
    let is_owed = |record: &&&Surveyed| {
        let key = record.sandbox.header.key();
        context.host.journal.owed(&key).is_none()
    };
    let records: Vec<&&Surveyed> = records.iter().filter(is_owed).collect();
    let [first, _, ..] = records.as_slice() else {
        for record in records {
            examine(context, conf, record, diagnosis);
        }
        return;
    };
    let names = records.iter().map(|record| about(&record.sandbox.header));
    let problem = JournalProblem::Rebooted {
        names: names.collect(),
        command: DetachCommand::new(conf, &first.sandbox.header),
    };
    let dir = &context.request.config.journal_dir;
    diagnosis.find(Check::Journal, dir.display(), problem);
}

/// The devices and addresses that belong to one sandbox only. An ADD that is refused one of them does
/// not name the pods of other namespaces.
fn exclusive_uses(sandbox: &Sandbox) -> Vec<ExclusiveUse> {
    let header = &sandbox.header;
    let mut uses = Vec::new();
    for attachment in &header.attachments {
        for what in Exclusive::of(attachment) {
            uses.push(ExclusiveUse {
                what: what.to_string(),
                segment: what.segment().map(ToString::to_string),
                pod: header.pod.as_ref().map(ToString::to_string),
                container: header.container.to_string(),
                network: attachment.label.clone(),
                interface: attachment.ifname.to_string(),
            });
        }
    }
    uses
}

fn examine(context: &Context<'_>, conf: &Path, record: &Surveyed, diagnosis: &mut Diagnosis) {
    let header = &record.sandbox.header;
    let about = about(header);
    // The check of what is owed reports it.
    if context.host.journal.owed(&header.key()).is_some() {
        return;
    }
    let owed = record.sandbox.to_detach().len();
    if !has_netns(header) {
        let problem = JournalProblem::NoNetns {
            netns: header.netns.clone(),
            owed,
            command: DetachCommand::new(conf, header),
        };
        diagnosis.find(Check::Journal, about, problem);
        return;
    }
    let is_at_work = record.age <= context.request.config.deadlines.add;
    if record.is_torn && !is_at_work {
        let problem = JournalProblem::Torn(record.path.clone());
        diagnosis.find(Check::Journal, &about, problem);
    }
    if !record.sandbox.complete {
        if !is_at_work {
            let command = DetachCommand::new(conf, header);
            let problem = JournalProblem::Incomplete { owed, command };
            diagnosis.find(Check::Journal, about, problem);
        }
        return;
    }
    for problem in missing_interfaces(context, record) {
        diagnosis.find(Check::Journal, &about, problem);
    }
}

/// The interfaces that are on record and not in the pod.
fn missing_interfaces(context: &Context<'_>, record: &Surveyed) -> Vec<JournalProblem> {
    let sandbox = &record.sandbox;
    let links = PodNetns::open(Path::new(&sandbox.header.netns))
        .map_err(Into::into)
        .and_then(|netns| (context.host.links)(&netns))
        .and_then(|mut links| links.links());
    let links = match links {
        Ok(links) => links,
        Err(error) => return vec![JournalProblem::NoInterfaces(error)],
    };
    let mut missing = Vec::new();
    let attachments = sandbox.header.attachments.iter().zip(&sandbox.progress);
    for (attachment, progress) in attachments.filter(|(_, progress)| progress.is_owed()) {
        let interfaces = progress.result.iter().flat_map(|result| &result.interfaces);
        let in_pod = interfaces.filter(|it| it.sandbox.is_some() && it.socket_path.is_none());
        for interface in in_pod {
            if links.iter().all(|link| link.name != interface.name) {
                missing.push(JournalProblem::MissingInterface {
                    name: interface.name.clone(),
                    network: attachment.label.clone(),
                });
            }
        }
    }
    missing
}

fn about(header: &Header) -> String {
    let Key { container, ifname } = header.key();
    match &header.pod {
        Some(pod) => format!("pod {pod} ({container}:{ifname})"),
        None => format!("container {container}:{ifname}"),
    }
}

/// Whether the file system of the journal, or of its future place, is full.
fn is_full(dir: &Path) -> bool {
    let existing = dir.ancestors().find(|dir| dir.exists());
    let space = existing.and_then(|dir| nix::sys::statvfs::statvfs(dir).ok());
    space.is_some_and(|space| {
        let no_inodes = space.files() > 0 && space.files_available() == 0;
        // A file system without any blocks, such as /proc, is not full.
        space.blocks() > 0 && (space.blocks_available() == 0 || no_inodes)
    })
}
