//! Why a message cannot be read or sent.

use std::io;

use super::VERSION;
use crate::diagnostic::{self, Problem};

/// Why a message cannot be read or sent.
#[derive(Debug, thiserror::Error)]
#[error("{}", diagnostic::line(self))]
pub enum FrameError {
    /// The stream failed or ended.
    Io(#[source] io::Error),
    /// The message does not begin with the header of a Jackfield message.
    Foreign,
    /// The other side uses this protocol version, which this release does not support.
    Version(u16),
    /// The message is larger than the limit.
    TooLarge {
        /// The message's size, in bytes.
        length: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The answer has too many definitions, or its definitions are too long together.
    Definitions {
        /// The maximum number of definitions in an answer.
        most: usize,
        /// The maximum size of all definitions together, in bytes.
        limit: usize,
    },
    /// The JSON is not the expected message.
    Json(#[source] serde_json::Error),
}

impl FrameError {
    /// Whether the other side closed the connection before the message was complete.
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

impl Problem for FrameError {
    // "It" is the other side of the connection. The caller writes the name of that side in front,
    // as in "agent at /run/agent.sock: it speaks protocol version 2".
    fn words(&self) -> String {
        match self {
            Self::Io(source) => source.to_string(),
            Self::Foreign => "it sent a message that is not Jackfield's".to_owned(),
            Self::Version(theirs) => format!(
                "it speaks protocol version {theirs}, but this release speaks protocol version \
                 {VERSION}"
            ),
            Self::TooLarge { length, limit } => {
                format!("a message has {length} bytes, but only {limit} are allowed")
            }
            Self::Definitions { most, limit } => format!(
                "the pod has more than {most} definitions, or its definitions have more than \
                 {limit} bytes together"
            ),
            Self::Json(source) => format!("a message cannot be read ({source})"),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::Io(_) | Self::Foreign | Self::TooLarge { .. } => return None,
            Self::Version(_) | Self::Json(_) => "use the same release of plugin and agent",
            Self::Definitions { .. } => "make them smaller or select fewer",
        };
        Some(remedy.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_says_what_failed_and_what_to_do() {
        for (error, line) in [
            (
                FrameError::Foreign,
                "it sent a message that is not Jackfield's",
            ),
            (
                FrameError::Version(2),
                "it speaks protocol version 2, but this release speaks protocol version 1; use the \
                 same release of plugin and agent",
            ),
            (
                FrameError::TooLarge {
                    length: 8,
                    limit: 7,
                },
                "a message has 8 bytes, but only 7 are allowed",
            ),
            (
                FrameError::Definitions { most: 2, limit: 7 },
                "the pod has more than 2 definitions, or its definitions have more than 7 bytes \
                 together; make them smaller or select fewer",
            ),
        ] {
            assert_eq!(error.to_string(), line);
        }
    }
}
