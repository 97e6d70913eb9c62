//! The result of a plugin's ADD.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::json::JsonError;
use super::version::{Version, VersionError};

mod read;
mod write;

/// How many interfaces a result may have.
pub const MAX_INTERFACES: usize = 256;
/// How many addresses a result may have.
pub const MAX_IPS: usize = 1024;
/// How many routes a result may have.
pub const MAX_ROUTES: usize = 4096;

/// The result of an ADD in any version: CNI 1.1.0 §5 "ADD Success".
///
/// The fields match version 1.1.0, which can express every result of the earlier versions.
/// [`Self::parse`] and [`Self::to_json`] convert from and to any version. Reading drops keys that
/// CNI does not define. In `interface`, `table` and `scope`, zero is a value, not a missing key.
///
/// The journal stores results as JSON of version 1.1.0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CniResult {
    /// The interfaces that the attachment created, on the host and in the pod.
    pub interfaces: Vec<Interface>,
    /// The addresses that the attachment assigned.
    pub ips: Vec<IpConfig>,
    /// The routes that the attachment created.
    pub routes: Vec<Route>,
    /// Name resolution; `None` if the key `dns` is missing or its object is empty.
    pub dns: Option<Dns>,
}

/// An interface that an attachment created. An empty string for an optional field becomes `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// The name.
    pub name: String,
    /// The hardware address, as the plugin wrote it.
    pub mac: Option<String>,
    /// The MTU in bytes; since 1.1.0.
    pub mtu: Option<u32>,
    /// The path of the interface's network namespace; `None` on the host.
    pub sandbox: Option<String>,
    /// The socket of a vhost-user or memif interface; since 1.1.0.
    pub socket_path: Option<String>,
    /// The PCI device of the interface; since 1.1.0.
    pub pci_id: Option<String>,
}

/// An address that an attachment assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpConfig {
    /// The address with its prefix length.
    pub address: IpNet,
    /// The gateway of the subnet.
    pub gateway: Option<IpAddr>,
    /// The index of the interface in [`CniResult::interfaces`]. [`CniResult::parse`] drops an index
    /// that refers to no interface.
    pub interface: Option<usize>,
}

/// A route that an attachment created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The destination.
    pub dst: IpNet,
    /// The next hop; `None` if the gateway in [`CniResult::ips`] applies.
    pub gw: Option<IpAddr>,
    /// The path MTU in bytes; since 1.1.0, like all keys below.
    pub mtu: Option<u32>,
    /// The MSS to advertise, in bytes.
    pub advmss: Option<u32>,
    /// The metric; the route with the lowest metric is preferred.
    pub priority: Option<u32>,
    /// The routing table.
    pub table: Option<u32>,
    /// The scope: 0 global, 253 link, 254 host.
    pub scope: Option<u32>,
}

/// Name resolution of an attachment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dns {
    /// Name servers in order of preference.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nameservers: Vec<String>,
    /// The local domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Search domains in order of preference.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub search: Vec<String>,
    /// Resolver options.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

impl CniResult {
    /// Reads a plugin's result. A result without `cniVersion` has the version of the configuration.
    ///
    /// `{}` is a valid result, but an empty text is not.
    ///
    /// # Errors
    ///
    /// [`ResultError`] when the text is empty or not JSON, when Jackfield does not support its
    /// version, or when a key is missing or has an invalid value.
    pub fn parse(text: &[u8], config_version: Version) -> Result<Self, ResultError> {
        read::parse(text, config_version)
    }

    /// Writes the result as JSON of `version`. Omits what the version cannot express, such as `mtu`
    /// before 1.1.0, or a second IPv4 address before 0.3.0.
    ///
    /// # Errors
    ///
    /// [`ResultError::NoAddress`] in a version before 0.3.0, if the result has interfaces or routes
    /// but no address. In these versions a result consists of addresses.
    pub fn to_json(&self, version: Version) -> Result<String, ResultError> {
        write::to_json(self, version)
    }

    /// Refuses lists that are longer than any pod needs, because each element takes time to verify
    /// and to write.
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

    /// Checks that a version can express the result.
    ///
    /// # Errors
    ///
    /// As [`CniResult::to_json`].
    pub fn fits(&self, version: Version) -> Result<(), ResultError> {
        let needs_address = !self.interfaces.is_empty() || !self.routes.is_empty();
        if version.has_legacy_result() && self.ips.is_empty() && needs_address {
            return Err(ResultError::NoAddress(version));
        }
        Ok(())
    }

    /// Returns the first interface that has a sandbox, with its index. This interface is the
    /// interface of the attachment (NPWG 1.3 §5.1.1).
    pub fn sandbox_interface(&self) -> Option<(usize, &Interface)> {
        let mut interfaces = self.interfaces.iter().enumerate();
        interfaces.find(|(_, interface)| interface.sandbox.is_some())
    }
}

/// Why a result cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ResultError {
    /// The text is empty.
    #[error("the result is empty; the plugin must print a result, at least {{}}")]
    Empty,
    /// The text is not a JSON object, a required key is missing, or a key has an invalid value.
    #[error("the result cannot be read: {0}")]
    Json(#[from] JsonError),
    /// Jackfield does not support the result's version.
    #[error("the result cannot be read: {0}")]
    Version(#[from] VersionError),
    /// A list is longer than its limit.
    #[error("the result has {count} {list}; {limit} are allowed")]
    TooMany {
        /// The key of the list.
        list: &'static str,
        /// The length of the list.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// The result has no address, but results of this version consist of addresses.
    #[error(
        "the result has no address, but CNI version {0} requires one; raise cniVersion in the node \
         configuration to 0.3.1"
    )]
    NoAddress(Version),
}

#[cfg(test)]
mod tests;
