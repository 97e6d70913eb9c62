//! Uninstall: restores the node's previous files, and keeps what the runtime needs to detach the
//! attached pods.
//!
//! ```text
//! replace Jackfield's configuration by the previous one ▶ detach the sandboxes whose pods are gone
//!   ▶ if no sandbox is left on record, remove binary, journal and manifest
//!     otherwise, keep all three and report the remaining pods
//! ```
//!
//! The uninstall removes Jackfield's configuration first, so that the runtime does not call
//! Jackfield for new pods. Pods that Jackfield attached keep running. The runtime may still call
//! the binary for these pods, and only the journal contains their attachments.

mod journal;

use std::fs;
use std::path::{Path, PathBuf};

use super::binary::Content;
use super::directory::{Directory, Kind, NAMES};
use super::install_lock::InstallLock;
use super::manifest::Manifest;
use super::stage::{self, StagedFile};
use super::{HostPaths, NAME, Notice, Say, SetupError};
use crate::cni::RawObject;
use crate::regular_file::found;

/// Uninstalls Jackfield.
///
/// # Errors
/// Without `force`, returns [`SetupError::StillAttached`] if attached pods still run, and
/// [`SetupError::DamagedRecords`] if a record is damaged. Returns [`SetupError::InContainer`] or
/// [`SetupError::NotDetached`] if sandboxes cannot be detached. Also returns other errors of
/// [`SetupError`].
pub fn uninstall(
    paths: &HostPaths,
    cni_path: &str,
    force: bool,
    say: Say<'_>,
) -> Result<(), SetupError> {
    let _lock = InstallLock::take(paths)?;
    for dir in [&paths.conf_dir, &paths.bin_dir] {
        stage::sweep(&paths.here(dir));
    }
    let Some(mut manifest) = Manifest::read(paths)? else {
        if Manifest::conf(paths)?.is_some() {
            return Err(SetupError::ManifestGone(paths.here(&paths.conf_dir)));
        }
        // An installation that was interrupted early may have left files.
        Manifest::forget(paths)?;
        say(&Notice::NothingInstalled(paths.here(&paths.conf_dir)));
        return Ok(());
    };
    let paths = &HostPaths {
        cluster_conf_dir: manifest.cluster_conf_dir.clone(),
        ..paths.clone()
    };
    journal::refuse_damaged_records(paths, force, say)?;
    let conf = remove_conf(paths, &manifest, say)?;
    // Note in the manifest that the uninstall has begun. Ignore a failure, so that an uninstall
    // works on a full disk.
    manifest.is_leaving = true;
    let _ = manifest.stage(paths).and_then(StagedFile::put);
    journal::clear(paths, &manifest, conf, cni_path, force, say)?;
    remove_binary(paths, &manifest, say)?;
    Manifest::forget(paths)?;
    say(&Notice::Uninstalled);
    Ok(())
}

/// Replaces Jackfield's configuration with the previous configuration, like the first step of
/// [`uninstall`]. The binary and the journal stay for the pods that still run.
pub(super) fn give_back(
    paths: &HostPaths,
    manifest: &Manifest,
    say: Say<'_>,
) -> Result<(), SetupError> {
    remove_conf(paths, manifest, say)?;
    let mut leaving = manifest.clone();
    // `remove_conf` has restored the replaced files in the runtime's directory. A later uninstall
    // must not restore these files again.
    leaving
        .replaced
        .retain(|replaced| replaced.path.parent() != Some(&paths.conf_dir));
    leaving.is_leaving = true;
    leaving.stage(paths)?.put()
}

/// Restores the previous configuration, then removes Jackfield's configuration. Keeps a copy of
/// Jackfield's configuration in the manifest's folder, and returns this copy. Returns `None` if
/// neither the configuration nor a copy exists.
fn remove_conf(
    paths: &HostPaths,
    manifest: &Manifest,
    say: Say<'_>,
) -> Result<Option<RawObject>, SetupError> {
    let runtime = match Directory::read(paths, &paths.conf_dir) {
        Ok(runtime) => runtime,
        Err(SetupError::NoConfDir(_)) => return Manifest::conf(paths),
        Err(error) => return Err(error),
    };
    // An unreadable file with a name in `NAMES` may be Jackfield's configuration. If the uninstall
    // went on, this file would stay and name a binary that is gone.
    if let Some(cause) = runtime.unreadable_ours() {
        return Err(cause);
    }
    let was_installed = runtime.ours().is_some();
    if let Some((_, conf)) = runtime.ours() {
        let stdin = conf.on_stdin().to_string();
        // Do not write the same text again, because the disk may be full.
        if Manifest::conf(paths)?.is_none_or(|kept| kept.to_string() != stdin) {
            Manifest::stage_conf(paths, &stdin)?.put()?;
        }
    }
    let in_conf_dir = |path: &&PathBuf| path.parent() == Some(&paths.conf_dir);
    let replaced = manifest.replaced.iter().map(|kept| &kept.path);
    for path in replaced.filter(in_conf_dir) {
        // Keep a file that another program has written since the installation. But restore the
        // previous file if the current file names Jackfield.
        let current = runtime.kind_of(path.file_name().unwrap_or_default());
        let is_others = current.is_some_and(|kind| !matches!(kind, Kind::Ours(_)));
        if was_installed && is_others && !names_ours(paths, path) {
            say(&Notice::RewrittenStays(path.clone()));
            continue;
        }
        let is_free = was_installed || !paths.here(path).exists();
        if is_free && manifest.restore(paths, path)? {
            say(&Notice::Restored(path.clone()));
        }
    }
    leave_a_network(paths, &runtime, say)?;
    let is_replaced = |path: &PathBuf| manifest.replaced.iter().any(|it| it.path == *path);
    for file in &runtime.files {
        let path = runtime.file(&file.name);
        match file.kind {
            _ if is_replaced(&path) => {}
            Kind::Multus if names_ours(paths, &path) => say(&Notice::MultusNamesOurs(path)),
            Kind::Ours(_) => {
                stage::remove(&paths.here(&path))?;
                say(&Notice::Removed(path));
            }
            _ => {}
        }
    }
    Manifest::conf(paths)
}

/// Whether the file at `path` names Jackfield or Jackfield's configuration. For example, `path` may
/// be Multus' configuration. Multus' DaemonSet copies the name or the content of the first file in
/// the runtime's directory into Multus' configuration. Before the uninstall, the first file was
/// Jackfield's configuration.
fn names_ours(paths: &HostPaths, path: &Path) -> bool {
    let text = fs::read_to_string(paths.here(path)).unwrap_or_default();
    let by_type = format!("\"{NAME}\"");
    NAMES.iter().any(|name| text.contains(name)) || text.contains(&by_type)
}

/// Copies the cluster network's configuration into the runtime's directory. Without a configuration
/// in this directory, the runtime could not even stop its pods. Does nothing in these cases:
/// - The cluster network writes its configuration to the runtime's directory. Then there is nothing
///   to copy.
/// - Before the uninstall, the runtime's directory was empty.
/// - Before the uninstall, the runtime's directory had a network besides Jackfield.
/// - `cluster_conf_dir` contains no usable configuration of the cluster network.
fn leave_a_network(paths: &HostPaths, runtime: &Directory, say: Say<'_>) -> Result<(), SetupError> {
    let mut files = runtime.files.iter();
    let has_other = files.any(|file| matches!(file.kind, Kind::Network(_) | Kind::Multus));
    if !paths.is_apart() || has_other || runtime.files.is_empty() {
        return Ok(());
    }
    let Ok(cluster) = Directory::read(paths, &paths.cluster_conf_dir) else {
        return Ok(());
    };
    let Ok((name, _)) = cluster.cluster_network() else {
        return Ok(());
    };
    let from = paths.here(&cluster.file(name));
    let to = paths.here(&runtime.file(name));
    let text = fs::read(&from).map_err(|cause| SetupError::io(&from, "read", cause))?;
    StagedFile::new(&to, &text[..], 0o600)?.put()?;
    say(&Notice::NetworkCopied {
        file: cluster.file(name),
        conf_dir: paths.conf_dir.clone(),
        cluster_conf_dir: paths.cluster_conf_dir.clone(),
    });
    Ok(())
}

/// Restores the previous binary, or removes Jackfield's binary if there was no previous one. If
/// another program has replaced Jackfield's binary, that program's file stays.
fn remove_binary(paths: &HostPaths, manifest: &Manifest, say: Say<'_>) -> Result<(), SetupError> {
    let here = paths.here(&manifest.binary);
    let content = found(Content::of(&here));
    let content = content.map_err(|cause| SetupError::io(&here, "read", cause))?;
    let is_others = |content: &Content| *content != manifest.content;
    if content.as_ref().is_some_and(is_others) {
        say(&Notice::BinaryStays(manifest.binary.clone()));
    } else if manifest.restore(paths, &manifest.binary)? {
        say(&Notice::Restored(manifest.binary.clone()));
    } else if content.is_some() {
        stage::remove(&here)?;
        say(&Notice::Removed(manifest.binary.clone()));
    }
    Ok(())
}
