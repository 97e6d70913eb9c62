//! What is on record when we go: detached where nobody needs it, and kept where somebody does.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::super::conf::OurConf;
use super::super::directory::Directory;
use super::super::manifest::Manifest;
use super::super::request::about_the_node;
use super::super::{HostPaths, Say, SetupError};
use crate::cni::RawObject;
use crate::journal::{Journal, MultusCache};
use crate::operation::recovery::retire::{Retired, Which, retire};
use crate::operation::{Context, Failure};
use crate::plugin::{self, with_host};
use crate::request::NodeConfig;

/// How long detaching everything may take.
const LIMIT: Duration = Duration::from_secs(3600);
/// What a journal consists of.
const JOURNAL: [&str; 7] = [
    "sandboxes",
    "owed",
    "quarantine",
    "adopted",
    "exclusive",
    "unrestored",
    "publish",
];

/// What a damaged record was about only the DEL of its pod can find out, and that comes to us as
/// long as our configuration is there.
pub(super) fn nothing_unknown(
    paths: &HostPaths,
    force: bool,
    say: Say<'_>,
) -> Result<(), SetupError> {
    let standing = Directory::read(paths, &paths.conf_dir);
    let standing = standing
        .ok()
        .and_then(|runtime| Some(runtime.ours()?.1.on_stdin()));
    let conf = match standing {
        Some(conf) => conf,
        None => Manifest::conf(paths)?.unwrap_or_else(|| usual(paths)),
    };
    let Ok(node) = NodeConfig::parse(&conf) else {
        return Ok(());
    };
    let survey = Journal::new(&paths.here(&node.journal_dir)).survey();
    let survey = survey.map_err(|cause| SetupError::NotYet(cause.to_string()))?;
    let unknown = survey.unknown();
    let Some(first) = unknown.first() else {
        return Ok(());
    };
    let line = format!(
        "{}: a damaged record, one of {}, whose pod may still be attached",
        first.display(),
        unknown.len()
    );
    if force {
        say(&format!("{line}; what it has is left where it is"));
        return Ok(());
    }
    Err(SetupError::NotYet(format!(
        "{line}; delete its pod, whose DEL detaches what can be known, then run uninstall again, or \
         with --force to leave it; nothing was changed"
    )))
}

/// Detaches what may be detached, and takes the journal away when nothing is on record any more.
pub(super) fn clear(
    place: &HostPaths,
    manifest: &Manifest,
    conf: Option<RawObject>,
    cni_path: &str,
    force: bool,
    say: Say<'_>,
) -> Result<(), SetupError> {
    let conf = conf.unwrap_or_else(|| {
        say("the configuration that was installed is gone; the journal is looked for in its usual paths");
        usual(place)
    });
    let request = about_the_node(conf, cni_path)
        .map_err(|cause| SetupError::NotYet(format!("the installed configuration: {cause}")))?;
    let dir = place.here(&request.config.journal_dir);
    if !dir.exists() {
        return Ok(());
    }
    let journal = Journal::new(&dir);
    let unreadable = |cause: &dyn std::fmt::Display| SetupError::NotYet(format!("{cause}"));
    let on_record = journal.keys().map_err(|cause| unreadable(&cause))?;
    if !on_record.is_empty() {
        if !place.is_host() {
            return Err(SetupError::NotYet(format!(
                "{} sandboxes are on record in {}; run {} uninstall on the host itself, where they can be detached",
                on_record.len(),
                request.config.journal_dir.display(),
                manifest.binary.display(),
            )));
        }
        let which = if force { Which::All } else { Which::Gone };
        let retired = with_host(&request.config, |host| {
            let context = Context::new(host, &request, LIMIT);
            let retired = retire(&context, which);
            context.notes().iter().for_each(|it| say(&it.to_string()));
            retired
        });
        finish(
            &retired.map_err(|failure| unreadable(&failure.to_cni().msg))?,
            manifest,
            say,
        )?;
    }
    forget_cached(&journal, &request.config.cni_dir, say);
    remove_journal(&dir, say);
    if place.is_host() {
        plugin::forget_locks();
    }
    Ok(())
}

/// Our configuration without any key of the administrator's.
fn usual(place: &HostPaths) -> RawObject {
    let usual = OurConf::from_template(&RawObject::new());
    usual.in_front_of(&place.cluster_conf_dir).on_stdin()
}

/// What Multus' cache has of pods that we detached: who comes back is never told of them.
fn forget_cached(journal: &Journal, cni_dir: &Path, say: Say<'_>) {
    let adopted = journal.adopted();
    let cache = MultusCache::new(cni_dir);
    adopted.iter().for_each(|container| cache.forget(container));
    if !adopted.is_empty() {
        let (count, dir) = (adopted.len(), cni_dir.display());
        say(&format!(
            "cleared {count} detached containers out of Multus' {dir}"
        ));
    }
}

/// Says what was detached; an error when something is left.
fn finish(retired: &Retired, manifest: &Manifest, say: Say<'_>) -> Result<(), SetupError> {
    for key in &retired.detached {
        say(&format!("detached {}:{}", key.container, key.ifname));
    }
    let binary = manifest.binary.display();
    if !retired.failed.is_empty() {
        let lines: Vec<String> = retired.failed.iter().map(Failure::to_string).collect();
        return Err(SetupError::NotYet(format!(
            "{} sandboxes could not be detached: {}; {binary} and the journal stay, run uninstall again",
            lines.len(),
            lines.join("; also ")
        )));
    }
    if !retired.attached.is_empty() {
        let names = retired.attached.iter().map(|(key, pod)| match pod {
            Some(pod) => pod.clone(),
            None => key.container.to_string(),
        });
        let names: Vec<String> = names.collect();
        return Err(SetupError::NotYet(format!(
            "pods that jackfield attached still run: {}; {binary} and the journal stay for them, new \
             pods get what was there before; run uninstall again when they are gone, or with --force \
             to detach them now",
            names.join(", ")
        )));
    }
    Ok(())
}

/// Everything that is known to be a journal's; what else lies there is named and stays.
fn remove_journal(dir: &Path, say: Say<'_>) {
    for name in JOURNAL {
        let _ = fs::remove_dir_all(dir.join(name));
    }
    match fs::remove_dir(dir) {
        Ok(()) => say(&format!("removed {}", dir.display())),
        Err(cause) => say(&format!("{} stays: {cause}", dir.display())),
    }
}
