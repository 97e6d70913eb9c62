//! Finds the binaries of delegates.

use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::cni::PluginType;

/// A plugin's binary that [`find`] has accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary(PathBuf);

impl Binary {
    /// The absolute path. Its file name is the plugin's type, even if the file is a symbolic link.
    /// A binary that contains several plugins selects the plugin by this name.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl fmt::Display for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

/// Jackfield's own executable, identified by device and inode.
///
/// Jackfield never executes this file as a delegate, under any name. It also never executes any
/// file named `jackfield`, the name of the installed program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ours((u64, u64));

impl Ours {
    /// The name of the installed program.
    const NAME: &'static str = "jackfield";

    /// The executable of this process.
    ///
    /// # Errors
    ///
    /// When `/proc` is not mounted.
    pub fn this_process() -> io::Result<Self> {
        fs::metadata("/proc/self/exe").map(|metadata| Self::of(&metadata))
    }

    fn of(metadata: &Metadata) -> Self {
        Self((metadata.dev(), metadata.ino()))
    }
}

/// Finds a plugin's binary in the first directory that has an executable file of the plugin's name
/// (CNI 1.1.0 §2 "Parameters", §3 "Look up the executable specified in the `type` field").
///
/// Follows symbolic links. Skips relative directories, since they depend on the runtime's working
/// directory.
///
/// # Errors
///
/// [`FindError`] when the file is missing, is not executable, or is Jackfield itself.
/// [`FindError::Exposed`] when every user can write the file or its directory.
pub fn find(dirs: &[PathBuf], plugin: &PluginType, ours: &Ours) -> Result<Binary, FindError> {
    let mut not_executable = None;
    for dir in dirs.iter().filter(|dir| dir.is_absolute()) {
        let path = dir.join(plugin.as_str());
        let Some(metadata) = fs::metadata(&path).ok().filter(Metadata::is_file) else {
            continue;
        };
        let mode = metadata.permissions().mode();
        if mode & 0o111 == 0 {
            not_executable.get_or_insert(path);
            continue;
        }
        if Ours::of(&metadata) == *ours || plugin.as_str() == Ours::NAME {
            return Err(FindError::Ours(path));
        }
        if mode & WRITABLE_BY_ALL != 0 {
            return Err(FindError::Exposed(path));
        }
        if fs::metadata(dir).is_ok_and(|dir| dir.permissions().mode() & WRITABLE_BY_ALL != 0) {
            return Err(FindError::Exposed(dir.clone()));
        }
        return Ok(Binary(path));
    }
    Err(match not_executable {
        Some(path) => FindError::NotExecutable(path),
        None => FindError::NotFound {
            plugin: plugin.clone(),
            dirs: list(dirs),
        },
    })
}

const WRITABLE_BY_ALL: u32 = 0o002;

/// Lists the searched directories, for a message.
pub(super) fn list(dirs: &[PathBuf]) -> String {
    if dirs.is_empty() {
        return "CNI_PATH, which is empty".into();
    }
    let listed = dirs.iter().map(|dir| match dir.is_absolute() {
        true => dir.display().to_string(),
        false => format!("{} (not absolute)", dir.display()),
    });
    listed.collect::<Vec<_>>().join(", ")
}

/// Why a plugin cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FindError {
    /// No directory contains the binary.
    #[error(
        "no binary named {plugin} in {dirs}; install the plugin, or correct its name in the \
         configuration"
    )]
    NotFound {
        /// The name of the binary.
        plugin: PluginType,
        /// The searched directories.
        dirs: String,
    },
    /// The directories contain files with the plugin's name, but none is executable. The path is
    /// that of the first such file.
    #[error("{0} is not executable; reinstall the plugin, or run `chmod 755 {0}`")]
    NotExecutable(PathBuf),
    /// The binary is Jackfield.
    #[error("{0} is jackfield itself; name another plugin as the delegate")]
    Ours(PathBuf),
    /// Every user may write this file or directory. If Jackfield executed the plugin, every user
    /// could run code as root.
    #[error(
        "{0} can be written by every user, so Jackfield does not execute the plugin; run \
         `chmod o-w {0}`"
    )]
    Exposed(PathBuf),
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn ours() -> Ours {
        Ours::this_process().unwrap()
    }

    fn put(dir: &Path, name: &str, mode: u32) {
        let path = dir.join(name);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn plugin(name: &str) -> PluginType {
        name.parse().unwrap()
    }

    // clause: CNI-1.1.0 §4 search: the directories of CNI_PATH are searched in order
    #[test]
    fn the_first_directory_that_has_an_executable_file_wins() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dirs = [a.path().to_owned(), b.path().to_owned()];
        put(b.path(), "bridge", 0o755);
        fs::create_dir(a.path().join("bridge")).unwrap();
        put(a.path(), "sriov", 0o644);
        put(b.path(), "sriov", 0o755);
        put(a.path(), "tuning", 0o755);
        put(b.path(), "tuning", 0o755);
        for (name, dir) in [("bridge", &b), ("sriov", &b), ("tuning", &a)] {
            let found = find(&dirs, &plugin(name), &ours()).unwrap();
            assert_eq!(found.path(), dir.path().join(name));
        }
    }

    // clause: CNI-1.1.0 §3 executable
    #[test]
    fn the_error_for_a_missing_plugin_lists_the_directories() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = [dir.path().to_owned(), PathBuf::from("bin")];
        let error = find(&dirs, &plugin("bridge"), &ours()).unwrap_err();
        let expected = format!(
            "no binary named bridge in {}, bin (not absolute); install the plugin, or correct its \
             name in the configuration",
            dir.path().display()
        );
        assert_eq!(error.to_string(), expected);
        let nowhere = find(&[], &plugin("bridge"), &ours())
            .unwrap_err()
            .to_string();
        assert!(nowhere.contains("in CNI_PATH, which is empty"), "{nowhere}");
    }

    #[test]
    fn a_file_without_executable_bit_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "bridge", 0o644);
        let error = find(&[dir.path().to_owned()], &plugin("bridge"), &ours()).unwrap_err();
        assert_eq!(error, FindError::NotExecutable(dir.path().join("bridge")));
    }

    #[test]
    fn jackfield_is_never_its_own_delegate_under_any_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("innocent");
        symlink("/proc/self/exe", &path).unwrap();
        let error = find(&[dir.path().to_owned()], &plugin("innocent"), &ours()).unwrap_err();
        assert_eq!(error, FindError::Ours(path));
        // A copy of the executable has a different inode, so `find` also refuses the file name
        // `jackfield`.
        put(dir.path(), "jackfield", 0o755);
        let path = dir.path().join("jackfield");
        let error = find(&[dir.path().to_owned()], &plugin("jackfield"), &ours()).unwrap_err();
        assert_eq!(error, FindError::Ours(path));
    }

    // Injects a fault: every user may write the plugin's binary or its directory.
    #[test]
    fn a_binary_that_every_user_may_write_is_not_executed() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = [dir.path().to_owned()];
        put(dir.path(), "bridge", 0o777);
        let file = find(&dirs, &plugin("bridge"), &ours()).unwrap_err();
        assert_eq!(file, FindError::Exposed(dir.path().join("bridge")));
        put(dir.path(), "bridge", 0o755);
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let parent = find(&dirs, &plugin("bridge"), &ours()).unwrap_err();
        assert_eq!(parent, FindError::Exposed(dir.path().to_owned()));
    }
}
