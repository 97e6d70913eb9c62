//! Why a message cannot be read or sent.

mod words;

use std::io;

use crate::diagnostic;

/// Why a message cannot be read or sent.
#[derive(Debug, thiserror::Error)]
#[error("{}", diagnostic::line(self))]
pub enum FrameError {
    /// The stream failed or ended.
    Io(#[source] io::Error),
    /// The message does not begin with the header of a Jackfield message.
    Foreign,
    /// The other side uses this version, which this release does not support.
    Version(u16),
    /// The message is larger than the limit.
    TooLarge {
        /// The message's size, in bytes.
        length: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The definitions that belong to an answer exceed this limit in total, in bytes.
    Definitions(usize),
    /// The JSON is not the expected message.
    Json(#[source] serde_json::Error),
}

impl FrameError {
    /// Whether the other side closed the connection before the message was complete. The plugin may
    /// then ask again.
    pub fn is_gone(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        matches!(self, FrameError::Io(error)
            if matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof))
    }

    /// Whether the deadline of the stream has passed.
    pub fn is_late(&self) -> bool {
        use io::ErrorKind::{TimedOut, WouldBlock};
        matches!(self, FrameError::Io(error) if matches!(error.kind(), TimedOut | WouldBlock))
    }
}
