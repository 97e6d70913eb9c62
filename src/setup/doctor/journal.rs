//! Checks the journal, and compares its records with the kernel.

use std::path::Path;

use super::{Findings, namespaces};
use crate::boot::boot_id;
use crate::journal::survey::Surveyed;
use crate::journal::{Header, Key, Sandbox};
use crate::kernel::PodNetns;
use crate::operation::Context;
use crate::operation::recovery::retire::has_netns;
use crate::setup::HostPaths;

/// The value of `--netns` in the detach command for a sandbox whose network namespace is gone. The
/// path does not exist.
const NO_NETNS: &str = "/run/netns/gone";
/// The remedy for a sandbox whose pod is unknown.
const WITHOUT_POD: &str = "let the runtime remove the container, or run `jackfield gc` with one \
                           --keep for each sandbox that should stay";

/// The remedy for a pod that differs from its record.
const RECREATE: &str = "recreate the pod; `jackfield check` shows more details";

/// Checks the journal's directory and every record, and searches for pods without a record. `conf`
/// is the file of the node configuration, for the commands in remedies.
pub(super) fn look(
    context: &Context<'_>,
    conf: &Path,
    paths: &HostPaths,
    mut findings: Findings<'_>,
) {
    let journal = &context.host.journal;
    let dir = context.request.config.journal_dir.display();
    if let Err(error) = journal.check_writable() {
        findings.add_problem(&dir, &error);
    }
    if is_full(&context.request.config.journal_dir) {
        let problem = "its file system is full, so ADDs fail";
        findings.add(&dir, problem, "free some space there");
    }
    let survey = match journal.survey() {
        Ok(survey) => survey,
        Err(error) => return findings.add_problem(&dir, &error),
    };
    let is_of_earlier_boot = |record: &&Surveyed| record.sandbox.header.boot != boot_id();
    let (earlier, current): (Vec<&Surveyed>, Vec<&Surveyed>) =
        survey.records.iter().partition(is_of_earlier_boot);
    rebooted(context, conf, &earlier, &mut findings);
    for record in current {
        findings.add_uses(&record.sandbox);
        examine(context, conf, record, &mut findings);
    }
    namespaces::look(paths, &survey.records, &mut findings);
    for damaged in &survey.damaged {
        let remedy = "leave the file where it is: the DEL of its pod detaches as much as possible \
                      and moves or removes the file";
        findings.add(damaged.path.display(), &damaged.cause, remedy);
    }
    for aside in &survey.quarantined {
        let (problem, remedy) = if aside.is_settled {
            (
                "a damaged record was put aside, and its sandbox is detached",
                "find out whether the disk was full or the power failed when the file changed last, \
                 then remove the file",
            )
        } else {
            (
                "a damaged record was put aside, and its sandbox may still be attached",
                "delete its pod so that the DEL detaches as much as possible, then remove the file",
            )
        };
        findings.add(aside.path.display(), problem, remedy);
    }
    let count = survey.records.len();
    findings.fine(format!("{count} sandboxes on record in {dir}"));
}

/// Reports the sandboxes of earlier boots, except sandboxes whose detachment has failed. Reports
/// two or more sandboxes in one finding, because a node may have many soon after a reboot.
fn rebooted(
    context: &Context<'_>,
    conf: &Path,
    records: &[&Surveyed],
    findings: &mut Findings<'_>,
) {
    let is_settled = |record: &&&Surveyed| {
        let key = record.sandbox.header.key();
        context.host.journal.owed(&key).is_none()
    };
    let records: Vec<&&Surveyed> = records.iter().filter(is_settled).collect();
    let [first, _, ..] = records.as_slice() else {
        for record in records {
            examine(context, conf, record, findings);
        }
        return;
    };
    let names = records.iter().map(|record| about(&record.sandbox.header));
    let names: Vec<String> = names.collect();
    let problem = format!(
        "{} sandboxes were attached before the node's last boot, and the runtime sent no DEL for \
         them: {}",
        names.len(),
        super::first_few(&names)
    );
    let command = detach_command(conf, &first.sandbox.header);
    let remedy = format!(
        "wait until kubelet has removed these sandboxes; if the first of them stays on record, {}; \
         treat the others likewise",
        command.as_deref().unwrap_or(WITHOUT_POD)
    );
    let dir = &context.request.config.journal_dir;
    findings.add(dir.display(), problem, remedy);
}

fn examine(context: &Context<'_>, conf: &Path, record: &Surveyed, findings: &mut Findings<'_>) {
    let header = &record.sandbox.header;
    let about = about(header);
    // If the detachment has failed, the check of owed detachments reports the sandbox.
    if context.host.journal.owed(&header.key()).is_some() {
        return;
    }
    let owed = record.sandbox.to_detach().len();
    let remedy = || unless_the_runtime_does(detach_command(conf, header));
    // An error means that the namespace may exist.
    if !has_netns(header).unwrap_or(true) {
        let problem = format!(
            "its network namespace {} is gone and {owed} attachments are on record: the runtime \
             sent no DEL",
            header.netns
        );
        return findings.add(about, problem, remedy());
    }
    let is_at_work = record.age <= context.request.config.deadlines.add;
    if record.sandbox.is_torn && !is_at_work {
        let problem = format!(
            "its record {} has an incomplete or damaged line, for example because of a full disk",
            record.path.display()
        );
        let remedy = "if the disk is full, free some space; the pod's DEL detaches everything that \
                      the ADD began";
        findings.add(&about, problem, remedy);
    }
    if record.sandbox.complete {
        missing_interfaces(context, &record.sandbox, &about, findings);
    } else if !is_at_work {
        let problem = format!(
            "its ADD was interrupted and {owed} attachments are on record: the runtime sent no DEL"
        );
        findings.add(about, problem, remedy());
    }
}

/// Finds interfaces that are on record but not in the pod.
fn missing_interfaces(
    context: &Context<'_>,
    sandbox: &Sandbox,
    about: &str,
    findings: &mut Findings<'_>,
) {
    let links = PodNetns::open(Path::new(&sandbox.header.netns))
        .map_err(Into::into)
        .and_then(|netns| (context.host.links)(&netns))
        .and_then(|mut links| links.links());
    let links = match links {
        Ok(links) => links,
        Err(error) => {
            let problem = format!("its interfaces cannot be listed: {error}");
            return findings.add(about, problem, RECREATE);
        }
    };
    let attachments = sandbox.header.attachments.iter().zip(&sandbox.progress);
    for (attachment, progress) in attachments.filter(|(_, progress)| progress.may_be_attached()) {
        let interfaces = progress.result.iter().flat_map(|result| &result.interfaces);
        let in_pod = interfaces.filter(|it| it.sandbox.is_some() && it.socket_path.is_none());
        for interface in in_pod {
            if links.iter().all(|link| link.name != interface.name) {
                let problem = format!(
                    "interface {} of network {} is on record but not in the pod",
                    interface.name, attachment.label
                );
                findings.add(about, problem, RECREATE);
            }
        }
    }
}

/// The remedy for a sandbox for which the runtime may still send a DEL.
fn unless_the_runtime_does(command: Option<String>) -> String {
    match command {
        Some(command) => format!("if the runtime sends no DEL later, {command}"),
        None => WITHOUT_POD.to_owned(),
    }
}

/// The command that detaches the sandbox in place of the runtime, if the pod is known.
fn detach_command(conf: &Path, header: &Header) -> Option<String> {
    let pod = header.pod.as_ref()?;
    let Key { container, ifname } = header.key();
    let is_there = has_netns(header).unwrap_or(true);
    let netns: &str = if is_there { &header.netns } else { NO_NETNS };
    Some(format!(
        "run `jackfield detach --conf {} --pod {pod} --container-id {container} --ifname {ifname} \
         --netns {netns}`",
        conf.display()
    ))
}

fn about(header: &Header) -> String {
    let Key { container, ifname } = header.key();
    match &header.pod {
        Some(pod) => format!("pod {pod} ({container}:{ifname})"),
        None => format!("container {container}:{ifname}"),
    }
}

/// Whether the journal's file system is full. If `dir` is missing, checks its nearest existing
/// parent.
fn is_full(dir: &Path) -> bool {
    let existing = dir.ancestors().find(|dir| dir.exists());
    let space = existing.and_then(|dir| nix::sys::statvfs::statvfs(dir).ok());
    space.is_some_and(|space| {
        let no_inodes = space.files() > 0 && space.files_available() == 0;
        // A file system without any blocks, such as /proc, is not full.
        space.blocks() > 0 && (space.blocks_available() == 0 || no_inodes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_is_a_command_if_the_pod_is_known() {
        assert_eq!(
            unless_the_runtime_does(Some("run this".to_owned())),
            "if the runtime sends no DEL later, run this"
        );
        assert_eq!(
            unless_the_runtime_does(None),
            "let the runtime remove the container, or run `jackfield gc` with one --keep for each \
             sandbox that should stay"
        );
    }
}
