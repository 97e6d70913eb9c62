//! What is on record, against what the kernel shows.

use std::path::Path;

use super::{Check, Diagnosis, Held, namespaces};
use crate::boot::boot_id;
use crate::cluster::PodName;
use crate::journal::survey::{Damaged, Surveyed};
use crate::journal::{Exclusive, Header, Key, Sandbox};
use crate::kernel::PodNetns;
use crate::operation::Context;
use crate::operation::recovery::retire::has_netns;
use crate::setup::HostPaths;

/// A path at which no network namespace is: a DEL is to enter none.
const NO_NETNS: &str = "/run/netns/gone";

/// How many pods or namespaces a finding about many of them names.
pub(super) const NAMED: usize = 5;

/// Looks at every record.
pub(super) fn look(
    context: &Context<'_>,
    conf: &Path,
    paths: &HostPaths,
    diagnosis: &mut Diagnosis,
) {
    let journal = &context.host.journal;
    let dir = context.request.config.journal_dir.display().to_string();
    if let Err(error) = journal.check_writable() {
        diagnosis.error(Check::Journal, &dir, &error.to_string());
    }
    if is_full(&context.request.config.journal_dir) {
        diagnosis.find(
            Check::Journal,
            &dir,
            "its file system is full, so every ADD fails",
            "free space there",
        );
    }
    let survey = match journal.survey() {
        Ok(survey) => survey,
        Err(error) => return diagnosis.error(Check::Journal, &dir, &error.to_string()),
    };
    let is_of_earlier_boot = |record: &&Surveyed| record.sandbox.header.boot != boot_id();
    let (earlier, current): (Vec<&Surveyed>, Vec<&Surveyed>) =
        survey.records.iter().partition(is_of_earlier_boot);
    rebooted(context, conf, &earlier, diagnosis);
    for record in current {
        diagnosis.held.extend(held(&record.sandbox));
        examine(context, conf, record, diagnosis);
    }
    namespaces::look(paths, &survey.records, diagnosis);
    let at_work = context.request.config.deadlines.add;
    let is_damaged = |it: &&Damaged| !it.may_be_unfinished || it.age > at_work;
    for damaged in survey.damaged.iter().filter(is_damaged) {
        diagnosis.find(
            Check::Journal,
            damaged.path.display(),
            damaged.cause.clone(),
            "leave it where it is: the DEL of its pod detaches what can be known and puts it aside",
        );
    }
    for aside in &survey.quarantined {
        let (finding, remedy) = if aside.is_settled {
            (
                "a damaged record was put aside, and what it was about is detached",
                "look for a full disk or a power loss at the time of the file, then remove it",
            )
        } else {
            (
                "a damaged record was put aside, and what it was about may still be attached",
                "delete its pod: that DEL detaches what can be known; then remove the file",
            )
        };
        diagnosis.find(Check::Journal, aside.path.display(), finding, remedy);
    }
    for path in journal.half_adopted() {
        diagnosis.find(
            Check::Journal,
            path.display(),
            "taking over a pod of Multus' was ended half way",
            "nothing: the next GC takes the file away, and the DEL of the pod begins anew",
        );
    }
    if diagnosis.is_fine(Check::Journal) {
        let count = survey.records.len();
        diagnosis.fine(
            Check::Journal,
            format!("{count} sandboxes on record in {dir}"),
        );
    }
}

/// Names the pods whose network namespaces ended with an earlier boot, all in one finding: their
/// runtime usually sends each DEL within minutes.
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
    diagnosis.find(
        Check::Journal,
        context.request.config.journal_dir.display(),
        format!(
            "{} sandboxes were attached before the node's last boot, and the runtime sent no DEL \
             for them: {}",
            records.len(),
            first_few(names)
        ),
        format!(
            "wait until kubelet has removed them; for each that stays, {}",
            command_to_detach(conf, &first.sandbox.header)
        ),
    );
}

/// The first of many names, and how many more there are.
pub(super) fn first_few(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.collect();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    match more {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// What a sandbox has for itself alone: an ADD that is refused one of these does not name the pods
/// of other namespaces.
fn held(sandbox: &Sandbox) -> Vec<Held> {
    let header = &sandbox.header;
    let mut held = Vec::new();
    for attachment in &header.attachments {
        for what in Exclusive::of(attachment) {
            held.push(Held {
                what: what.to_string(),
                segment: what.segment().map(ToString::to_string),
                pod: header.pod.as_ref().map(ToString::to_string),
                container: header.container.to_string(),
                network: attachment.label.clone(),
                interface: attachment.ifname.to_string(),
            });
        }
    }
    held
}

fn examine(context: &Context<'_>, conf: &Path, record: &Surveyed, diagnosis: &mut Diagnosis) {
    let header = &record.sandbox.header;
    let about = about(header);
    // What is owed is named as that.
    if context.host.journal.owed(&header.key()).is_some() {
        return;
    }
    let owed = record.sandbox.to_detach().len();
    if !has_netns(header) {
        diagnosis.find(
            Check::Journal,
            about,
            format!(
                "its network namespace {} is gone and {owed} attachments are on record: the runtime sent no DEL",
                header.netns
            ),
            detach_by_hand(conf, header),
        );
        return;
    }
    let is_at_work = record.age <= context.request.config.deadlines.add;
    if record.is_torn && !is_at_work {
        diagnosis.find(
            Check::Journal,
            &about,
            format!(
                "its record {} ends in half a step, by a full disk or a killed process",
                record.path.display()
            ),
            "free space there; its DEL detaches all that was begun",
        );
    }
    if !record.sandbox.complete {
        if !is_at_work {
            diagnosis.find(
                Check::Journal,
                about,
                format!("its ADD was ended half way and {owed} attachments are on record: the runtime sent no DEL"),
                detach_by_hand(conf, header),
            );
        }
        return;
    }
    for missing in missing_interfaces(context, record) {
        diagnosis.find(
            Check::Journal,
            &about,
            missing,
            "recreate the pod; jackfield check tells more about it",
        );
    }
}

/// Interfaces that a pod was given and has no more.
fn missing_interfaces(context: &Context<'_>, record: &Surveyed) -> Vec<String> {
    let sandbox = &record.sandbox;
    let shown = PodNetns::open(Path::new(&sandbox.header.netns))
        .map_err(Into::into)
        .and_then(|netns| (context.host.links)(&netns))
        .and_then(|mut links| links.links());
    let links = match shown {
        Ok(links) => links,
        Err(error) => return vec![format!("its interfaces cannot be seen: {error}")],
    };
    let mut missing = Vec::new();
    let attachments = sandbox.header.attachments.iter().zip(&sandbox.progress);
    for (attachment, progress) in attachments.filter(|(_, progress)| progress.is_owed()) {
        let interfaces = progress.result.iter().flat_map(|result| &result.interfaces);
        let in_pod = interfaces.filter(|it| it.sandbox.is_some() && it.socket_path.is_none());
        for interface in in_pod {
            if links.iter().all(|link| link.name != interface.name) {
                missing.push(format!(
                    "interface {} of network {} is on record and not in the pod",
                    interface.name, attachment.label
                ));
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

/// What to do where the runtime does not do it.
fn detach_by_hand(conf: &Path, header: &Header) -> String {
    match &header.pod {
        Some(_) => format!(
            "unless the runtime still does, {}",
            command_to_detach(conf, header)
        ),
        None => command_to_detach(conf, header),
    }
}

/// The command that does what the runtime should have done.
fn command_to_detach(conf: &Path, header: &Header) -> String {
    let Some(PodName {
        namespace, name, ..
    }) = &header.pod
    else {
        return "let the runtime remove the container, or end it by jackfield gc".to_owned();
    };
    let Key { container, ifname } = header.key();
    let netns = if has_netns(header) {
        header.netns.as_str()
    } else {
        NO_NETNS
    };
    format!(
        "run jackfield detach --conf {} --pod {namespace}/{name} --container-id {container} --ifname {ifname} --netns {netns}",
        conf.display()
    )
}

/// Whether nothing more can be written where the journal is, or will be.
fn is_full(dir: &Path) -> bool {
    let there = dir.ancestors().find(|dir| dir.exists());
    let space = there.and_then(|there| nix::sys::statvfs::statvfs(there).ok());
    space.is_some_and(|space| {
        let no_inodes = space.files() > 0 && space.files_available() == 0;
        // One that has no room at all, as /proc, is not full.
        space.blocks() > 0 && (space.blocks_available() == 0 || no_inodes)
    })
}
