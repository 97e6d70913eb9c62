//! The operations of a plugin.

use std::fmt;

/// The value of `CNI_COMMAND`: CNI 1.1.0 §2 "CNI operations".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Attaches a sandbox.
    Add,
    /// Detaches a sandbox.
    Del,
    /// Checks that a sandbox is still attached.
    Check,
    /// Detaches every sandbox that the runtime does not list as valid.
    Gc,
    /// Checks whether ADD would succeed.
    Status,
    /// Lists the versions that the plugin supports.
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

    /// Returns the verb with this name. The name must be in upper case.
    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == text)
    }

    /// The verb as the value of `CNI_COMMAND`.
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

    /// Whether the runtime sets the variables for container, network namespace and interface (CNI
    /// 1.1.0 §3 "Attachment Parameters"). DEL may lack the network namespace.
    pub const fn has_attachment(self) -> bool {
        matches!(self, Self::Add | Self::Del | Self::Check)
    }

    /// Whether a successful call writes a JSON document to standard output.
    pub const fn has_answer(self) -> bool {
        matches!(self, Self::Add | Self::Version)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
