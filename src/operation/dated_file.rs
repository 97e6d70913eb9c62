//! A file whose modification time records when something happened, such as the agent's last answer
//! to STATUS. Each call runs in a process of its own, so Jackfield keeps such times in files next
//! to the lock directory.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::OFlag;

use super::Host;
use crate::clock;
use crate::private_dir;
use crate::request::{NodeConfig, Source};

/// The start of the name of every dated file.
const PREFIX: &str = "agent-";

/// Removes all dated files from `run`, the parent of the lock directory, for `jackfield uninstall`.
pub fn forget(run: &Path) {
    for entry in fs::read_dir(run).into_iter().flatten().flatten() {
        if entry.file_name().as_bytes().starts_with(PREFIX.as_bytes()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A file whose modification time records when something happened.
#[derive(Debug)]
pub(super) struct DatedFile(PathBuf);

impl DatedFile {
    /// Returns the file for the configured agent socket. The file's name depends on the socket,
    /// because a node can have two installations, each with its own agent. Returns `None` if
    /// Jackfield reads manifests from a folder (`manifestDir`), because it then uses no agent.
    pub(super) fn of(host: &Host<'_>, config: &NodeConfig, name: &str) -> Option<DatedFile> {
        let Source::Cluster { agent_socket, .. } = &config.source else {
            return None;
        };
        let socket = crc32fast::hash(agent_socket.as_os_str().as_bytes());
        let name = format!("{PREFIX}{name}-{socket:08x}");
        Some(DatedFile(host.lock_dir.with_file_name(name)))
    }

    /// Sets the modification time to now, and creates the file if it is missing. Does not follow a
    /// symlink, block on a FIFO or truncate the file.
    pub(super) fn date_now(&self) -> io::Result<()> {
        if let Some(dir) = self.0.parent() {
            private_dir::create(dir)?;
            private_dir::check(dir)?;
        }
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
            .open(&self.0)?;
        file.set_modified(clock::time_of_day())
    }

    /// Returns the time since the modification time. Returns `None` if the file cannot be examined,
    /// or if its modification time is in the future.
    pub(super) fn age(&self) -> Option<Duration> {
        let dated = fs::symlink_metadata(&self.0).and_then(|found| found.modified());
        clock::time_of_day().duration_since(dated.ok()?).ok()
    }

    /// Removes the file and returns whether this call removed it. If several calls try at the same
    /// time, only one call removes the file.
    pub(super) fn remove(&self) -> bool {
        fs::remove_file(&self.0).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use std::time::SystemTime;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_date_is_written_but_never_through_a_symlink() {
        let base = tempfile::tempdir().unwrap();
        let dated = DatedFile(base.path().join("run/agent-silent"));
        assert_eq!(dated.age(), None);
        dated.date_now().unwrap();
        assert!(dated.age().unwrap() < MINUTE);
        let old = SystemTime::now() - 2 * MINUTE;
        OpenOptions::new()
            .write(true)
            .open(&dated.0)
            .and_then(|file| file.set_modified(old))
            .unwrap();
        assert!(dated.age().unwrap() > MINUTE);
        dated.date_now().unwrap();
        assert!(dated.age().unwrap() < MINUTE);
        assert!(
            dated.remove() && !dated.remove(),
            "the file is removed once"
        );

        let precious = base.path().join("precious");
        fs::write(&precious, "17 bytes of text.").unwrap();
        symlink(&precious, &dated.0).unwrap();
        assert!(dated.date_now().is_err());
        assert_eq!(fs::read(&precious).unwrap().len(), 17);
        let absent = base.path().join("absent");
        fs::remove_file(&dated.0).unwrap();
        symlink(&absent, &dated.0).unwrap();
        assert!(dated.date_now().is_err() && !absent.exists());
    }

    #[test]
    fn a_fifo_in_place_of_the_file_does_not_block() {
        let base = tempfile::tempdir().unwrap();
        let dated = DatedFile(base.path().join("agent-silent"));
        nix::unistd::mkfifo(&dated.0, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(dated.date_now().is_err());
    }
}
