//! What puts Jackfield on a node, keeps it there, takes over from Multus, and takes it away.
//!
//! ```text
//! install ──▶ plan (what the runtime's directory should hold) ──▶ stage, rename ──▶ manifest
//! guard   ──▶ the same, whenever somebody changed something
//! uninstall ◀── manifest, journal
//! doctor  ◀── everything, touching nothing
//! ```
//!
//! Whatever fails, the node keeps the network that it had (NPWG 1.3 §6.1).

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
mod notify;
mod plan;
mod report;
mod request;
mod stage;
mod standby;
pub mod takeover;
pub mod uninstall;

pub use error::SetupError;
pub use host_paths::HostPaths;

/// Our name: of the binary, of the plugin's type, of the network.
pub const NAME: &str = "jackfield";

/// Who is told what happens, a line at a time.
pub type Say<'a> = &'a dyn Fn(&str);

/// Which release this is.
pub fn version() -> semver::Version {
    let part = |text: &str| text.parse().unwrap_or_default();
    semver::Version::parse(env!("CARGO_PKG_VERSION")).unwrap_or_else(|_| {
        semver::Version::new(
            part(env!("CARGO_PKG_VERSION_MAJOR")),
            part(env!("CARGO_PKG_VERSION_MINOR")),
            part(env!("CARGO_PKG_VERSION_PATCH")),
        )
    })
}
