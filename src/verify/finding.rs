//! What is not as it was to be.

mod what;
mod words;

use std::fmt;

pub use what::What;

use crate::cni::InterfaceName;

/// One thing that is not as it was to be; its [`Display`](fmt::Display) is one line that names
/// the interface, what was expected, what was found, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The interface of the attachment.
    pub interface: InterfaceName,
    /// What is wrong.
    pub what: What,
    /// How much that matters.
    pub weight: Weight,
}

/// How much a finding matters, lightest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weight {
    /// Worth an event; nothing that was promised is missing.
    Warning,
    /// A delegate answered otherwise.
    Answered,
    /// The pod asked otherwise, or kubelet allocated otherwise: always in, whatever is verified
    /// of an answer.
    Requested,
}

/// Who expected something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The pod's selection.
    Requested,
    /// The result of the delegates.
    Answered,
}

impl From<Source> for Weight {
    fn from(source: Source) -> Self {
        match source {
            Source::Requested => Self::Requested,
            Source::Answered => Self::Answered,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requested => "requested",
            Self::Answered => "answered by the delegate",
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interface {}: {}", self.interface, self.what)
    }
}
