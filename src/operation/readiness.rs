//! STATUS: could an ADD be served now (CNI 1.1.0 §2 STATUS)?
//!
//! Everything that every ADD needs is looked at, in the order of an ADD; the first thing that is
//! missing is the answer.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use nix::fcntl::OFlag;

use super::{Context, Failure, indicator, networks, owed};
use crate::delegate::Ran;
use crate::kernel::capabilities;
use crate::private_dir;
use crate::request::Source;

/// How long the agent may be away, as it is during its upgrade, before the node counts as not
/// ready: pods that need it wait.
const AGENT_MAY_BE_AWAY: Duration = Duration::from_secs(60);

/// What STATUS found.
#[derive(Debug)]
pub struct Ready {
    /// The cluster network.
    pub network: String,
    /// Whether its plugins were asked; older versions have no STATUS.
    pub asked: Ran,
}

/// Looks whether an ADD would work now.
///
/// # Errors
/// [`Failure::NotAvailable`]: code 50, or what a plugin of the cluster network says (11, 50, 51).
pub fn status(context: &Context<'_>) -> Result<Ready, Failure> {
    owed::try_one(context, None);
    look(context).map_err(|cause| Failure::NotAvailable(Box::new(cause)))
}

fn look(context: &Context<'_>) -> Result<Ready, Failure> {
    let node = &context.request.node;
    capabilities::require()?;
    context.node.journal.make_ready()?;
    indicator::is_there(node.readiness_indicator.as_deref())?;
    cluster_answers(context)?;
    let network = networks::administrators(context)?.cluster?;
    network.check_programs(context)?;
    let asked = network.status(context)?;
    Ok(Ready {
        network: network.label,
        asked,
    })
}

/// Whether the cluster answers, or did a short while ago.
fn cluster_answers(context: &Context<'_>) -> Result<(), Failure> {
    let answered = context.node.cluster.ready(context.deadline);
    if matches!(context.request.node.source, Source::Folder(_)) {
        return Ok(answered?);
    }
    let seen = context.node.lock_dir.with_file_name("cluster-answered");
    match answered {
        Ok(()) => {
            // Without the marker the node is not ready a minute earlier.
            let _ = remember(&seen);
            Ok(())
        }
        Err(error) if error.is_transient() && is_recent(&seen) => {
            context.note(&format!("{error}; it answered within the last minute"));
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Dates the marker now. Nothing is followed, waited for or truncated, whatever has its name.
fn remember(seen: &Path) -> io::Result<()> {
    if let Some(dir) = seen.parent() {
        private_dir::create(dir)?;
        private_dir::check(dir)?;
    }
    let marker = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
        .open(seen)?;
    marker.set_modified(SystemTime::now())
}

fn is_recent(seen: &Path) -> bool {
    let changed = fs::symlink_metadata(seen).and_then(|metadata| metadata.modified());
    changed
        .ok()
        .and_then(|changed| SystemTime::now().duration_since(changed).ok())
        .is_some_and(|age| age < AGENT_MAY_BE_AWAY)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_marker_is_dated_and_no_other_file_is_touched_under_its_name() {
        let base = tempfile::tempdir().unwrap();
        let seen = base.path().join("run/cluster-answered");
        assert!(!is_recent(&seen));
        remember(&seen).unwrap();
        assert!(is_recent(&seen));
        let old = SystemTime::now() - 2 * AGENT_MAY_BE_AWAY;
        OpenOptions::new()
            .write(true)
            .open(&seen)
            .and_then(|marker| marker.set_modified(old))
            .unwrap();
        assert!(!is_recent(&seen));
        remember(&seen).unwrap();
        assert!(is_recent(&seen));

        fs::remove_file(&seen).unwrap();
        let precious = base.path().join("precious");
        fs::write(&precious, "17 bytes of text.").unwrap();
        symlink(&precious, &seen).unwrap();
        assert!(remember(&seen).is_err());
        assert_eq!(fs::read(&precious).unwrap().len(), 17);
        let absent = base.path().join("absent");
        fs::remove_file(&seen).unwrap();
        symlink(&absent, &seen).unwrap();
        assert!(remember(&seen).is_err() && !absent.exists());
    }

    #[test]
    fn a_fifo_under_the_markers_name_does_not_block() {
        let base = tempfile::tempdir().unwrap();
        let seen = base.path().join("cluster-answered");
        nix::unistd::mkfifo(&seen, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(remember(&seen).is_err());
    }
}
