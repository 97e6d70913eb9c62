//! The part of an uninstall that concerns the journal. Detaches the sandboxes whose pods are gone,
//! and keeps the records of pods that still run.

use std::path::Path;
use std::time::Duration;

use super::super::conf::OurConf;
use super::super::directory::Directory;
use super::super::manifest::Manifest;
use super::super::{HostPaths, Notice, Say, SetupError, about_the_node};
use crate::cni::RawObject;
use crate::journal::{Journal, MultusCache};
use crate::operation::Context;
use crate::operation::recovery::retire::{Retired, Which, retire};
use crate::plugin::{self, with_host};
use crate::request::NodeConfig;

/// The time limit for all detachments together.
const LIMIT: Duration = Duration::from_secs(3600);

/// Refuses an uninstall while records are damaged, unless `force` is set. Only a DEL from the
/// runtime can detach the sandbox of a damaged record: the DEL names the pod, so Jackfield can look
/// up the pod's networks. Some runtimes send this DEL to Jackfield only while Jackfield's
/// configuration is installed.
pub(super) fn refuse_damaged_records(
    paths: &HostPaths,
    force: bool,
    say: Say<'_>,
) -> Result<(), SetupError> {
    let runtime = Directory::read(paths, &paths.conf_dir).ok();
    let current = runtime.and_then(|runtime| Some(runtime.ours()?.1.on_stdin()));
    let conf = match current {
        Some(conf) => conf,
        None => Manifest::conf(paths)?.unwrap_or_else(|| default_conf(paths)),
    };
    let Ok(node) = NodeConfig::parse(&conf) else {
        return Ok(());
    };
    let survey = Journal::new(&paths.here(&node.journal_dir)).survey()?;
    let damaged = survey.unknown();
    let Some(first) = damaged.first() else {
        return Ok(());
    };
    let (first, count) = (first.to_path_buf(), damaged.len());
    if force {
        say(&Notice::DamagedRecords { first, count });
        return Ok(());
    }
    Err(SetupError::DamagedRecords { first, count })
}

/// Detaches the sandboxes whose pods are gone, or all sandboxes if `force` is set. Removes the
/// journal once it has no readable records.
pub(super) fn clear(
    paths: &HostPaths,
    manifest: &Manifest,
    conf: Option<RawObject>,
    cni_path: &str,
    force: bool,
    say: Say<'_>,
) -> Result<(), SetupError> {
    let conf = conf.unwrap_or_else(|| {
        say(&Notice::DefaultJournal);
        default_conf(paths)
    });
    let request = about_the_node(conf, cni_path)
        .map_err(|cause| SetupError::InstalledConf(Box::new(cause)))?;
    let dir = paths.here(&request.config.journal_dir);
    if !dir.exists() {
        return Ok(());
    }
    let journal = Journal::new(&dir);
    let on_record = journal.keys()?;
    if !on_record.is_empty() {
        if !paths.is_host() {
            return Err(SetupError::InContainer {
                count: on_record.len(),
                journal: request.config.journal_dir,
                binary: manifest.binary.clone(),
            });
        }
        let which = if force { Which::All } else { Which::Gone };
        let retired = with_host(&request.config, |host| {
            let context = Context::new(host, &request, LIMIT);
            let retired = retire(&context, which);
            for note in context.notes() {
                say(&Notice::OfCall(note));
            }
            retired
        });
        let retired = retired.map_err(|failure| SetupError::Retire(Box::new(failure)))?;
        finish(retired, manifest, say)?;
    }
    clear_multus_cache(&journal, &request.config.cni_dir, say);
    match journal.remove() {
        Ok(()) => say(&Notice::Removed(dir)),
        Err(cause) => say(&Notice::DirStays { dir, cause }),
    }
    if paths.is_host() {
        plugin::forget_locks();
    }
    Ok(())
}

/// Jackfield's configuration without any keys from the administrator.
fn default_conf(paths: &HostPaths) -> RawObject {
    let conf = OurConf::from_template(&RawObject::new());
    conf.in_front_of(&paths.cluster_conf_dir).on_stdin()
}

/// Removes the adopted sandboxes from Multus' cache. Multus attached these sandboxes, but gets no
/// DEL for them. [`clear`] calls this function after it has detached the sandboxes on record.
fn clear_multus_cache(journal: &Journal, cni_dir: &Path, say: Say<'_>) {
    let adopted = journal.adopted();
    let cache = MultusCache::new(cni_dir);
    adopted.iter().for_each(|container| cache.forget(container));
    if !adopted.is_empty() {
        say(&Notice::MultusCacheCleared {
            count: adopted.len(),
            dir: cni_dir.to_owned(),
        });
    }
}

/// Reports the detached sandboxes, and fails if sandboxes are still on record.
fn finish(retired: Retired, manifest: &Manifest, say: Say<'_>) -> Result<(), SetupError> {
    for key in retired.detached {
        say(&Notice::Detached(key));
    }
    let binary = manifest.binary.clone();
    if !retired.failed.is_empty() {
        let failures = retired.failed;
        return Err(SetupError::NotDetached { failures, binary });
    }
    if !retired.attached.is_empty() {
        let attached = retired.attached.into_iter();
        let names = attached.map(|(key, pod)| pod.unwrap_or_else(|| key.container.to_string()));
        let names = names.collect();
        return Err(SetupError::StillAttached { names, binary });
    }
    Ok(())
}
