//! What a call says besides its outcome: lines for stderr and the log.

mod words;

use std::io;
use std::sync::Arc;

use super::Failure;
use super::devices::FunctionError;
use crate::baseline::DeviceState;
use crate::cluster::ClusterError;
use crate::cni::ContainerId;
use crate::delegate::ChainError;
use crate::plan::NetworkPlace;

/// Something that a call says besides its outcome.
#[derive(Debug)]
pub enum Note {
    /// The text of an event that the pod's owner gets too.
    Event(String),
    /// The status or an event does not reach the cluster.
    Unpublished(ClusterError),
    /// A plugin without CHECK refuses it.
    NoCheck {
        /// The network.
        place: NetworkPlace,
        /// What the plugin answered.
        answer: Box<ChainError>,
    },
    /// CHECK found this, and `verify` says to warn of it.
    Tolerated(Failure),
    /// A record was damaged, so a DEL does what it can without it.
    DelOfDamagedRecord {
        /// The sandbox.
        container: ContainerId,
        /// Where the record is now.
        file: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A record is damaged; its sandbox may still have something.
    DamagedRecord(String),
    /// A sandbox without a record could not be detached, and nothing says that it was attached.
    NotOnRecord(Failure),
    /// An entry of Multus' cache cannot be read.
    MultusCache(String),
    /// The agent is away, and pods that need it wait.
    AgentAway(ClusterError),
    /// The agent is away since less than a minute.
    AgentAwayBriefly(ClusterError),
    /// The state of a physical function cannot be read.
    UnknownFunction(Arc<FunctionError>),
    /// What could not be restored of a device, in words that the journal keeps.
    Unrestored {
        /// The device.
        device: String,
        /// The words.
        line: String,
    },
    /// A device is not compared with its baseline, in words that name it.
    Uncompared(String),
    /// The delegates refused DEL with the configuration on record and accepted the current one.
    DetachedByCurrentConfiguration(NetworkPlace),
    /// The delegates refused ADD and DEL for so long that the attachment is dropped.
    GivenUp(Failure),
    /// An owed DEL is done.
    OwedDone(ContainerId),
    /// An owed DEL failed again.
    OwedAgain(ContainerId, Failure),
    /// The process that retries an owed DEL cannot be started.
    NoRetry(ContainerId, io::Error),
    /// GC has no list of valid attachments.
    NoValidAttachments,
    /// GC ran out of time.
    GcOutOfTime {
        /// How many sandboxes are left.
        left: usize,
    },
    /// GC skips the networks, since an attached container has no record.
    UnrecordedContainer(ContainerId),
    /// GC skips networks, since together their configurations are too long.
    TooManyConfigurations {
        /// How many networks.
        left_out: usize,
        /// The limit in bytes.
        limit: usize,
    },
}

impl Note {
    /// What could not be restored of `device`.
    pub(super) fn unrestored(device: &DeviceState, line: &str) -> Note {
        Note::Unrestored {
            device: device.to_string(),
            line: line.to_owned(),
        }
    }
}
