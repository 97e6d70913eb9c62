//! The verbs, each a short file that reads as the story it tells.
//!
//! ```text
//! add     prepare ▶ journal ▶ baseline ▶ for each: delegate ▶ verify ▶ routes ▶ publish
//! del     journal ▶ for each, last first: delegate ▶ restore ▶ forget
//! check   journal ▶ for each: delegate ▶ verify
//! gc      journal ▶ what the runtime no longer names: as del ▶ for each network: delegate
//! status  journal, cluster, programs ▶ delegates of the cluster network
//! ```
//!
//! They work through [`Host`]: the cluster, the delegates, the pod's links and the journal, each
//! behind its seam.

pub mod add;
pub mod agent_absence;
pub mod check;
pub mod default_route;
pub mod del;
mod delegates;
pub mod detach;
pub mod devices;
pub mod examine;
pub mod failure;
pub mod gc;
mod inquiry;
mod network_status;
mod networks;
pub mod note;
mod pod_facts;
pub mod prepare;
pub mod proof;
pub mod readiness_indicator;
pub mod recovery;
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

use crate::cluster::{Cluster, Phase};
use crate::cni::ContainerId;
use crate::delegate::{DelegateExec, Ours};
use crate::journal::{Journal, Key, Lock, LockError};
use crate::kernel::{DeviceLinks, KernelError, PodLinks, PodNetns};
use crate::request::Request;

/// Opens the seam to what the kernel shows of a pod.
pub type OpenLinks = dyn Fn(&PodNetns) -> Result<Box<dyn PodLinks>, KernelError>;

/// Opens the seam to the links of devices: on the host, or in the namespace of a pod.
pub type OpenDevices = dyn Fn(Option<&PodNetns>) -> Result<Box<dyn DeviceLinks>, KernelError>;

/// Begins a process that tries a detachment again ([`recovery::retry::retry`]), and does not wait for it.
pub type Retry = dyn Fn(&Context<'_>, &Key) -> io::Result<()>;

/// The node as the verbs see it: each part of it behind a seam.
pub struct Host<'a> {
    /// Who knows the pods.
    pub cluster: &'a dyn Cluster,
    /// Who runs plugins.
    pub exec: &'a dyn DelegateExec,
    /// Opens a pod's network namespace for looking and for routes.
    pub links: &'a OpenLinks,
    /// Opens the links of devices, for looking and for putting back.
    pub devices: &'a OpenDevices,
    /// Begins trying again what is owed.
    pub retry: &'a Retry,
    /// What is attached.
    pub journal: Journal,
    /// Where the sandboxes' locks are.
    pub lock_dir: PathBuf,
    /// Our own program, which is never a delegate.
    pub ours: Ours,
    /// What the call takes.
    pub stopwatch: &'a Stopwatch,
}

/// One call on its way: what was asked, and until when.
pub struct Context<'a> {
    /// The node.
    pub host: &'a Host<'a>,
    /// What the runtime asked.
    pub request: &'a Request,
    /// When the verb has to be done.
    pub deadline: Instant,
    notes: Rc<RefCell<Vec<Note>>>,
}

impl<'a> Context<'a> {
    /// A call that may take `limit` from now.
    pub fn new(host: &'a Host<'a>, request: &'a Request, limit: Duration) -> Context<'a> {
        Context {
            host,
            request,
            deadline: Instant::now() + limit,
            notes: Rc::default(),
        }
    }

    /// A part of this call that may take until `deadline`. Its notes are the call's.
    #[must_use]
    pub fn until(&self, deadline: Instant) -> Context<'a> {
        Context {
            host: self.host,
            request: self.request,
            deadline,
            notes: Rc::clone(&self.notes),
        }
    }

    /// Takes the lock of a sandbox, until the deadline.
    fn lock(&self, container: &ContainerId) -> Result<Lock, LockError> {
        let take = || Lock::take(&self.host.lock_dir, container, self.deadline);
        self.host.stopwatch.during(Phase::Lock, take)
    }

    /// Keeps a note of the call, whatever part of it finds it.
    pub fn note(&self, note: Note) {
        self.notes.borrow_mut().push(note);
    }

    /// Takes the notes of the call.
    pub fn notes(&self) -> Vec<Note> {
        self.notes.take()
    }

    /// Where plugins are looked for: `binDir`, then `CNI_PATH`.
    pub fn search_path(&self) -> Vec<PathBuf> {
        let bin_dir = self.request.config.bin_dir.clone();
        let mut dirs = vec![bin_dir];
        for dir in self.request.call.path_dirs() {
            if !dirs.contains(&dir) {
                dirs.push(dir);
            }
        }
        dirs
    }

    /// The same for delegates, which look for their IPAM plugins there.
    pub fn cni_path(&self) -> String {
        let dirs = self.search_path();
        let dirs: Vec<&str> = dirs.iter().filter_map(|dir| dir.to_str()).collect();
        dirs.join(":")
    }
}
