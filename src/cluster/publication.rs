//! What the cluster is told of a pod.

use serde::{Deserialize, Serialize};

use super::pod::PodName;
use crate::npwg::StatusEntry;

/// What became of an ADD.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Publication {
    /// The pod.
    pub pod: PodName,
    /// Its network-status; `None` leaves it as it is.
    pub status: Option<Vec<StatusEntry>>,
    /// Events about it.
    #[serde(default)]
    pub events: Vec<Event>,
}

/// An event about a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Normal or Warning.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// The reason, in one word.
    pub reason: String,
    /// What happened, in one line.
    pub message: String,
}

impl Event {
    /// Something that somebody should look at.
    pub fn warning(reason: &str, message: impl Into<String>) -> Event {
        Event {
            kind: EventKind::Warning,
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    /// Something that went as it should.
    pub fn normal(reason: &str, message: impl Into<String>) -> Event {
        Event {
            kind: EventKind::Normal,
            reason: reason.to_owned(),
            message: message.into(),
        }
    }
}

/// How grave an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// As it should be.
    Normal,
    /// Not as it should be.
    Warning,
}
