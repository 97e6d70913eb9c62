//! The folder of the manifest. It is in the directory from which the runtime reads CNI
//! configurations.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::{HostPaths, SetupError};
use super::{BEFORE, FILE};
use crate::private_dir;
use crate::regular_file::found;

/// The name of the folder.
pub(in crate::setup) const FOLDER: &str = ".jackfield";
const LOCK: &str = "lock";

/// Checks a folder whose manifest is missing. Before an installation replaces a file, the
/// installation copies the file to this folder and writes the file's original path to the manifest.
/// Without the manifest, Jackfield cannot put a copy back.
///
/// Accepts a copy if the runtime's or the plugins' directory has a file with the same name and
/// content. An interrupted installation may leave such a copy.
///
/// # Errors
/// [`SetupError::NoManifest`] if the folder has the only copy of a file, and [`SetupError::Io`] if
/// the folder cannot be read.
pub(super) fn refuse_lost_copies(paths: &HostPaths) -> Result<(), SetupError> {
    let folder = folder(paths);
    let before = folder.join(BEFORE);
    let unreadable = |path: &Path, cause| SetupError::io(path, "read", cause);
    let copies = found(fs::read_dir(&before)).map_err(|cause| unreadable(&before, cause))?;
    for copy in copies.into_iter().flatten().flatten() {
        let kept = copy.path();
        let name = copy.file_name();
        let name = name.to_string_lossy();
        let Some((_, name)) = name
            .split_once('-')
            .filter(|(n, _)| n.parse::<u32>().is_ok())
        else {
            continue;
        };
        let text = fs::read(&kept).map_err(|cause| unreadable(&kept, cause))?;
        let stands = [&paths.conf_dir, &paths.bin_dir]
            .iter()
            .any(|dir| fs::read(paths.here(dir).join(name)).is_ok_and(|there| there == text));
        if !stands {
            return Err(SetupError::NoManifest { kept, folder });
        }
    }
    Ok(())
}

/// Removes the folder of an installation that failed before it wrote a manifest.
pub(in crate::setup) fn undo_folder(paths: &HostPaths) {
    let folder = folder(paths);
    if !folder.join(FILE).exists() {
        let _ = fs::remove_dir_all(folder);
    }
}

/// Returns the path of the installation's lock.
pub(in crate::setup) fn lock(paths: &HostPaths) -> PathBuf {
    folder(paths).join(LOCK)
}

/// If nothing is installed, removes the lock's file and the empty folder.
pub(in crate::setup) fn forget_lock(lock: &Path) {
    let Some(folder) = lock.parent() else { return };
    if !folder.join(FILE).exists() {
        let _ = fs::remove_file(lock);
        let _ = fs::remove_dir(folder);
    }
}

/// Returns the folder's path in this process. In a container, the path begins with
/// [`HostPaths::host_root`].
pub(in crate::setup) fn folder(paths: &HostPaths) -> PathBuf {
    paths.here(&paths.conf_dir.join(FOLDER))
}

/// Creates the folder or a subfolder, accessible only to root.
pub(in crate::setup) fn make_folder(folder: &Path) -> Result<(), SetupError> {
    private_dir::create(folder).map_err(|cause| SetupError::io(folder, "created", cause))
}
