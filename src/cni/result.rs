//! What a plugin answers to ADD.

use std::net::IpAddr;

use ipnet::IpNet;
use thiserror::Error;

use super::json::JsonError;
use super::version::{Version, VersionError};

mod read;
mod write;

/// How many interfaces a result may have.
pub const MAX_INTERFACES: usize = 256;
/// How many addresses.
pub const MAX_IPS: usize = 1024;
/// How many routes.
pub const MAX_ROUTES: usize = 4096;

/// The result of an ADD, whatever version it was written in: CNI 1.1.0 §5 "ADD Success".
///
/// It is kept in the shape of 1.1.0, the richest, and converted where it comes in and goes out.
/// Keys that CNI does not know are not kept. What may be zero is told from what is not there:
/// `interface: 0`, `table: 0`, `scope: 0`.
///
/// In the journal it stands in its 1.1.0 form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CniResult {
    /// The interfaces that the attachment made, on the host and in the pod.
    pub interfaces: Vec<Interface>,
    /// The addresses that it assigned.
    pub ips: Vec<IpConfig>,
    /// The routes that it made.
    pub routes: Vec<Route>,
    /// What it knows about name resolution; an empty object is none.
    pub dns: Option<Dns>,
}

/// An interface that an attachment made; strings that are empty are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its hardware address, as the plugin wrote it.
    pub mac: Option<String>,
    /// Its MTU in bytes; since 1.1.0.
    pub mtu: Option<u32>,
    /// The network namespace it is in, none on the host.
    pub sandbox: Option<String>,
    /// A socket that stands for it (vhost-user, memif); since 1.1.0.
    pub socket_path: Option<String>,
    /// The PCI device behind it; since 1.1.0.
    pub pci_id: Option<String>,
}

/// An address that an attachment assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpConfig {
    /// The address with the length of its prefix.
    pub address: IpNet,
    /// The gateway of its subnet.
    pub gateway: Option<IpAddr>,
    /// Where its interface is in [`CniResult::interfaces`], which has one there.
    pub interface: Option<usize>,
}

/// A route that an attachment made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The destination.
    pub dst: IpNet,
    /// The next hop; where there is none, the gateway of an address may serve.
    pub gw: Option<IpAddr>,
    /// The MTU along the path in bytes; since 1.1.0, like all that follows.
    pub mtu: Option<u32>,
    /// The MSS to advertise, in bytes.
    pub advmss: Option<u32>,
    /// The metric, lower is stronger.
    pub priority: Option<u32>,
    /// The routing table.
    pub table: Option<u32>,
    /// The scope: 0 global, 253 link, 254 host.
    pub scope: Option<u32>,
}

/// What an attachment knows about name resolution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dns {
    /// Servers, the preferred first.
    pub nameservers: Vec<String>,
    /// The local domain.
    pub domain: Option<String>,
    /// Domains to search, the preferred first.
    pub search: Vec<String>,
    /// Options of the resolver.
    pub options: Vec<String>,
}

impl CniResult {
    /// Reads what a plugin wrote, in the version that it names itself, else in that of the
    /// configuration.
    ///
    /// `{}` is a result; no text at all is none.
    ///
    /// # Errors
    ///
    /// [`ResultError`] when it is empty, not JSON, of an unknown version, or when a key has a
    /// value that it cannot have.
    pub fn parse(text: &[u8], config_version: Version) -> Result<Self, ResultError> {
        read::parse(text, config_version)
    }

    /// Writes it in a version, without what that version cannot say.
    ///
    /// # Errors
    ///
    /// [`ResultError::NoAddress`] before 0.3.0, when there are interfaces or routes and no address: such
    /// a result consists of nothing else.
    pub fn to_json(&self, version: Version) -> Result<String, ResultError> {
        write::to_json(self, version)
    }

    /// Refuses lists of a length that no pod has a use for: each element is verified, recorded
    /// and written.
    ///
    /// # Errors
    ///
    /// [`ResultError::TooMany`] with the list and its limit.
    pub fn within_limits(&self) -> Result<(), ResultError> {
        for (list, count, limit) in [
            ("interfaces", self.interfaces.len(), MAX_INTERFACES),
            ("ips", self.ips.len(), MAX_IPS),
            ("routes", self.routes.len(), MAX_ROUTES),
        ] {
            if count > limit {
                return Err(ResultError::TooMany { list, count, limit });
            }
        }
        Ok(())
    }

    /// Whether a version can say it: what it is about, if it is about anything.
    ///
    /// # Errors
    ///
    /// As [`CniResult::to_json`].
    pub fn fits(&self, version: Version) -> Result<(), ResultError> {
        let says_nothing = self.interfaces.is_empty() && self.routes.is_empty();
        if version.has_legacy_result() && self.ips.is_empty() && !says_nothing {
            return Err(ResultError::NoAddress(version));
        }
        Ok(())
    }

    /// The first interface that is in a sandbox, with its index.
    ///
    /// It is what the attachment is about (NPWG 1.3 §5.1.1).
    #[must_use]
    pub fn sandbox_interface(&self) -> Option<(usize, &Interface)> {
        self.interfaces
            .iter()
            .enumerate()
            .find(|(_, interface)| interface.sandbox.is_some())
    }
}

/// Why a result cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ResultError {
    /// Nothing was written.
    #[error("the result is empty; a plugin has to print one, be it {{}}")]
    Empty,
    /// It is not JSON, or a key has a value that it cannot have.
    #[error("the result cannot be read: {0}")]
    Json(#[from] JsonError),
    /// Its own version is unknown.
    #[error("the result cannot be read: {0}")]
    Version(#[from] VersionError),
    /// A list is longer than its limit.
    #[error("the result has {count} {list}; {limit} are allowed")]
    TooMany {
        /// The list.
        list: &'static str,
        /// How long it is.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// There is nothing that the version could say.
    #[error(
        "the result has no address, which CNI version {0} cannot express; raise cniVersion to 0.3.1"
    )]
    NoAddress(Version),
}

#[cfg(test)]
mod tests;
