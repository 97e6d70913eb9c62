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

mod journal;

use std::fs;
use std::path::{Path, PathBuf};

use super::binary::Content;
use super::directory::{Candidate, Directory, Kind, NAMES};
use super::manifest::Manifest;
use super::stage::{self, Staged};
use super::turn::Turn;
use super::{NAME, NodeError, Place, Say};
use crate::cni::RawObject;

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
    journal::nothing_unknown(place, force, say)?;
    let conf = take_conf_out(place, &manifest, say)?;
    leaving(place, &manifest);
    journal::clear(place, &manifest, conf, cni_path, force, say)?;
    take_binary_out(place, &manifest, say)?;
    Manifest::forget(place)?;
    say("uninstalled");
    Ok(())
}

/// The configuration that was there comes back and ours goes, as [`uninstall`] begins. Whatever pods
/// that run need stays.
pub(super) fn give_back(place: &Place, manifest: &Manifest, say: Say<'_>) -> Result<(), NodeError> {
    take_conf_out(place, manifest, say)?;
    let mut left = manifest.clone();
    // It is back: what stands there now is what a later installation finds.
    left.replaced
        .retain(|kept| kept.path.parent() != Some(&place.conf_dir));
    left.is_leaving = true;
    left.stage(place)?.put()
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
