//! Waits for a change in a few directories, or for a signal that ends this process.

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::SetupError;
use super::manifest::FOLDER;

/// The events that count as changes: new and removed names, files that a writer has closed, and the
/// removal or renaming of the directory itself.
const CHANGES: AddWatchFlags = AddWatchFlags::IN_CREATE
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_MOVED_FROM)
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_CLOSE_WRITE)
    .union(AddWatchFlags::IN_DELETE_SELF)
    .union(AddWatchFlags::IN_MOVE_SELF);
/// Changes often come in groups. A wait ends this long after the last change of a group.
const QUIET: Duration = Duration::from_millis(100);
/// A wait ends this long after the first change even if changes continue.
const LONGEST: Duration = Duration::from_secs(1);

/// A watch on directories.
#[derive(Debug)]
pub(super) struct Notify {
    inotify: Inotify,
    signals: SignalFd,
    dirs: Vec<PathBuf>,
    watched: HashSet<WatchDescriptor>,
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// Something changed.
    Changed,
    /// Nothing changed within the limit.
    Quiet,
    /// SIGTERM or SIGINT arrived.
    End,
}

impl Notify {
    /// Watches `dirs`. Reads SIGTERM and SIGINT from a descriptor, so that these signals end a
    /// wait.
    pub(super) fn new(dirs: Vec<PathBuf>) -> Result<Notify, SetupError> {
        let first = dirs.first().cloned().unwrap_or_default();
        let failed = |cause| not_watched(&first, cause);
        let ends = block_signals(&first)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let mut notify = Notify {
            inotify: Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)
                .map_err(failed)?,
            signals: SignalFd::with_flags(&ends, flags).map_err(failed)?,
            dirs,
            watched: HashSet::new(),
        };
        notify.watch()?;
        Ok(notify)
    }

    /// Waits at most `limit` for a change or a signal. After a change, waits until the changes end,
    /// but at most a second more.
    pub(super) fn wait(&mut self, limit: Duration) -> Wake {
        // A directory that this call begins to watch counts as changed, because another program may
        // already have written to it. If a directory is still missing, the next call tries again.
        let wake = match self.watch() {
            Ok(true) => Wake::Changed,
            _ => self.once(limit),
        };
        if wake != Wake::Changed {
            return wake;
        }
        let until = Instant::now() + LONGEST;
        while Instant::now() < until {
            match self.once(QUIET) {
                Wake::Changed => {}
                Wake::Quiet => break,
                Wake::End => return Wake::End,
            }
        }
        Wake::Changed
    }

    /// Waits at most `limit` for a signal, and returns whether a signal arrived. Does not consume
    /// changes, so that [`Notify::wait`] still reports them.
    pub(super) fn is_to_end(&self, limit: Duration) -> bool {
        let mut fds = [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        self.is_ended_after(&mut fds, limit)
    }

    /// Waits at most `limit` until one of `fds` is ready, and returns whether a signal arrived.
    fn is_ended_after(&self, fds: &mut [PollFd<'_>], limit: Duration) -> bool {
        let timeout = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
        let _ = poll(fds, timeout);
        matches!(self.signals.read_signal(), Ok(Some(_)))
    }

    fn once(&self, limit: Duration) -> Wake {
        let mut fds = [
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.inotify.as_fd(), PollFlags::POLLIN),
        ];
        if self.is_ended_after(&mut fds, limit) {
            return Wake::End;
        }
        // An event about the manifest's folder is no change, because taking and releasing the lock
        // of the installation may create and remove this folder.
        let counts = |event: &InotifyEvent| event.name.as_ref().is_none_or(|name| name != FOLDER);
        match self.inotify.read_events() {
            Ok(events) if events.iter().any(counts) => Wake::Changed,
            _ => Wake::Quiet,
        }
    }

    /// Watches the directories that exist. Returns whether one of them was not watched before.
    fn watch(&mut self) -> Result<bool, SetupError> {
        let mut is_new = false;
        for dir in &self.dirs {
            match self.inotify.add_watch(dir.as_path() as &Path, CHANGES) {
                Ok(watch) => is_new |= self.watched.insert(watch),
                Err(nix::Error::ENOENT) => {}
                Err(cause) => return Err(not_watched(dir, cause)),
            }
        }
        Ok(is_new)
    }
}

/// Blocks SIGTERM and SIGINT in this thread, and returns both signals. A [`Notify`] then reads a
/// signal even if the signal arrived before the `Notify` was created. Without the block, the
/// kernel would kill this process, or discard the signal if this process is the first of its
/// container.
///
/// # Errors
/// [`SetupError::Watch`] when the signals cannot be blocked. The error names `dir`, which the
/// caller is about to watch.
pub(super) fn block_signals(dir: &Path) -> Result<SigSet, SetupError> {
    let ends = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT]);
    let blocked = ends.thread_block();
    blocked.map_err(|cause| not_watched(dir, cause))?;
    Ok(ends)
}

fn not_watched(dir: &Path, cause: nix::Error) -> SetupError {
    SetupError::Watch(dir.to_owned(), cause.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::HostPaths;
    use crate::setup::install_lock::InstallLock;

    #[test]
    fn a_change_in_a_recreated_directory_ends_the_wait() {
        let dir = tempfile::tempdir().unwrap();
        let watched = dir.path().join("net.d");
        std::fs::create_dir(&watched).unwrap();
        let mut notify = Notify::new(vec![watched.clone()]).unwrap();
        assert_eq!(notify.wait(Duration::from_millis(10)), Wake::Quiet);
        std::fs::write(watched.join("a"), "x").unwrap();
        assert_eq!(notify.wait(Duration::from_secs(10)), Wake::Changed);
        std::fs::remove_dir_all(&watched).unwrap();
        assert_eq!(notify.wait(Duration::from_secs(10)), Wake::Changed);
        std::fs::create_dir(&watched).unwrap();
        std::fs::write(watched.join("a"), "x").unwrap();
        assert_eq!(notify.wait(Duration::from_secs(10)), Wake::Changed);
        assert_eq!(notify.wait(Duration::from_millis(10)), Wake::Quiet);
        std::fs::write(watched.join("a"), "y").unwrap();
        assert_eq!(notify.wait(Duration::from_secs(10)), Wake::Changed);
    }

    #[test]
    fn taking_the_installation_lock_does_not_end_the_wait() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_owned();
        let mut notify = Notify::new(vec![path.clone()]).unwrap();
        let paths = HostPaths {
            host_root: "/".into(),
            conf_dir: path.clone(),
            cluster_conf_dir: path.clone(),
            bin_dir: path.clone(),
        };
        drop(InstallLock::take(&paths).unwrap());
        assert!(!path.join(FOLDER).exists());
        assert_eq!(notify.wait(Duration::from_millis(10)), Wake::Quiet);
        std::fs::write(path.join("a"), "x").unwrap();
        drop(InstallLock::take(&paths).unwrap());
        assert_eq!(notify.wait(Duration::from_millis(10)), Wake::Changed);
    }
}
