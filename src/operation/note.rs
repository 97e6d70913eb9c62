//! Notes of a call: lines that go to stderr and the log in addition to the outcome of the call.

use std::io;
use std::sync::Arc;

use super::Failure;
use super::devices::FunctionError;
use crate::cluster::ClusterError;
use crate::cni::ContainerId;
use crate::delegate::ChainError;
use crate::diagnostic::SharedError;
use crate::journal::multus_cache::CacheDamage;
use crate::journal::{LockError, PutAside};
use crate::plan::NetworkPlace;

/// A note of a call. Its `Display` is one line.
#[derive(Debug, thiserror::Error)]
pub enum Note {
    /// The message of a warning event for the pod.
    #[error("{0}")]
    Event(String),
    /// A plugin returned an error on CHECK, because it does not implement CHECK.
    #[error("{0}: {1}")]
    NoCheck(NetworkPlace, Box<ChainError>),
    /// A failure that does not end the call. For example, Jackfield could not create an event, or
    /// CHECK found a wrong default route and the configuration has `"verify": "warn"`.
    #[error("{0}")]
    Tolerated(Failure),
    /// The record of the sandbox was damaged, and DEL detaches what it can find without the record.
    #[error("container {0}: {1}; this DEL detaches what it can find without the record")]
    DelOfDamagedRecord(ContainerId, #[source] SharedError),
    /// A record is damaged.
    #[error(
        "{0}; the sandbox of this record may still be attached: delete the pod, so that DEL \
         detaches as much as possible"
    )]
    DamagedRecord(#[source] SharedError),
    /// Jackfield could not detach a sandbox that has no record. The DEL succeeds all the same,
    /// because there is no sign that the sandbox was attached.
    #[error("nothing is on record, and detaching without a record failed: {0}")]
    NotOnRecord(Failure),
    /// An entry of Multus' cache cannot be read.
    #[error("cache of Multus: {0}")]
    MultusCache(#[source] CacheDamage),
    /// The agent does not answer. STATUS succeeds without the agent.
    #[error("{0}; pods that need the agent must wait")]
    AgentAway(ClusterError),
    /// The agent does not answer this STATUS, but answered another STATUS within the last minute.
    #[error("{0}; STATUS tolerates this, because the agent answered less than a minute ago")]
    AgentAwayBriefly(ClusterError),
    /// The state of a physical function cannot be read.
    #[error("{0}; the settings of its VFs cannot be restored")]
    UnknownFunction(Arc<FunctionError>),
    /// A device, or a setting of a device, is not restored. The text contains the device and the
    /// reason.
    #[error("{0}")]
    Device(String),
    /// The delegates refused DEL with the recorded configuration and accepted DEL with the current
    /// one.
    #[error(
        "{0}: the plugins refused DEL with the recorded configuration, and accepted it with the \
         network's current configuration"
    )]
    DetachedByCurrentConfiguration(NetworkPlace),
    /// The ADD failed, and the delegates refused DEL for so long that Jackfield gave up the
    /// detachment.
    #[error(
        "{0}; Jackfield gives up the detachment, because the ADD failed and the plugins keep \
         refusing DEL; if the IPAM plugin assigned an address, free it by hand"
    )]
    GivenUp(Failure),
    /// A retried DEL succeeded.
    #[error("container {0}: the retry of its detachment succeeded")]
    OwedDone(ContainerId),
    /// A retried DEL failed again.
    #[error("container {0}: the retry of its detachment failed: {1}")]
    OwedAgain(ContainerId, Failure),
    /// The process that retries a failed DEL cannot be started.
    #[error("container {0}: cannot start the retry of its detachment: {1}")]
    NoRetry(ContainerId, io::Error),
    /// The process that changes the networks of a running pod cannot be started.
    #[error("container {0}: cannot start the change of its networks: {1}")]
    NoWorker(ContainerId, io::Error),
    /// The runtime called GC without a list of valid attachments.
    #[error("the runtime passes no list of valid attachments, so GC collects nothing")]
    NoValidAttachments,
    /// GC had no time to detach this number of sandboxes.
    #[error("GC had no time for {0} containers; the next GC continues with them")]
    GcOutOfTime(usize),
    /// Jackfield does not call GC of any plugin, because the attachments of a live container are
    /// unknown.
    #[error(
        "container {0} is attached and not on record, so Jackfield does not call GC of any plugin: \
         a plugin might free the resources of that container"
    )]
    UnrecordedContainer(ContainerId),
    /// Jackfield does not call GC of any plugin, because the networks of running pods are being
    /// changed.
    #[error(
        "networks of running pods are being changed, so Jackfield does not call GC of any plugin: \
         a plugin might free the resources of a new attachment ({0})"
    )]
    ChangesUnderWay(LockError),
    /// GC skips some networks, because the configurations of all networks together exceed the size
    /// limit.
    #[error(
        "GC skips {left_out} networks, because the configurations of all networks together \
         exceed {limit} bytes; shorten the configurations"
    )]
    TooManyConfigurations {
        /// The number of networks that GC skips.
        left_out: usize,
        /// The limit in bytes.
        limit: usize,
    },
}

/// Returns one error for a damaged record. If the record was moved to quarantine, the error
/// contains the damage and the new path of the record. Otherwise the error is the reason why the
/// record could not be moved.
pub(super) fn damage(aside: PutAside) -> SharedError {
    aside.map_or_else(SharedError::new, SharedError::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_say_what_happened_and_what_to_do() {
        let container = || "c1".parse().unwrap();
        for (note, words) in [
            (
                Note::GivenUp(Failure::NotReady("/ready".into())),
                "gives up the detachment, because the ADD failed and the plugins keep refusing \
                 DEL; if the IPAM plugin assigned an address, free it by hand",
            ),
            (
                Note::DamagedRecord(SharedError::new(io::Error::other("/a"))),
                "/a; the sandbox of this record may still be attached: delete the pod",
            ),
            (
                Note::OwedDone(container()),
                "container c1: the retry of its detachment succeeded",
            ),
            (Note::GcOutOfTime(3), "no time for 3 containers"),
            (
                Note::UnrecordedContainer(container()),
                "container c1 is attached and not on record, so Jackfield does not call GC of any \
                 plugin: a plugin might free the resources",
            ),
            (
                Note::ChangesUnderWay(LockError::Busy {
                    path: "/locks/changes".into(),
                    holders: "process 7".to_owned(),
                }),
                "networks of running pods are being changed, so Jackfield does not call GC of any \
                 plugin: a plugin might free the resources",
            ),
        ] {
            let line = note.to_string();
            assert!(line.contains(words), "{line}");
        }
    }
}
