//! The CNI verbs, and the change of a running pod's networks. The steps of each are:
//!
//! ```text
//! add     prepare ▶ journal ▶ baseline ▶ for each: (delegate ▶ verify) ▶ routes ▶ publish
//! del     journal ▶ for each, last first: (delegate) ▶ restore ▶ forget
//! change  prepare ▶ journal ▶ for each removed: (delegate) ▶ restore ▶ for each new: (as add)
//! check   journal ▶ for each: (delegate ▶ verify)
//! gc      journal ▶ for each sandbox not listed as valid: (del) ▶ for each network: (delegate)
//! status  journal, cluster, programs ▶ delegates of the cluster network
//! ```
//!
//! The steps in parentheses after `for each` run once for each item. If a line does not name the
//! items, the items are attachments.
//!
//! The verbs access the cluster, the delegates, the links of pods and devices, and the journal
//! through [`Host`].

pub mod add;
pub mod agent_absence;
mod attach;
pub mod change;
pub mod check;
pub mod dated_file;
pub mod default_route;
pub mod del;
mod delegates;
pub mod detach;
pub mod devices;
pub mod examine;
pub mod failure;
pub mod gc;
mod inquiry;
pub mod journal_size;
mod network_status;
mod networks;
pub mod note;
mod pod_facts;
pub mod prepare;
pub mod proof;
pub mod readiness_indicator;
pub mod recovery;
#[cfg(test)]
mod simulation;
pub mod status;
pub mod stopwatch;

use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

pub use failure::Failure;
pub use note::Note;
pub use stopwatch::{Stopwatch, Timed};

use crate::clock;
use crate::cluster::{Cluster, ClusterError, Event, EventKind, Phase, PodName, Publication};
use crate::cni::{ContainerId, NetworkConfig};
use crate::delegate::{Binaries, DelegateExec, Ours};
use crate::journal::{Journal, Key, Lock, LockError};
use crate::kernel::{DeviceLinks, KernelError, PodLinks, PodNetns};
use crate::request::{EnvironmentError, Request};

/// Opens the links of a pod.
pub type OpenLinks = dyn Fn(&PodNetns) -> Result<Box<dyn PodLinks>, KernelError>;

/// Opens the links of devices in a network namespace, or on the host for `None`.
pub type OpenDevices = dyn Fn(Option<&PodNetns>) -> Result<Box<dyn DeviceLinks>, KernelError>;

/// Starts a process that works on the sandbox `Key` and outlives this call. Does not wait for the
/// process.
pub type StartWorker = dyn Fn(&Context<'_>, Work, &Key) -> io::Result<()>;

/// What a separate process does for a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Retries a failed detachment ([`recovery::retry::retry`]).
    Retry,
    /// Changes the networks of a running pod ([`change::change`]).
    Change,
}

/// The node as the verbs see it. Tests replace its parts.
pub struct Host<'a> {
    /// Finds pods and definitions, and publishes status and events.
    pub cluster: &'a dyn Cluster,
    /// Runs plugins.
    pub exec: &'a dyn DelegateExec,
    /// Opens a pod's network namespace, to read its links and to change its routes.
    pub links: &'a OpenLinks,
    /// Opens the links of devices, to read and to restore them.
    pub devices: &'a OpenDevices,
    /// Starts a process for a sandbox.
    pub start_worker: &'a StartWorker,
    /// The records of the attached sandboxes.
    pub journal: Journal,
    /// The directory of the containers' lock files.
    pub lock_dir: PathBuf,
    /// The program of this process, which must never run as a delegate.
    pub ours: Ours,
    /// Measures the call.
    pub stopwatch: &'a Stopwatch,
}

/// One call in progress.
pub struct Context<'a> {
    /// The node that the call runs on.
    pub host: &'a Host<'a>,
    /// The request of the runtime.
    pub request: &'a Request,
    /// The time by which the verb must finish.
    pub deadline: Instant,
    notes: Rc<RefCell<Vec<Note>>>,
}

impl<'a> Context<'a> {
    /// Creates the context of a call that must finish within `limit` from now.
    pub fn new(host: &'a Host<'a>, request: &'a Request, limit: Duration) -> Context<'a> {
        Context {
            host,
            request,
            deadline: clock::now() + limit,
            notes: Rc::default(),
        }
    }

    /// Returns a context with its own `deadline` for a part of this call. Notes of that part become
    /// notes of the call.
    #[must_use]
    pub fn until(&self, deadline: Instant) -> Context<'a> {
        Context {
            host: self.host,
            request: self.request,
            deadline,
            notes: Rc::clone(&self.notes),
        }
    }

    /// The key of the sandbox that the call is about, from `CNI_CONTAINERID` and `CNI_IFNAME`.
    fn key(&self) -> Result<Key, EnvironmentError> {
        let (container, ifname) = self.request.call.attachment()?;
        Ok(Key { container, ifname })
    }

    /// The time until the deadline.
    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(clock::now())
    }

    /// Returns a context with an earlier deadline for a part of this call. Reserves 1/`share` of
    /// the remaining time for the rest of the call.
    fn sparing(&self, share: u32) -> Context<'a> {
        self.until(self.deadline - self.left() / share)
    }

    /// Takes the lock of a container. Waits for the lock until the deadline.
    fn lock(&self, container: &ContainerId) -> Result<Lock, LockError> {
        let take = || Lock::take(&self.host.lock_dir, container, self.deadline);
        self.host.stopwatch.during(Phase::Lock, take)
    }

    /// Adds a [`Note`], a line for stderr and the log.
    pub fn note(&self, note: Note) {
        self.notes.borrow_mut().push(note);
    }

    /// Adds the warnings among `events` to the notes, so that the log contains the warnings too.
    fn note_warnings<'e>(&self, events: impl IntoIterator<Item = &'e Event>) {
        for event in events {
            if event.kind == EventKind::Warning {
                self.note(Note::Event(event.message.clone()));
            }
        }
    }

    /// Publishes `events` of the pod, if there are any.
    fn tell(&self, pod: Option<&PodName>, events: Vec<Event>) -> Result<(), ClusterError> {
        let Some(pod) = pod.filter(|_| !events.is_empty()) else {
            return Ok(());
        };
        let publication = Publication::new(pod.clone(), None, events);
        self.host.cluster.publish(&publication, self.deadline)
    }

    /// Returns the notes of the call and clears them.
    pub fn notes(&self) -> Vec<Note> {
        self.notes.take()
    }

    /// The directories in which Jackfield looks for plugins: `binDir`, then those in `CNI_PATH`.
    pub fn search_path(&self) -> Vec<PathBuf> {
        let mut dirs = vec![self.request.config.bin_dir.clone()];
        for dir in self.request.call.path_dirs() {
            if !dirs.contains(&dir) {
                dirs.push(dir);
            }
        }
        dirs
    }

    /// Finds the programs of a network's plugins.
    fn programs(&self, config: &NetworkConfig) -> Binaries {
        Binaries::find(&self.search_path(), config, &self.host.ours)
    }

    /// Returns the [search path](Context::search_path) in the format of `CNI_PATH`. Delegates look
    /// for their IPAM plugins in these directories.
    pub fn cni_path(&self) -> String {
        let dirs = self.search_path();
        let dirs: Vec<&str> = dirs.iter().filter_map(|dir| dir.to_str()).collect();
        dirs.join(":")
    }
}
