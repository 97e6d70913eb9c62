//! Tracks how long the agent has not answered. A call lives for milliseconds only, so the times are
//! those of files beside the locks.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::fcntl::OFlag;

use super::Host;
use crate::private_dir;
use crate::request::{NodeConfig, Source};

/// A file whose date is the start of the absence; it exists while the agent does not answer.
const SILENT: &str = "agent-silent";
/// A file whose date is the last answer of the agent; it exists if `statusNeedsAgent` is set.
const ANSWERED: &str = "agent-answered";

/// Records after a call whether the agent answered it. Returns how long the agent had been absent
/// if this call is the first that it answers again.
pub fn keep(host: &Host<'_>, config: &NodeConfig) -> Option<Duration> {
    let answers = host.stopwatch.agent_answers()?;
    let silent = Dated::of(host, config, SILENT)?;
    let age = silent.age();
    match age {
        Some(_) if answers && silent.remove() => age,
        None if !answers => {
            // Without the file this absence is not counted.
            let _ = silent.date_now();
            None
        }
        _ => None,
    }
}

/// The file with the date of the last answer; `None` if a folder is the cluster.
pub(super) fn last_answer(host: &Host<'_>, config: &NodeConfig) -> Option<Dated> {
    Dated::of(host, config, ANSWERED)
}

/// Removes the files from the directory above the locks, once there are no more calls.
pub fn forget(run: &Path) {
    for entry in fs::read_dir(run).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(SILENT) || name.starts_with(ANSWERED) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A file whose modification time is the time of an event.
#[derive(Debug)]
pub(super) struct Dated(PathBuf);

impl Dated {
    /// The file for the configured agent socket: two installations may have an agent each.
    fn of(host: &Host<'_>, config: &NodeConfig, name: &str) -> Option<Dated> {
        let Source::Cluster { agent_socket, .. } = &config.source else {
            return None;
        };
        let socket = crc32fast::hash(agent_socket.as_os_str().as_bytes());
        let name = format!("{name}-{socket:08x}");
        Some(Dated(host.lock_dir.with_file_name(name)))
    }

    /// Sets the date to now and creates the file if needed. Follows no symlink, does not block and
    /// truncates nothing, whatever has the name.
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
        file.set_modified(SystemTime::now())
    }

    /// The age of the date; `None` if the file is missing or its date is in the future.
    pub(super) fn age(&self) -> Option<Duration> {
        let dated = fs::symlink_metadata(&self.0).and_then(|found| found.modified());
        SystemTime::now().duration_since(dated.ok()?).ok()
    }

    /// Removes the file and returns whether it did: only one of several calls removes it.
    fn remove(&self) -> bool {
        fs::remove_file(&self.0).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_date_is_written_and_no_other_file_is_touched_under_its_name() {
        let base = tempfile::tempdir().unwrap();
        let dated = Dated(base.path().join("run/agent-silent"));
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
        assert!(dated.remove() && !dated.remove(), "one call removes it");

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
    fn a_fifo_under_the_files_name_does_not_block() {
        let base = tempfile::tempdir().unwrap();
        let dated = Dated(base.path().join("agent-silent"));
        nix::unistd::mkfifo(&dated.0, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(dated.date_now().is_err());
    }
}
