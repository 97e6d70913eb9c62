//! A directory with files of device information. Users other than root may be able to write to it.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat, openat2, renameat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{Uid, UnlinkatFlags, geteuid, unlinkat};

use super::{StoreError, UnsafeFile, name};

/// The maximum size of a file, in bytes. A valid file is smaller: the device information of one
/// network takes about 300 bytes.
const MAX_FILE: u64 = 64 << 10;

/// An open directory. Every operation on a file uses the directory's descriptor, not its path.
pub(super) struct Directory {
    descriptor: OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// Opens `base/name`; `None` if it is missing.
    pub(super) fn open(base: &Path, name: &str) -> Result<Option<Self>, StoreError> {
        let path = base.join(name);
        let fail = |errno: Errno| StoreError::io(&path, "opened", errno.into());
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let base = match openat(AT_FDCWD, base, flags, Mode::empty()) {
            Ok(base) => base,
            Err(Errno::ENOENT) => return Ok(None),
            Err(errno) => return Err(fail(errno)),
        };
        match beneath(&base, name, flags, Mode::empty()) {
            Ok(descriptor) => Ok(Some(Self { descriptor, path })),
            Err(Errno::ENOENT) => Ok(None),
            Err(Errno::ELOOP | Errno::ENOTDIR) => Err(StoreError::Unsafe {
                path: path.display().to_string(),
                finding: UnsafeFile::NotDirectory,
            }),
            Err(errno) => Err(fail(errno)),
        }
    }

    /// Opens `base/name`. Creates `base` and `base/name` with mode 0755 if they are missing.
    pub(super) fn create(base: &Path, name: &str) -> Result<Self, StoreError> {
        if let Some(there) = Self::open(base, name)? {
            return Ok(there);
        }
        let path = base.join(name);
        let fail = |error: io::Error| StoreError::io(&path, "created", error);
        if !base.exists() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o755)
                .create(base)
                .map_err(fail)?;
            std::fs::set_permissions(base, Permissions::from_mode(0o755)).map_err(fail)?;
        }
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let parent =
            openat(AT_FDCWD, base, flags, Mode::empty()).map_err(|errno| fail(errno.into()))?;
        match mkdirat(&parent, name, Mode::from_bits_truncate(0o755)) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(fail(errno.into())),
        }
        let made = Self::open(base, name)?.ok_or_else(|| fail(Errno::ENOENT.into()))?;
        // The umask may have removed permissions that other users' plugins need.
        File::from(made.descriptor.try_clone().map_err(fail)?)
            .set_permissions(Permissions::from_mode(0o755))
            .map_err(fail)?;
        Ok(made)
    }

    /// Reads a whole file; `None` if it is missing.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.path.join(name);
        let refuse = |finding: UnsafeFile| StoreError::Unsafe {
            path: path.display().to_string(),
            finding,
        };
        let fail = |error: io::Error| StoreError::io(&path, "read", error);
        // Without O_NONBLOCK, opening a FIFO would wait for a writer.
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let file = match beneath(&self.descriptor, name, flags, Mode::empty()) {
            Ok(descriptor) => File::from(descriptor),
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ELOOP) => return Err(refuse(UnsafeFile::Symlink)),
            Err(Errno::ENXIO) => return Err(refuse(UnsafeFile::NotRegular)),
            Err(errno) => return Err(fail(errno.into())),
        };
        let found = file.metadata().map_err(fail)?;
        if !found.is_file() {
            return Err(refuse(UnsafeFile::NotRegular));
        }
        if found.uid() != Uid::from_raw(0).as_raw() && found.uid() != geteuid().as_raw() {
            return Err(refuse(UnsafeFile::ForeignOwner));
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1)
            .read_to_end(&mut bytes)
            .map_err(fail)?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(refuse(UnsafeFile::TooLarge));
        }
        Ok(Some(bytes))
    }

    /// Writes a file with mode 0644. Writes the whole content under a temporary name first, then
    /// renames the temporary file. The rename replaces an existing file.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.path.join(name);
        if bytes.len() as u64 > MAX_FILE {
            return Err(StoreError::io(
                &path,
                "written",
                io::Error::other("it is larger than 64 KiB"),
            ));
        }
        let unfinished = unfinished(name);
        // A crash may have left the temporary file behind. No other file has this name, because
        // names of files with device information cannot start with a dot.
        let _ = unlinkat(
            &self.descriptor,
            unfinished.as_str(),
            UnlinkatFlags::NoRemoveDir,
        );
        let written = self.write_unfinished(&unfinished, bytes).and_then(|()| {
            renameat(
                &self.descriptor,
                unfinished.as_str(),
                &self.descriptor,
                name,
            )?;
            File::from(self.descriptor.try_clone()?).sync_all()
        });
        written.map_err(|error: io::Error| {
            let _ = unlinkat(
                &self.descriptor,
                unfinished.as_str(),
                UnlinkatFlags::NoRemoveDir,
            );
            StoreError::io(&path, "written", error)
        })
    }

    fn write_unfinished(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let mode = Mode::from_bits_truncate(0o644);
        let mut file = File::from(beneath(&self.descriptor, name, flags, mode)?);
        file.set_permissions(Permissions::from_mode(0o644))?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    /// Removes a file and its temporary file. Removes a link, not its target.
    pub(super) fn remove(&self, name: &str) -> Result<(), StoreError> {
        for name in [unfinished(name).as_str(), name] {
            match unlinkat(&self.descriptor, name, UnlinkatFlags::NoRemoveDir) {
                Ok(()) | Err(Errno::ENOENT) => {}
                Err(errno) => {
                    return Err(StoreError::io(
                        &self.path.join(name),
                        "removed",
                        errno.into(),
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Returns the temporary name of a file that is being written.
fn unfinished(name: &str) -> String {
    format!(".{}.tmp", name::hash(name))
}

/// Opens one entry of a directory without following links.
///
/// Kernels before 5.6 do not have `openat2`, and a seccomp filter may block it. In both cases,
/// `openat` with `O_NOFOLLOW` has the same effect, because a name contains no `/`.
fn beneath(directory: &OwnedFd, name: &str, flags: OFlag, mode: Mode) -> Result<OwnedFd, Errno> {
    let how = OpenHow::new()
        .flags(flags)
        .mode(mode)
        .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
    match openat2(directory, name, how) {
        Err(Errno::ENOSYS | Errno::EPERM) => {
            openat(directory, name, flags | OFlag::O_NOFOLLOW, mode)
        }
        other => other,
    }
}
