//! What a plugin is asked to do.

use std::fmt;

/// The value of `CNI_COMMAND`: CNI 1.1.0 §2 "CNI operations".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Attach.
    Add,
    /// Detach.
    Del,
    /// See whether it is still attached.
    Check,
    /// Forget everybody who is not named.
    Gc,
    /// See whether ADD would work.
    Status,
    /// List the versions that the plugin speaks.
    Version,
}

impl Verb {
    /// Every verb.
    pub const ALL: [Self; 6] = [
        Self::Add,
        Self::Del,
        Self::Check,
        Self::Gc,
        Self::Status,
        Self::Version,
    ];

    /// The verb of that name; names are upper case and no other.
    #[must_use]
    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == text)
    }

    /// As it is written in the environment.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Add => "ADD",
            Self::Del => "DEL",
            Self::Check => "CHECK",
            Self::Gc => "GC",
            Self::Status => "STATUS",
            Self::Version => "VERSION",
        }
    }

    /// Whether it is about one attachment, so that container, netns and interface are said
    /// (CNI 1.1.0 §3 "Attachment Parameters": always, be it empty).
    #[must_use]
    pub const fn has_attachment(self) -> bool {
        matches!(self, Self::Add | Self::Del | Self::Check)
    }

    /// Whether success comes with a document on standard output.
    #[must_use]
    pub const fn has_answer(self) -> bool {
        matches!(self, Self::Add | Self::Version)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
