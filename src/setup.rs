//! Installs Jackfield on a node, keeps it installed, and uninstalls it. Takes a node over from
//! Multus.
//!
//! The *runtime's directory* is the directory from which the container runtime reads CNI
//! configurations. *Our configuration* is the file there whose first plugin is Jackfield. The
//! *manifest*, a file in a subfolder of the runtime's directory, lists the files that the installer
//! wrote, and the files that it replaced or removed.
//!
//! ```text
//! install ──▶ plan (what the runtime's directory should contain) ──▶ stage, rename ──▶ manifest
//! guard   ──▶ plans again when a watched directory changes, and repairs what differs from the plan
//! uninstall ◀── manifest, journal
//! doctor  ◀── everything
//! ```
//!
//! The guard watches the runtime's directory, the plugins' directory, and the directory of the
//! cluster network's configuration.
//!
//! If an installation fails, the node keeps its previous network (NPWG 1.3 §6.1).

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
mod stage;
mod standby;
pub mod takeover;
pub mod uninstall;

pub use error::SetupError;
pub use host_paths::HostPaths;
pub use notice::Notice;

use crate::cni::RawObject;
use crate::diagnostic::Problem;
use crate::request::{Call, Request, RequestError};

/// The name of the binary and of the plugin type, and the default name of the network in our
/// configuration.
pub const NAME: &str = "jackfield";

/// Receives the installer's reports while the installer runs.
pub type Say<'a> = &'a dyn Fn(&dyn Problem);

/// The version of this release.
pub fn version() -> semver::Version {
    let none = semver::Version::new(0, 0, 0);
    semver::Version::parse(env!("CARGO_PKG_VERSION")).unwrap_or(none)
}

/// Makes a request from a configuration. The request is about the whole node and names no pod.
///
/// # Errors
/// When the configuration is invalid.
fn about_the_node(conf: RawObject, cni_path: &str) -> Result<Request, RequestError> {
    let call = Call::of(&[("CNI_COMMAND", "STATUS"), ("CNI_PATH", cni_path)])?;
    Request::for_people(call, conf)
}
