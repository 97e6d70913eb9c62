//! The installer's report about its node. The agent publishes the report.

use std::borrow::Cow;

use serde::de::IntoDeserializer;
use serde::de::value::{self, StrDeserializer};
use serde::{Deserialize, Serialize};

/// The state of the installation on a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Installation {
    /// The name of an [`InstallationState`], or of a state that only another release has.
    pub state: Cow<'static, str>,
    /// The reason for the state, in one line.
    pub message: String,
    /// Whether the state or the reason has changed since the previous report.
    pub is_news: bool,
}

/// The states of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstallationState {
    /// The binary and the configuration are installed.
    Installed,
    /// The cluster network's configuration or the runtime's configuration directory is missing.
    NoNetwork,
    /// Multus attaches the node's pods. The installer does not take over.
    Multus,
    /// Multus attaches the node's pods. The installer takes over as soon as nothing prevents the
    /// takeover.
    MigrationWaits,
    /// The installer ended with an error.
    Failed,
}

impl InstallationState {
    /// Returns the state's name in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            InstallationState::Installed => "installed",
            InstallationState::NoNetwork => "no-network",
            InstallationState::Multus => "multus",
            InstallationState::MigrationWaits => "migration-waits",
            InstallationState::Failed => "failed",
        }
    }

    /// Returns the state with this name. Returns `None` if this release has no such state.
    pub fn named(name: &str) -> Option<InstallationState> {
        let name: StrDeserializer<'_, value::Error> = name.into_deserializer();
        InstallationState::deserialize(name).ok()
    }
}
