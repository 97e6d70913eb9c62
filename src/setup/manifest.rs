//! The manifest of an installation: a file that lists the files that the installer wrote, and the
//! files that it replaced or removed.
//!
//! ```text
//! <conf-dir>/.jackfield/manifest.json    the manifest
//! <conf-dir>/.jackfield/lock             locked while a process changes the installation
//! <conf-dir>/.jackfield/conf.json        Jackfield's configuration, as the plugin gets it on stdin
//! <conf-dir>/.jackfield/before/…         the replaced files, byte for byte
//! ```
//!
//! `<conf-dir>` is the runtime's directory, from which the container runtime reads configurations.
//! The runtime ignores folders there. The installer's container can write only to `<conf-dir>` and
//! to the directory of the plugins, so the folder `.jackfield` is in `<conf-dir>`.

mod folder;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::binary::Content;
use super::error::ManifestError;
use super::stage::{self, StagedFile};
use super::{HostPaths, SetupError};
use crate::cni::RawObject;
use crate::regular_file::{self, found};
use folder::refuse_lost_copies;
pub(super) use folder::{FOLDER, folder, forget_lock, lock, make_folder, undo_folder};

const FILE: &str = "manifest.json";
const CONF: &str = "conf.json";
const BEFORE: &str = "before";
/// The size limit of the manifest and of the configuration beside it, in bytes.
const MAX_FILE: u64 = 4 << 20;
/// `install --watch` undoes changes that other programs make to the installed files. Within this
/// period, in seconds, it makes at most [`REPAIRS`](super::guard::REPAIRS) such repairs.
const REPAIR_COUNTS: u64 = 600;
/// The version of the manifest's format.
pub(super) const FORM: u32 = 1;

/// What an installation put on the node, and what it replaced.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    form: u32,
    /// The installed release.
    pub version: semver::Version,
    /// The binary's path on the host.
    pub binary: PathBuf,
    /// The content of the binary.
    pub content: Content,
    /// The configuration's path on the host.
    pub conf: PathBuf,
    /// The directory of the cluster network's configuration, on the host.
    pub cluster_conf_dir: PathBuf,
    /// How the cluster network is chosen. If true, the cluster network is the first network in
    /// `cluster_conf_dir`, and the installer changes Jackfield's configuration when another network
    /// becomes the first. If false, the administrator has named the cluster network.
    pub follows: bool,
    /// The size and checksum of the cluster network's file. `None` if `follows` is false, if the
    /// file could not be read, or if an earlier release wrote the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Content>,
    /// Whether the installation created the directory of the configuration.
    #[serde(default)]
    pub made_conf_dir: bool,
    /// Multus' configuration, converted to Jackfield's keys, if Jackfield's configuration replaced
    /// it. Each installation overrides these keys with the keys of the administrator's template
    /// (the file of `--conf`). The manifest does not store the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_over: Option<RawObject>,
    /// The replaced files.
    #[serde(default)]
    pub replaced: Vec<ReplacedFile>,
    /// When Jackfield was first installed, in seconds since the epoch; 0 if the release that was
    /// installed first did not store the time.
    #[serde(default)]
    pub installed: u64,
    /// When `install --watch` repaired the installation, in seconds since the epoch.
    #[serde(default)]
    pub repairs: Vec<u64>,
    /// Whether an uninstall has begun, or `install --from-multus --back` gave the node back to
    /// Multus. Jackfield's configuration is then removed, but the binary and the journal stay for
    /// the pods that Jackfield attached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_leaving: bool,
}

/// A file that the installation replaced or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacedFile {
    /// The file's path on the host.
    pub path: PathBuf,
    /// The name of the copy in `before/`.
    pub kept: String,
    /// The file's permissions, without set-user-ID, set-group-ID and sticky bits.
    pub mode: u32,
    /// The file's user and group; `None` if an earlier release made the copy. Root then owns the
    /// restored file.
    #[serde(default)]
    pub owner: Option<(u32, u32)>,
}

impl Manifest {
    /// Makes the manifest of a new installation.
    pub(super) fn new(
        paths: &HostPaths,
        content: Content,
        conf: PathBuf,
        follows: bool,
    ) -> Manifest {
        Manifest {
            form: FORM,
            version: super::version(),
            binary: paths.binary(),
            content,
            conf,
            cluster_conf_dir: paths.cluster_conf_dir.clone(),
            follows,
            network: None,
            made_conf_dir: false,
            taken_over: None,
            replaced: Vec::new(),
            installed: now(),
            repairs: Vec::new(),
            is_leaving: false,
        }
    }

    /// Reads the manifest in the runtime's directory. Returns `None` if nothing is installed there.
    ///
    /// # Errors
    /// [`SetupError::Manifest`], [`SetupError::NoManifest`] and [`SetupError::Io`].
    pub fn read(paths: &HostPaths) -> Result<Option<Manifest>, SetupError> {
        let file = folder(paths).join(FILE);
        let Some(text) = read_if_any(&file)? else {
            return refuse_lost_copies(paths).map(|()| None);
        };
        let manifest: Result<Manifest, _> = serde_json::from_slice(&text);
        let mut manifest = manifest.map_err(|cause| SetupError::manifest(&file, cause))?;
        if manifest.form != FORM {
            let cause = ManifestError::Form(manifest.form);
            return Err(SetupError::manifest(&file, cause));
        }
        manifest.as_called_in(paths);
        Ok(Some(manifest))
    }

    /// Adapts the paths of the binary, the configuration and the replaced files to this process.
    /// The installer that wrote the manifest may have used a different path for the same directory:
    /// a symlink, or, in a container, a different mount.
    fn as_called_in(&mut self, paths: &HostPaths) {
        let dir = |path: &Path| path.parent().unwrap_or(Path::new("/")).to_owned();
        // `paths.conf_dir` and the directory of `self.conf` are the same directory: this process
        // found the manifest below the first, and the installer wrote it below the second.
        let mut names = vec![(dir(&self.conf), paths.conf_dir.clone())];
        let bin_dir = dir(&self.binary);
        if paths.is_host() {
            let real = bin_dir.canonicalize();
            names.push((bin_dir.clone(), real.unwrap_or(bin_dir)));
        } else if self.is_our_binary(&paths.here(&self.binary), &paths.here(&paths.binary())) {
            names.push((bin_dir, paths.bin_dir.clone()));
        }
        let replaced = self.replaced.iter_mut().map(|kept| &mut kept.path);
        for path in replaced.chain([&mut self.binary, &mut self.conf]) {
            let from = dir(path);
            if let Some((_, to)) = names.iter().find(|(dir, _)| *dir == from)
                && let Some(name) = path.file_name()
            {
                *path = to.join(name);
            }
        }
    }

    /// Whether the file at `here` is the installed binary. `by_manifest` is the binary's path in
    /// the manifest. If `by_manifest` exists, both paths must lead to the same file, possibly
    /// through different mounts. Otherwise the file at `here` must have the content of the
    /// installed binary.
    fn is_our_binary(&self, by_manifest: &Path, here: &Path) -> bool {
        let file = |path: &Path| path.metadata().ok().map(|it| (it.dev(), it.ino()));
        match file(by_manifest) {
            None => Content::of(here).is_ok_and(|content| content == self.content),
            there => there == file(here),
        }
    }

    /// The times of the repairs within the last ten minutes.
    pub(super) fn recent_repairs(&self) -> impl Iterator<Item = u64> {
        let since = now().saturating_sub(REPAIR_COUNTS);
        let repairs = self.repairs.iter().copied();
        repairs.filter(move |then| *then > since)
    }

    /// Writes the manifest to a staged file.
    pub(super) fn stage(&self, paths: &HostPaths) -> Result<StagedFile, SetupError> {
        let folder = folder(paths);
        make_folder(&folder)?;
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        StagedFile::new(&folder.join(FILE), text.as_bytes(), 0o600)
    }

    /// Copies the host's file at `path` into `before/`, if the file exists and has no copy yet.
    pub(super) fn keep(&mut self, paths: &HostPaths, path: &Path) -> Result<(), SetupError> {
        let here = paths.here(path);
        if self.replaced.iter().any(|kept| kept.path == path) {
            return Ok(());
        }
        let failed = |cause| SetupError::io(&here, "read", cause);
        let Some(file) = found(regular_file::open(&here)).map_err(failed)? else {
            return Ok(());
        };
        let metadata = file.metadata().map_err(failed)?;
        let folder = folder(paths).join(BEFORE);
        make_folder(&folder)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let kept = format!("{}-{name}", self.replaced.len());
        StagedFile::new(&folder.join(&kept), file, 0o600)?.put()?;
        self.replaced.push(ReplacedFile {
            path: path.to_owned(),
            kept,
            // Drops the set-user-ID and set-group-ID bits, so that the restored file cannot run as
            // another user.
            mode: metadata.mode() & 0o777,
            owner: Some((metadata.uid(), metadata.gid())),
        });
        Ok(())
    }

    /// Restores the host's file at `path` from its copy, byte for byte. Returns whether there was a
    /// copy.
    pub(super) fn restore(&self, paths: &HostPaths, path: &Path) -> Result<bool, SetupError> {
        let Some(replaced) = self.replaced.iter().find(|kept| kept.path == path) else {
            return Ok(false);
        };
        let kept = folder(paths).join(BEFORE).join(&replaced.kept);
        let file = regular_file::open(&kept);
        let file = file.map_err(|cause| SetupError::io(&kept, "read", cause))?;
        let staged = StagedFile::new(&paths.here(path), file, replaced.mode & 0o777)?;
        staged.owned_by(replaced.owner.unwrap_or((0, 0)))?.put()?;
        Ok(true)
    }

    /// Stages a copy of Jackfield's configuration beside the manifest. After an uninstall has
    /// removed the configuration itself, a detachment still needs the paths in this copy.
    pub(super) fn stage_conf(paths: &HostPaths, text: &str) -> Result<StagedFile, SetupError> {
        let folder = folder(paths);
        make_folder(&folder)?;
        StagedFile::new(&folder.join(CONF), text.as_bytes(), 0o600)
    }

    /// Reads the configuration beside the manifest.
    pub(super) fn conf(paths: &HostPaths) -> Result<Option<RawObject>, SetupError> {
        let file = folder(paths).join(CONF);
        let conf = read_if_any(&file)?.map(|text| RawObject::parse(&text));
        conf.transpose()
            .map_err(|cause| SetupError::manifest(&file, cause))
    }

    /// Removes the manifest's folder with everything in it.
    pub(super) fn forget(paths: &HostPaths) -> Result<(), SetupError> {
        stage::remove_dir(&folder(paths))
    }
}

/// Reads a file, if it exists.
fn read_if_any(file: &Path) -> Result<Option<Vec<u8>>, SetupError> {
    found(regular_file::read(file, MAX_FILE)).map_err(|cause| SetupError::io(file, "read", cause))
}

/// The current time in seconds since the epoch.
pub(super) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
