//! Uninstall: the node gets back what it had, and no pod is stranded.
//!
//! ```text
//! configuration out, what was there back ▶ sandboxes that are gone: detached
//!   ▶ none left on record? binary, journal, manifest out : all three stay, and it is said
//! ```
//!
//! The configuration goes first, so that new pods get the cluster network alone. Pods that we
//! attached live on; their runtime may still call our binary, and what they have is known to the
//! journal alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::binary::Content;
use super::conf::OurConf;
use super::directory::{Candidate, Directory, Kind, NAMES};
use super::manifest::Manifest;
use super::request::about_the_node;
use super::stage::{self, Staged};
use super::turn::Turn;
use super::{NAME, NodeError, Place, Say};
use crate::cni::RawObject;
use crate::journal::{Journal, MultusCache};
use crate::operation::retire::{Retired, Which, retire};
use crate::operation::{Context, Failure};
use crate::plugin::{self, with_node};
use crate::request::NodeConfig;

/// How long detaching everything may take.
const LIMIT: Duration = Duration::from_secs(3600);
/// What a journal consists of.
const JOURNAL: [&str; 6] = [
    "sandboxes",
    "owed",
    "quarantine",
    "adopted",
    "exclusive",
    "publish",
];

/// Takes away what was installed.
///
/// # Errors
/// [`NodeError::NotYet`] as long as sandboxes are on record; and whatever stands in the way.
pub fn uninstall(
    place: &Place,
    cni_path: &str,
    force: bool,
    say: Say<'_>,
) -> Result<(), NodeError> {
    let _turn = Turn::take(place)?;
    for dir in [&place.conf_dir, &place.bin_dir] {
        stage::sweep(&place.here(dir));
    }
    let Some(manifest) = Manifest::read(place)? else {
        if Manifest::conf(place)?.is_some() {
            return Err(NodeError::NotYet(format!(
                "the manifest of what is installed in {} is gone; install again, then uninstall",
                place.here(&place.conf_dir).display()
            )));
        }
        // What an installation left that was ended before it began.
        Manifest::forget(place)?;
        say(&format!(
            "nothing is installed in {}",
            place.here(&place.conf_dir).display()
        ));
        return Ok(());
    };
    let place = &Place {
        cluster_conf_dir: manifest.cluster_conf_dir.clone(),
        ..place.clone()
    };
    nothing_unknown(place, force, say)?;
    let conf = take_conf_out(place, &manifest, say)?;
    leaving(place, &manifest);
    clear_journal(place, &manifest, conf, cni_path, force, say)?;
    take_binary_out(place, &manifest, say)?;
    Manifest::forget(place)?;
    say("uninstalled");
    Ok(())
}

/// What a damaged record was about only the DEL of its pod can find out, and that comes to us as
/// long as our configuration is there.
fn nothing_unknown(place: &Place, force: bool, say: Say<'_>) -> Result<(), NodeError> {
    let standing = Directory::read(place, &place.conf_dir);
    let standing = standing
        .ok()
        .and_then(|runtime| Some(runtime.ours()?.1.on_stdin()));
    let conf = match standing {
        Some(conf) => conf,
        None => Manifest::conf(place)?.unwrap_or_else(|| usual(place)),
    };
    let Ok(node) = NodeConfig::parse(&conf) else {
        return Ok(());
    };
    let survey = Journal::new(&place.here(&node.journal_dir)).survey();
    let survey = survey.map_err(|cause| NodeError::NotYet(cause.to_string()))?;
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
    Err(NodeError::NotYet(format!(
        "{line}; delete its pod, whose DEL detaches what can be known, then run uninstall again, or \
         with --force to leave it; nothing was changed"
    )))
}

/// What was there is put back, then ours goes; the answer is what it was.
fn take_conf_out(
    place: &Place,
    manifest: &Manifest,
    say: Say<'_>,
) -> Result<Option<RawObject>, NodeError> {
    let runtime = match Directory::read(place, &place.conf_dir) {
        Ok(runtime) => runtime,
        Err(NodeError::NoConfDir { .. }) => return Manifest::conf(place),
        Err(error) => return Err(error),
    };
    let was_in = runtime.ours().is_some();
    if let Some((_, conf)) = runtime.ours() {
        let stdin = conf.on_stdin().to_string();
        // On a full disk there is no place for what is there already.
        if Manifest::conf(place)?.is_none_or(|kept| kept.to_string() != stdin) {
            Manifest::stage_conf(place, &stdin)?.put()?;
        }
    }
    let in_conf_dir = |path: &&PathBuf| path.parent() == Some(&place.conf_dir);
    let paths: Vec<&PathBuf> = manifest.replaced.iter().map(|kept| &kept.path).collect();
    for path in paths.into_iter().filter(in_conf_dir) {
        // What somebody wrote there since is not ours to change.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let there = runtime.files.iter().find(|file| *file.name == *name);
        let is_others = there.is_some_and(|file| !matches!(file.kind, Kind::Ours(_)));
        if was_in && is_others && !names_ours(place, path) {
            say(&format!(
                "{} was written anew meanwhile and stays",
                path.display()
            ));
            continue;
        }
        let is_free = was_in || !place.here(path).exists();
        if is_free && manifest.restore(place, path)? {
            say(&format!("put {} back as it was", path.display()));
        }
    }
    leave_a_network(place, &runtime, say)?;
    let kept = |path: &PathBuf| manifest.replaced.iter().any(|kept| kept.path == *path);
    for file in &runtime.files {
        let path = runtime.file(&file.name);
        if matches!(file.kind, Kind::Multus) && !kept(&path) && names_ours(place, &path) {
            say(&format!(
                "{} names our configuration, which goes: restart Multus' DaemonSet, or correct it",
                path.display()
            ));
        }
    }
    for file in &runtime.files {
        let path = runtime.file(&file.name);
        if matches!(file.kind, Kind::Ours(_)) && !kept(&path) {
            stage::remove(&place.here(&path))?;
            say(&format!("removed {}", path.display()));
        }
    }
    Manifest::conf(place)
}

/// Notes that what is left is on its way out; a full disk is no reason to stay.
fn leaving(place: &Place, manifest: &Manifest) {
    let mut manifest = manifest.clone();
    manifest.is_leaving = true;
    let _ = manifest.stage(place).and_then(Staged::put);
}

/// Whether a configuration stands around ours: Multus' DaemonSet takes the first that it finds for
/// the cluster's, and writes that it has seen ours.
fn names_ours(place: &Place, path: &Path) -> bool {
    let text = fs::read_to_string(place.here(path)).unwrap_or_default();
    let by_type = format!("\"{NAME}\"");
    NAMES.iter().any(|name| text.contains(name)) || text.contains(&by_type)
}

/// A runtime that reads a directory of its own finds no network there without ours, and could not
/// even stop its pods: it gets the cluster network's configuration.
fn leave_a_network(place: &Place, runtime: &Directory, say: Say<'_>) -> Result<(), NodeError> {
    let has_other = runtime
        .files
        .iter()
        .any(|file| matches!(file.kind, Kind::Network(_) | Kind::Multus));
    if !place.is_apart() || has_other || runtime.files.is_empty() {
        return Ok(());
    }
    let Ok(cluster) = Directory::read(place, &place.cluster_conf_dir) else {
        return Ok(());
    };
    let Candidate::Found(name, _) = cluster.cluster_network() else {
        return Ok(());
    };
    let from = place.here(&cluster.file(name));
    let to = place.here(&runtime.file(name));
    let text = fs::read(&from).map_err(|cause| NodeError::io(&from, "cannot be read", cause))?;
    Staged::text(&to, &text, 0o600)?.put()?;
    say(&format!(
        "put a copy of {} into {}, so that the runtime has a network: let it read {} again, then remove the copy",
        cluster.file(name).display(),
        place.conf_dir.display(),
        place.cluster_conf_dir.display(),
    ));
    Ok(())
}

/// Detaches what may be detached, and takes the journal away when nothing is on record any more.
fn clear_journal(
    place: &Place,
    manifest: &Manifest,
    conf: Option<RawObject>,
    cni_path: &str,
    force: bool,
    say: Say<'_>,
) -> Result<(), NodeError> {
    let conf = conf.unwrap_or_else(|| {
        say("the configuration that was installed is gone; the journal is looked for in its usual place");
        usual(place)
    });
    let request = about_the_node(conf, cni_path)
        .map_err(|cause| NodeError::NotYet(format!("the installed configuration: {cause}")))?;
    let dir = place.here(&request.node.journal_dir);
    if !dir.exists() {
        return Ok(());
    }
    let journal = Journal::new(&dir);
    let unreadable = |cause: &dyn std::fmt::Display| NodeError::NotYet(format!("{cause}"));
    let on_record = journal.keys().map_err(|cause| unreadable(&cause))?;
    if !on_record.is_empty() {
        if !place.is_host() {
            return Err(NodeError::NotYet(format!(
                "{} sandboxes are on record in {}; run {} uninstall on the host itself, where they can be detached",
                on_record.len(),
                request.node.journal_dir.display(),
                manifest.binary.display(),
            )));
        }
        let which = if force { Which::All } else { Which::Gone };
        let retired = with_node(&request.node, |node| {
            let context = Context::new(node, &request, LIMIT);
            let retired = retire(&context, which);
            context.notes().iter().for_each(|line| say(line));
            retired
        });
        finish(
            &retired.map_err(|failure| unreadable(&failure.to_cni().msg))?,
            manifest,
            say,
        )?;
    }
    forget_cached(&journal, &request.node.cni_dir, say);
    remove_journal(&dir, say);
    if place.is_host() {
        plugin::forget_locks();
    }
    Ok(())
}

/// Our configuration without any key of the administrator's.
fn usual(place: &Place) -> RawObject {
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
fn finish(retired: &Retired, manifest: &Manifest, say: Say<'_>) -> Result<(), NodeError> {
    for key in &retired.detached {
        say(&format!("detached {}:{}", key.container, key.ifname));
    }
    let binary = manifest.binary.display();
    if !retired.failed.is_empty() {
        let lines: Vec<String> = retired.failed.iter().map(Failure::to_string).collect();
        return Err(NodeError::NotYet(format!(
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
        return Err(NodeError::NotYet(format!(
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

/// Ours goes, and what was there before comes back; what somebody else put there since stays.
fn take_binary_out(place: &Place, manifest: &Manifest, say: Say<'_>) -> Result<(), NodeError> {
    let here = place.here(&manifest.binary);
    if manifest.restore(place, &manifest.binary)? {
        say(&format!("put {} back as it was", manifest.binary.display()));
        return Ok(());
    }
    match Content::of(&here) {
        Ok(content) if content == manifest.content => {
            stage::remove(&here)?;
            say(&format!("removed {}", manifest.binary.display()));
        }
        Ok(_) => say(&format!(
            "{} was replaced by somebody else and stays",
            manifest.binary.display()
        )),
        Err(_) => {}
    }
    Ok(())
}
