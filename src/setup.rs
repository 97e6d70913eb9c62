//! Installs Jackfield on a node, keeps it installed, takes over from Multus, and uninstalls it.
//!
//! ```text
//! install ──▶ plan (what the runtime's directory should hold) ──▶ stage, rename ──▶ manifest
//! guard   ──▶ the same, after every change
//! uninstall ◀── manifest, journal
//! doctor  ◀── everything, read only
//! ```
//!
//! After a failure, the node keeps the network that it had (NPWG 1.3 §6.1).

pub mod binary;
mod check;
pub mod conf;
pub mod directory;
pub mod doctor;
pub mod error;
pub mod guard;
pub mod host_paths;
pub mod install;
mod install_lock;
pub mod manifest;
pub mod notice;
mod notify;
mod plan;
pub mod problem;
mod report;
mod request;
mod stage;
mod standby;
pub mod takeover;
pub mod uninstall;

pub use error::SetupError;
pub use host_paths::HostPaths;
pub use notice::Notice;

use crate::diagnostic::Problem;

/// The name of the binary, of the plugin's type, and of the network.
pub const NAME: &str = "jackfield";

/// Receives what the installer reports while it works.
pub type Say<'a> = &'a dyn Fn(&dyn Problem);

/// The version of this release.
pub fn version() -> semver::Version {
    let none = semver::Version::new(0, 0, 0);
    semver::Version::parse(env!("CARGO_PKG_VERSION")).unwrap_or(none)
}
