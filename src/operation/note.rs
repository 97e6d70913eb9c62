//! Notes of a call: lines for stderr and the log in addition to its outcome.

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

/// A note of a call.
#[derive(Debug)]
pub enum Note {
    /// The text of an event that the pod's owner gets too.
    Event(String),
    /// The network-status or an event could not be published.
    Unpublished(ClusterError),
    /// A plugin without CHECK refuses it.
    NoCheck {
        /// The network.
        place: NetworkPlace,
        /// The answer of the plugin.
        answer: Box<ChainError>,
    },
    /// A finding of CHECK for which `verify` only asks for a warning.
    Tolerated(Failure),
    /// A record was damaged; DEL detaches what it can without it.
    DelOfDamagedRecord {
        /// The sandbox.
        container: ContainerId,
        /// Where the record is now.
        file: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A record is damaged; its sandbox may still be attached.
    DamagedRecord(String),
    /// A sandbox without a record could not be detached, and there is no sign that it was attached.
    NotOnRecord(Failure),
    /// An entry of Multus' cache cannot be read.
    MultusCache(String),
    /// The agent is away, and pods that need it wait.
    AgentAway(ClusterError),
    /// The agent has been away for less than a minute.
    AgentAwayBriefly(ClusterError),
    /// The state of a physical function cannot be read.
    UnknownFunction(Arc<FunctionError>),
    /// A setting of a device could not be restored.
    Unrestored {
        /// The device.
        device: String,
        /// The setting and the reason, in one line.
        line: String,
    },
    /// A device was not compared with its baseline; the text names it.
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
        /// The number of sandboxes that are left.
        left: usize,
    },
    /// GC skips the networks, since an attached container has no record.
    UnrecordedContainer(ContainerId),
    /// GC skips networks, since together their configurations are too long.
    TooManyConfigurations {
        /// The number of networks.
        left_out: usize,
        /// The limit in bytes.
        limit: usize,
    },
}

impl Note {
    /// A setting of `device` that could not be restored.
    pub(super) fn unrestored(device: &DeviceState, line: &str) -> Note {
        Note::Unrestored {
            device: device.to_string(),
            line: line.to_owned(),
        }
    }
}
