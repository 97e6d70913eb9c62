//! Why a verb failed, in the one line that people read.

mod answer;

use crate::cluster::ClusterError;
use crate::cni;
use crate::delegate::{ChainError, ChainErrors, DepthError};
use crate::journal::{JournalError, LockError};
use crate::kernel::{KernelError, NetnsError};
use crate::plan::{Attachment, NetworkPlace, PlanError};
use crate::request::{EnvironmentError, RequestError};
use crate::verify::Finding;

/// A verb that failed. Its `Display` is the one line that the runtime gets.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Somebody delegates in a circle.
    #[error(transparent)]
    Depth(#[from] DepthError),
    /// Our own program cannot be told from others.
    #[error("/proc/self/exe: {0}; mount /proc")]
    Ourselves(String),
    /// The call could not be understood.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The pod that CNI_ARGS name cannot be one.
    #[error("CNI_ARGS: pod {0}")]
    PodName(#[source] crate::npwg::ObjectRefError),
    /// `runtimeConfig` is wrong.
    #[error("runtimeConfig: {0}; the runtime must hand over an object")]
    RuntimeConfig(#[source] cni::JsonError),
    /// `prevResult` is none.
    #[error("prevResult: {0}; the runtime must hand over the result of the plugin before")]
    PrevResult(#[source] cni::ResultError),
    /// The netns cannot be used.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// The netns is the one that we run in.
    #[error(
        "CNI_NETNS {0} is the network namespace that the plugin runs in; \
         name the pod's own, or set CNI_NETNS_OVERRIDE=1"
    )]
    OwnNetns(String),
    /// The cluster network is not ready.
    #[error("the cluster network is not ready: {0} does not exist; try again later")]
    NotReady(String),
    /// The cluster did not answer.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The runtime means another pod of the same name.
    #[error(
        "pod {pod}: the runtime has UID {asked}, the cluster {known}; wait for the pod to be recreated"
    )]
    OtherPod {
        /// Namespace and name.
        pod: String,
        /// K8S_POD_UID.
        asked: String,
        /// The cluster's.
        known: String,
    },
    /// A rule that is checked before anything runs.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Somebody else works on the sandbox.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The journal could not be written in the middle of an ADD.
    #[error("journal: a step cannot be written: {0}; free space below journalDir")]
    JournalStep(String),
    /// The same sandbox is attached already.
    #[error(
        "container {container}, interface {ifname} is attached already; the runtime must send DEL first"
    )]
    AlreadyAttached {
        /// Its container ID.
        container: String,
        /// Its interface.
        ifname: String,
    },
    /// CHECK of something never attached here.
    #[error("container {container}, interface {ifname} is not on record; ADD it first")]
    NotOnRecord {
        /// Its container ID.
        container: String,
        /// Its interface.
        ifname: String,
    },
    /// CHECK of something whose record was damaged.
    #[error(
        "container {container}: what it has is not on record any more, since the record was damaged; \
         delete the pod, whose DEL detaches what can be known"
    )]
    RecordLost {
        /// Its container ID.
        container: String,
    },
    /// CHECK of something whose ADD never came to its end.
    #[error("container {container}: its ADD was interrupted; DEL it and ADD it again")]
    Incomplete {
        /// Its container ID.
        container: String,
    },
    /// A plugin failed.
    #[error("{place}: {cause}")]
    Delegate {
        /// The network.
        place: NetworkPlace,
        /// The plugin's own words.
        cause: Box<ChainError>,
    },
    /// Plugins failed while their network was detached.
    #[error("{place}: {causes}")]
    Delegates {
        /// The network.
        place: NetworkPlace,
        /// The plugins' own words.
        causes: ChainErrors,
    },
    /// What the pod asked for cannot be written as CNI_ARGS.
    #[error(transparent)]
    Args(crate::cni::ArgsError),
    /// The result cannot be said in the version that the runtime speaks.
    #[error("result of the cluster network: {0} in the node configuration")]
    Result(#[from] crate::cni::ResultError),
    /// The kernel does not show what was asked for.
    #[error("{place}: {}", lines(findings))]
    Verification {
        /// The network.
        place: NetworkPlace,
        /// What differs.
        findings: Vec<Finding>,
    },
    /// What is told of a device is not so.
    #[error("{place}: {cause}")]
    DeviceInfo {
        /// The network.
        place: NetworkPlace,
        /// What, and the remedy.
        cause: String,
    },
    /// The file of a device cannot be written or removed.
    #[error("{place}: {cause}")]
    DeviceFile {
        /// The network.
        place: NetworkPlace,
        /// What, and the remedy.
        cause: String,
    },
    /// A device could not be put back as it was.
    #[error("{device}: {what} could not be put back: {cause}")]
    Restoring {
        /// The device.
        device: String,
        /// What of it.
        what: String,
        /// Why, and the remedy.
        cause: String,
    },
    /// A gateway was refused.
    #[error("{place}: default-route {route}: {cause}; name a gateway in reach of the interface")]
    Gateway {
        /// The network.
        place: NetworkPlace,
        /// The route.
        route: String,
        /// The kernel's reason.
        cause: String,
    },
    /// A default route is not as the attachment made it.
    #[error(
        "{place}: default-route {route} {problem}; find out who changed it, or recreate the pod"
    )]
    Route {
        /// The network.
        place: NetworkPlace,
        /// The route.
        route: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// The kernel did not answer.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The attachments that GC is to keep cannot be read.
    #[error("{0}; nothing is collected")]
    ValidAttachments(#[source] cni::JsonError),
    /// STATUS found something without which no ADD would work.
    #[error("{0}")]
    NotAvailable(Box<Failure>),
    /// Several things failed, none of which kept the others from being tried.
    #[error("{}", listed(.0, "; also "))]
    Several(Vec<Failure>),
    /// Something is still attached.
    #[error("teardown incomplete, still owed: {}", listed(.0, ", "))]
    Owed(Vec<Failure>),
    /// A failure, and the clean-up after it failed too.
    #[error("{cause} (and then: {})", without_words_of(.cause, .cleanup))]
    Unwinding {
        /// What failed first.
        cause: Box<Failure>,
        /// What failed when it was to be taken back.
        cleanup: Box<Failure>,
    },
}

impl From<EnvironmentError> for Failure {
    fn from(error: EnvironmentError) -> Self {
        Failure::Request(RequestError::Environment(error))
    }
}

impl Failure {
    /// A plugin of `attachment` failed.
    pub fn delegate(attachment: &Attachment, cause: ChainError) -> Failure {
        Failure::Delegate {
            place: attachment.place(),
            cause: Box::new(cause),
        }
    }

    /// One failure out of those that kept nothing from being tried, if there are any.
    ///
    /// # Errors
    /// The failure.
    pub fn of(mut causes: Vec<Failure>) -> Result<(), Failure> {
        match causes.len() {
            0 => Ok(()),
            1 => Err(causes.remove(0)),
            _ => Err(Failure::Several(causes)),
        }
    }
}

/// What failed second; a plugin that is content with its configuration neither on ADD nor on DEL
/// says so twice.
fn without_words_of(first: &Failure, second: &Failure) -> String {
    let second = second.to_string();
    match first {
        Failure::Delegate { cause, .. } => second.replace(&cause.words(), "the same"),
        _ => second,
    }
}

fn listed(failures: &[Failure], between: &str) -> String {
    let lines: Vec<String> = failures.iter().map(ToString::to_string).collect();
    lines.join(between)
}

fn lines(findings: &[Finding]) -> String {
    findings
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
