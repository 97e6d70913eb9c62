//! Notes of a call: lines for stderr and the log in addition to its outcome.

use std::io;
use std::sync::Arc;

use super::Failure;
use super::devices::FunctionError;
use crate::cluster::ClusterError;
use crate::cni::ContainerId;
use crate::delegate::ChainError;
use crate::plan::NetworkPlace;

/// A note of a call. Its `Display` is one line.
#[derive(Debug, thiserror::Error)]
pub enum Note {
    /// The text of an event that the pod's owner gets too.
    #[error("{0}")]
    Event(String),
    /// A plugin without CHECK refuses it.
    #[error("{0}: {1}")]
    NoCheck(NetworkPlace, Box<ChainError>),
    /// A failure that does not fail the call: the network-status or an event could not be published,
    /// or CHECK found something for which `verify` only asks for a warning.
    #[error("{0}")]
    Tolerated(Failure),
    /// A record was damaged; DEL detaches what it can without it.
    #[error(
        "the record of container {container} was damaged ({cause}) and is now {file}; this DEL \
         detaches what it can find without the record"
    )]
    DelOfDamagedRecord {
        /// The sandbox.
        container: ContainerId,
        /// Where the record is now.
        file: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A record is damaged.
    #[error(
        "{0}; its sandbox may still be attached: delete the pod, whose DEL detaches what it can find"
    )]
    DamagedRecord(String),
    /// A sandbox without a record could not be detached, and there is no sign that it was attached.
    #[error("nothing is on record, and detaching without a record failed: {0}")]
    NotOnRecord(Failure),
    /// An entry of Multus' cache cannot be read.
    #[error("cache of Multus: {0}")]
    MultusCache(String),
    /// The agent is away.
    #[error("{0}; pods that need it wait")]
    AgentAway(ClusterError),
    /// The agent has been away for less than a minute.
    #[error("{0}; it answered within the last minute")]
    AgentAwayBriefly(ClusterError),
    /// The state of a physical function cannot be read.
    #[error("{0}; Jackfield cannot restore its functions")]
    UnknownFunction(Arc<FunctionError>),
    /// A setting of a device could not be restored, or the device was not compared with its
    /// baseline. The text names the device.
    #[error("{0}")]
    Device(String),
    /// The delegates refused DEL with the configuration on record and accepted the current one.
    #[error(
        "{0}: the plugins refused the configuration on record, and the network's current \
         configuration detached it"
    )]
    DetachedByCurrentConfiguration(NetworkPlace),
    /// The delegates refused ADD and DEL for so long that the attachment is dropped.
    #[error(
        "{0}; given up, since its ADD failed too; free by hand any address that its IPAM plugin \
         may have given"
    )]
    GivenUp(Failure),
    /// An owed DEL is done.
    #[error("owed: container {0}: detached now")]
    OwedDone(ContainerId),
    /// An owed DEL failed again.
    #[error("owed: container {0}: {1}")]
    OwedAgain(ContainerId, Failure),
    /// The process that retries an owed DEL cannot be started.
    #[error("owed: container {0}: cannot start the retry: {1}")]
    NoRetry(ContainerId, io::Error),
    /// GC has no list of valid attachments.
    #[error("the runtime names no list of valid attachments, so GC collects nothing")]
    NoValidAttachments,
    /// GC ran out of time and left this number of sandboxes.
    #[error("GC had no time for {0} containers; the next GC goes on with them")]
    GcOutOfTime(usize),
    /// GC skips the networks, since an attached container has no record.
    #[error(
        "container {0} is attached and not on record, so GC collects no network: it might free what \
         that container has"
    )]
    UnrecordedContainer(ContainerId),
    /// GC skips networks, since together their configurations are too long.
    #[error(
        "GC leaves out {left_out} networks on record: together the configurations have more than \
         {limit} bytes; make them smaller"
    )]
    TooManyConfigurations {
        /// The number of networks.
        left_out: usize,
        /// The limit in bytes.
        limit: usize,
    },
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
                "given up, since its ADD failed too; free by hand any address",
            ),
            (
                Note::DamagedRecord("/a".to_owned()),
                "/a; its sandbox may still be attached: delete the pod",
            ),
            (
                Note::OwedDone(container()),
                "owed: container c1: detached now",
            ),
            (Note::GcOutOfTime(3), "no time for 3 containers"),
            (
                Note::UnrecordedContainer(container()),
                "container c1 is attached and not on record, so GC collects no network",
            ),
        ] {
            let line = note.to_string();
            assert!(line.contains(words), "{line}");
        }
    }
}
