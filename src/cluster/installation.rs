//! What the installer says of its node, for the cluster to see.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// How far the installation on a node is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Installation {
    /// [`InstallationState::as_str`], or a word of another release.
    pub state: Cow<'static, str>,
    /// Why, in one line.
    pub message: String,
    /// Whether it has changed since it was said last.
    pub is_news: bool,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallationState {
    /// Binary and configuration are in their places.
    Installed,
    /// The cluster network's configuration is missing.
    NoNetwork,
    /// The node is Multus', and stays so.
    Multus,
    /// The node is Multus', and is to be taken over once nothing is in the way.
    MigrationWaits,
    /// The installer has ended with an error.
    Failed,
}

impl InstallationState {
    /// As metrics name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            InstallationState::Installed => "installed",
            InstallationState::NoNetwork => "no-network",
            InstallationState::Multus => "multus",
            InstallationState::MigrationWaits => "migration-waits",
            InstallationState::Failed => "failed",
        }
    }

    /// The state of that name.
    pub fn named(name: &str) -> Option<InstallationState> {
        let all = [
            InstallationState::Installed,
            InstallationState::NoNetwork,
            InstallationState::Multus,
            InstallationState::MigrationWaits,
            InstallationState::Failed,
        ];
        all.into_iter().find(|state| state.as_str() == name)
    }
}
