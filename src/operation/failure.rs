//! The failures of the CNI verbs (ADD, DEL and so on).

mod answer;

use std::fmt::Display;
use std::io;
use std::path::PathBuf;

use super::devices::{InfoFileError, RestoreError};
use crate::cluster::ClusterError;
use crate::cni::{self, ContainerId};
use crate::delegate::{ChainError, ChainErrors, DepthError};
use crate::journal::{JournalError, Key, LockError};
use crate::kernel::{KernelError, NetnsError};
use crate::npwg::ObjectRefError;
use crate::plan::{Attachment, NetworkPlace, PlanError};
use crate::request::{EnvironmentError, RequestError};
use crate::verify::Finding;

/// A failure of a verb. Its `Display` is the message for the runtime, in one line.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Jackfield runs as a delegate of another Jackfield, or the environment variable that counts
    /// nested calls is invalid.
    #[error(transparent)]
    Depth(#[from] DepthError),
    /// Jackfield cannot identify the file of its own program. Without this identity, Jackfield
    /// could call itself as a delegate.
    #[error("/proc/self/exe: {0}; mount /proc")]
    Ourselves(#[source] io::Error),
    /// The environment variables or the configuration of the call are invalid.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The namespace or the name of the pod in `CNI_ARGS` is not valid.
    #[error("CNI_ARGS: pod {0}")]
    PodName(#[source] ObjectRefError),
    /// `runtimeConfig` is not valid.
    #[error("runtimeConfig: {0}; the runtime must pass an object")]
    RuntimeConfig(#[source] cni::JsonError),
    /// `prevResult` is not a valid result.
    #[error("prevResult: {0}; the runtime must pass the result of the previous plugin")]
    PrevResult(#[source] cni::ResultError),
    /// The network namespace cannot be used.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// The network namespace is the one that Jackfield itself runs in.
    #[error(
        "CNI_NETNS {} is the network namespace that the plugin runs in; \
         pass the pod's namespace, or set CNI_NETNS_OVERRIDE=1",
        .0.display()
    )]
    OwnNetns(PathBuf),
    /// The cluster network is not ready.
    #[error("the cluster network is not ready: {} does not exist; try again later", .0.display())]
    NotReady(PathBuf),
    /// The cluster did not answer, or Jackfield could not publish a status or an event.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The UID of the pod in the cluster differs from the UID in the call.
    #[error(
        "pod {pod}: the runtime passed UID {asked}, but the pod in the cluster has UID {known}; \
         wait for the pod to be recreated"
    )]
    OtherPod {
        /// Namespace and name.
        pod: String,
        /// The UID that the runtime passed as `K8S_POD_UID`.
        asked: String,
        /// The UID in the cluster.
        known: String,
    },
    /// The node configuration does not let running pods of this namespace change their networks.
    #[error(
        "the node configuration denies changes of running pods in namespace {0}; recreate the pod, \
         or set dynamicAttachment to true"
    )]
    ChangesDenied(String),
    /// A network, a device or a request of the pod cannot be used. Jackfield usually finds this out
    /// before it runs the first delegate.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Another process holds a lock that the verb needs, or the lock cannot be used.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The sandbox is attached already.
    #[error(
        "container {}, interface {} is attached already; the runtime must send DEL first",
        .0.container, .0.ifname
    )]
    AlreadyAttached(Key),
    /// The runtime called CHECK for a sandbox that neither the journal nor Multus' cache nor
    /// `prevResult` shows as attached.
    #[error("container {}, interface {} is not on record; ADD it first", .0.container, .0.ifname)]
    NotOnRecord(Key),
    /// The runtime called CHECK for a sandbox whose record was damaged.
    #[error(
        "container {0}: its record was damaged, so its attachments are unknown; \
         delete the pod, so that DEL detaches as much as possible"
    )]
    RecordLost(ContainerId),
    /// The runtime called CHECK for a sandbox whose ADD was interrupted.
    #[error("container {0}: its ADD was interrupted; DEL it and ADD it again")]
    Incomplete(ContainerId),
    /// A plugin failed on ADD, CHECK or STATUS.
    #[error("{0}: {1}")]
    Delegate(NetworkPlace, Box<ChainError>),
    /// Plugins failed on DEL or GC.
    #[error("{0}: {1}")]
    Delegates(NetworkPlace, ChainErrors),
    /// The arguments that the pod requests cannot be written as `CNI_ARGS`.
    #[error(transparent)]
    Args(cni::ArgsError),
    /// The result cannot be expressed in the `cniVersion` of the node configuration.
    #[error("result of the cluster network: {0}")]
    Result(#[from] cni::ResultError),
    /// The attachment that the kernel shows differs from the pod's request or from the delegate's
    /// result.
    #[error("{0}: {findings}", findings = joined(.1, ", "))]
    Verification(NetworkPlace, Vec<Finding>),
    /// Jackfield cannot publish the device-info of an attachment: its device-info file cannot be
    /// read, or the content is wrong. Jackfield writes this file before the plugins run, and the
    /// plugins may change it.
    #[error("{0}: {1}")]
    DeviceInfo(NetworkPlace, #[source] InfoFileError),
    /// Jackfield cannot write or remove the device-info file of an attachment.
    #[error("{0}: {1}")]
    DeviceFile(NetworkPlace, #[source] Box<device_info::StoreError>),
    /// A device could not be restored.
    #[error("{device}: {what} could not be restored: {cause}")]
    Restoring {
        /// The device.
        device: String,
        /// The setting that could not be restored.
        what: String,
        /// The reason.
        #[source]
        cause: RestoreError,
    },
    /// The kernel refused the gateway of a default route.
    #[error("{0}: default-route {1}: {2}; name a gateway within reach of the interface")]
    Gateway(NetworkPlace, String, #[source] Box<KernelError>),
    /// CHECK did not find a default route that ADD had added, or found one that ADD had removed.
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
    /// A request to the kernel failed.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The list of attachments that GC must keep cannot be read.
    #[error("{0}; GC collects nothing")]
    ValidAttachments(#[source] cni::JsonError),
    /// STATUS found a reason why no ADD could succeed.
    #[error("{0}")]
    NotAvailable(Box<Failure>),
    /// Several independent steps failed.
    #[error("{}", joined(.0, "; also "))]
    Several(Vec<Failure>),
    /// A part of the sandbox may still be attached, or a device is not restored. Jackfield will
    /// retry the detachment.
    #[error("{}", teardown(.0))]
    Owed(Vec<Failure>),
    /// A call failed, and the clean-up after this failure failed too.
    #[error("{cause} (and then: {})", after(.cause, .cleanup))]
    Unwinding {
        /// The first failure.
        cause: Box<Failure>,
        /// The failure of the clean-up.
        cleanup: Box<Failure>,
    },
}

impl From<EnvironmentError> for Failure {
    fn from(error: EnvironmentError) -> Self {
        Failure::Request(RequestError::Environment(error))
    }
}

impl Failure {
    /// Creates the failure of a plugin of `attachment`.
    pub fn delegate(attachment: &Attachment, cause: ChainError) -> Failure {
        Failure::Delegate(attachment.place(), Box::new(cause))
    }

    /// Adds the failure of the clean-up to this failure, if the clean-up failed too.
    pub(super) fn after_cleanup(self, cleanup: Result<(), impl Into<Failure>>) -> Failure {
        match cleanup {
            Ok(()) => self,
            Err(cleanup) => Failure::Unwinding {
                cause: Box::new(self),
                cleanup: Box::new(cleanup.into()),
            },
        }
    }

    /// Combines the failures of independent steps into one failure.
    ///
    /// # Errors
    /// Returns this failure if `causes` is not empty.
    pub fn of(mut causes: Vec<Failure>) -> Result<(), Failure> {
        match causes.len() {
            0 => Ok(()),
            1 => Err(causes.remove(0)),
            _ => Err(Failure::Several(causes)),
        }
    }

    /// Formats this failure for a message that already contains `first`. If a plugin returned the
    /// same error as in `first`, the text does not repeat the error.
    fn beside(&self, first: &ChainError) -> String {
        let Failure::Delegates(place, causes) = self else {
            return self.to_string();
        };
        let answer = first.cause.delegate_error();
        let words = causes
            .iter()
            .map(|error| match error.cause.delegate_error() {
                said @ Some(_) if said == answer => {
                    format!("plugin {}: {}: the same error", error.plugin, error.verb)
                }
                _ => error.to_string(),
            });
        format!("{place}: {}", words.collect::<Vec<_>>().join("; also "))
    }
}

/// Formats the failure of a clean-up after `first`. A plugin that refuses its configuration on ADD
/// usually returns the same error on DEL. The text does not repeat that error.
fn after(first: &Failure, cleanup: &Failure) -> String {
    match (first, cleanup) {
        (Failure::Delegate(_, cause), Failure::Owed(debts)) => {
            let debts = debts.iter().map(|debt| debt.beside(cause));
            teardown(&debts.collect::<Vec<_>>())
        }
        _ => cleanup.to_string(),
    }
}

fn teardown(debts: &[impl Display]) -> String {
    format!("teardown incomplete, still owed: {}", joined(debts, ", "))
}

fn joined(all: &[impl Display], separator: &str) -> String {
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    all.join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cni::Verb;
    use crate::delegate::DelegateError;

    fn refused(verb: Verb, words: &str) -> ChainError {
        ChainError {
            plugin: "macvlan".parse().unwrap(),
            index: 0,
            verb,
            interface: None,
            cause: DelegateError::Refused(cni::Error::new(7, words.to_owned())),
        }
    }

    fn rolled_back(on_del: &str) -> String {
        let network = Attachment::for_tests(r#"{"cniVersion":"1.0.0","type":"macvlan"}"#);
        let debts = ChainErrors::of([refused(Verb::Del, on_del)].into_iter());
        let cleanup = Failure::Owed(vec![Failure::Delegates(
            network.place(),
            debts.unwrap_err(),
        )]);
        let failure = Failure::delegate(&network, refused(Verb::Add, "bad mode"));
        failure.after_cleanup(Err(cleanup)).to_string()
    }

    #[test]
    fn an_error_that_add_and_del_share_is_quoted_once() {
        let twice = rolled_back("bad mode");
        assert_eq!(twice.matches("bad mode").count(), 1, "{twice}");
        assert!(
            twice.contains("plugin macvlan: DEL: the same error"),
            "{twice}"
        );
        assert!(rolled_back("busy").contains("busy"));
    }
}
