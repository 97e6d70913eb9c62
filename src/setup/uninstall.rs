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
use super::install_lock::InstallLock;
use super::manifest::Manifest;
use super::stage::{self, Staged};
use super::{HostPaths, NAME, Say, SetupError};
use crate::cni::RawObject;

/// Takes away what was installed.
///
/// # Errors
/// [`SetupError::NotYet`] as long as sandboxes are on record; and whatever stands in the way.
pub fn uninstall(
    paths: &HostPaths,
    cni_path: &str,
    force: bool,
    say: Say<'_>,
) -> Result<(), SetupError> {
    let _turn = InstallLock::take(paths)?;
    for dir in [&paths.conf_dir, &paths.bin_dir] {
        stage::sweep(&paths.here(dir));
    }
    let Some(manifest) = Manifest::read(paths)? else {
        if Manifest::conf(paths)?.is_some() {
            return Err(SetupError::NotYet(format!(
                "the manifest of what is installed in {} is gone; install again, then uninstall",
                paths.here(&paths.conf_dir).display()
            )));
        }
        // What an installation left that was ended before it began.
        Manifest::forget(paths)?;
        say(&format!(
            "nothing is installed in {}",
            paths.here(&paths.conf_dir).display()
        ));
        return Ok(());
    };
    let paths = &HostPaths {
        cluster_conf_dir: manifest.cluster_conf_dir.clone(),
        ..paths.clone()
    };
    journal::nothing_unknown(paths, force, say)?;
    let conf = take_conf_out(paths, &manifest, say)?;
    leaving(paths, &manifest);
    journal::clear(paths, &manifest, conf, cni_path, force, say)?;
    take_binary_out(paths, &manifest, say)?;
    Manifest::forget(paths)?;
    say("uninstalled");
    Ok(())
}

/// The configuration that was there comes back and ours goes, as [`uninstall`] begins. Whatever pods
/// that run need stays.
pub(super) fn give_back(
    paths: &HostPaths,
    manifest: &Manifest,
    say: Say<'_>,
) -> Result<(), SetupError> {
    take_conf_out(paths, manifest, say)?;
    let mut left = manifest.clone();
    // It is back: what stands there now is what a later installation finds.
    left.replaced
        .retain(|kept| kept.path.parent() != Some(&paths.conf_dir));
    left.is_leaving = true;
    left.stage(paths)?.put()
}

/// What was there is put back, then ours goes; the answer is what it was.
fn take_conf_out(
    paths: &HostPaths,
    manifest: &Manifest,
    say: Say<'_>,
) -> Result<Option<RawObject>, SetupError> {
    let runtime = match Directory::read(paths, &paths.conf_dir) {
        Ok(runtime) => runtime,
        Err(SetupError::NoConfDir { .. }) => return Manifest::conf(paths),
        Err(error) => return Err(error),
    };
    let was_in = runtime.ours().is_some();
    if let Some((_, conf)) = runtime.ours() {
        let stdin = conf.on_stdin().to_string();
        // On a full disk there is no place for what is there already.
        if Manifest::conf(paths)?.is_none_or(|kept| kept.to_string() != stdin) {
            Manifest::stage_conf(paths, &stdin)?.put()?;
        }
    }
    let in_conf_dir = |path: &&PathBuf| path.parent() == Some(&paths.conf_dir);
    let replaced = manifest.replaced.iter().map(|kept| &kept.path);
    for path in replaced.filter(in_conf_dir) {
        // What somebody wrote there since is not ours to change.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let there = runtime.files.iter().find(|file| *file.name == *name);
        let is_others = there.is_some_and(|file| !matches!(file.kind, Kind::Ours(_)));
        if was_in && is_others && !names_ours(paths, path) {
            say(&format!(
                "{} was written anew meanwhile and stays",
                path.display()
            ));
            continue;
        }
        let is_free = was_in || !paths.here(path).exists();
        if is_free && manifest.restore(paths, path)? {
            say(&format!("put {} back as it was", path.display()));
        }
    }
    leave_a_network(paths, &runtime, say)?;
    let kept = |path: &PathBuf| manifest.replaced.iter().any(|kept| kept.path == *path);
    for file in &runtime.files {
        let path = runtime.file(&file.name);
        if matches!(file.kind, Kind::Multus) && !kept(&path) && names_ours(paths, &path) {
            say(&format!(
                "{} names our configuration, which goes: restart Multus' DaemonSet, or correct it",
                path.display()
            ));
        }
    }
    for file in &runtime.files {
        let path = runtime.file(&file.name);
        if matches!(file.kind, Kind::Ours(_)) && !kept(&path) {
            stage::remove(&paths.here(&path))?;
            say(&format!("removed {}", path.display()));
        }
    }
    Manifest::conf(paths)
}

/// Notes that what is left is on its way out; a full disk is no reason to stay.
fn leaving(paths: &HostPaths, manifest: &Manifest) {
    let mut manifest = manifest.clone();
    manifest.is_leaving = true;
    let _ = manifest.stage(paths).and_then(Staged::put);
}

/// Whether a configuration stands around ours: Multus' DaemonSet takes the first that it finds for
/// the cluster's, and writes that it has seen ours.
fn names_ours(paths: &HostPaths, path: &Path) -> bool {
    let text = fs::read_to_string(paths.here(path)).unwrap_or_default();
    let by_type = format!("\"{NAME}\"");
    NAMES.iter().any(|name| text.contains(name)) || text.contains(&by_type)
}

/// A runtime that reads a directory of its own finds no network there without ours, and could not
/// even stop its pods: it gets the cluster network's configuration.
fn leave_a_network(paths: &HostPaths, runtime: &Directory, say: Say<'_>) -> Result<(), SetupError> {
    let has_other = runtime
        .files
        .iter()
        .any(|file| matches!(file.kind, Kind::Network(_) | Kind::Multus));
    if !paths.is_apart() || has_other || runtime.files.is_empty() {
        return Ok(());
    }
    let Ok(cluster) = Directory::read(paths, &paths.cluster_conf_dir) else {
        return Ok(());
    };
    let Candidate::Found(name, _) = cluster.cluster_network() else {
        return Ok(());
    };
    let from = paths.here(&cluster.file(name));
    let to = paths.here(&runtime.file(name));
    let text = fs::read(&from).map_err(|cause| SetupError::io(&from, "cannot be read", cause))?;
    Staged::text(&to, &text, 0o600)?.put()?;
    say(&format!(
        "put a copy of {} into {}, so that the runtime has a network: let it read {} again, then remove the copy",
        cluster.file(name).display(),
        paths.conf_dir.display(),
        paths.cluster_conf_dir.display(),
    ));
    Ok(())
}

/// Ours goes, and what was there before comes back; what somebody else put there since stays.
fn take_binary_out(paths: &HostPaths, manifest: &Manifest, say: Say<'_>) -> Result<(), SetupError> {
    let here = paths.here(&manifest.binary);
    if manifest.restore(paths, &manifest.binary)? {
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
