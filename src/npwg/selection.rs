//! The networks that a pod selects, and the pod's requests for each network.

use std::net::IpAddr;

use device_info::Guid;
use thiserror::Error;

use super::Dialect;
use super::bandwidth::{Bandwidth, BandwidthError};
use super::networks_digest::NetworksDigest;
use super::object_ref::{ObjectRef, ObjectRefError};
use super::port_mapping::PortMapping;
use super::requested_ip::{RequestedIp, RequestedIpError};
use super::requested_mac::RequestedMac;
use crate::cni::json::raw;
use crate::cni::{CapabilityArgs, InterfaceName, JsonError, NameError, RawObject};

mod element;
mod list;

/// The maximum size of the annotation, in bytes. Kubernetes has the same limit for all annotations
/// of a pod together.
pub const MAX_BYTES: usize = 256 * 1024;

/// The maximum number of networks that a pod may select.
///
/// An ADD attaches the networks one after another, and has one deadline for all of them.
pub const MAX_NETWORKS: usize = 64;

/// The maximum number of addresses that a pod may request on one network, in `ips` or by a claim.
pub const MAX_IPS: usize = 256;

/// The maximum number of `portMappings` that a pod may request on one network.
pub const MAX_PORT_MAPPINGS: usize = 4096;

/// The maximum number of keys in the `cni-args` of one network. Each plugin of the network gets all
/// keys.
pub const MAX_CNI_ARGS: usize = 1024;

/// The maximum number of gateways in `default-route`.
pub const MAX_GATEWAYS: usize = 64;

/// One network that a pod selects, with the pod's requests (NPWG 1.3 §4.1.2.1).
///
/// Each value is valid by itself. The module `plan` checks most rules that need more than one
/// value: for example, interface names are unique, `ips` and a claim exclude each other, and a
/// plugin declares each requested capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The definition.
    pub network: ObjectRef,
    /// `interface`: the name of the interface in the pod.
    pub interface: Option<InterfaceName>,
    /// `ips`: the addresses that the interface must have; empty without a request.
    pub ips: Vec<RequestedIp>,
    /// `mac`: the hardware address that the interface must have.
    pub mac: Option<RequestedMac>,
    /// `infiniband-guid`: the GUID that the interface must have.
    pub infiniband_guid: Option<Guid>,
    /// `portMappings`; never an empty list.
    pub port_mappings: Option<Vec<PortMapping>>,
    /// `bandwidth`.
    pub bandwidth: Option<Bandwidth>,
    /// `cni-args`, unchanged.
    pub cni_args: Option<RawObject>,
    /// `default-route`: the gateways. An empty list removes all default routes of the pod.
    pub default_route: Option<Vec<IpAddr>>,
    /// `ipam-claim-reference`: the name of an IPAMClaim in the pod's namespace.
    pub ipam_claim: Option<String>,
    /// `deviceID`, a key of Multus that the specification does not define.
    pub device_id: Option<String>,
    /// Keys that neither the specification nor Multus defines, such as `ip`. Most of these keys are
    /// typos. The list contains an unknown key of a port mapping with its path, such as
    /// `portMappings[1].proto`. The list omits top-level keys that contain a period, such as
    /// `example.com/key`, because the specification leaves such keys to implementations.
    pub unknown_keys: Vec<String>,
}

impl Selection {
    /// Selects a network without further requests.
    pub const fn of(network: ObjectRef) -> Self {
        Self {
            network,
            interface: None,
            ips: Vec::new(),
            mac: None,
            infiniband_guid: None,
            port_mappings: None,
            bandwidth: None,
            cni_args: None,
            default_route: None,
            ipam_claim: None,
            device_id: None,
            unknown_keys: Vec::new(),
        }
    }

    /// Reads the annotation `v1.multus-cni.io/default-network`. The annotation selects exactly one
    /// network, by a name or by a JSON list. This network replaces the cluster network.
    ///
    /// # Errors
    ///
    /// [`SelectionError::NotOne`] if the annotation does not select exactly one network. Otherwise
    /// as [`Self::parse_list`].
    pub fn parse_default_network(
        annotation: &str,
        namespace: &str,
        dialect: Dialect,
    ) -> Result<Self, SelectionError> {
        let list = Self::parse_list(annotation, namespace, dialect)?;
        let [one] =
            <[Self; 1]>::try_from(list).map_err(|list| SelectionError::NotOne(list.len()))?;
        Ok(one)
    }

    /// Returns the requests that plugins get as capability arguments, in the formats of CNI's
    /// conventions (NPWG 1.3 §4.1.2.1.3.2 and similar clauses).
    pub fn capability_args(&self) -> CapabilityArgs {
        let requests = [
            ("ips", (!self.ips.is_empty()).then(|| raw(&self.ips))),
            ("mac", self.mac.as_ref().map(raw)),
            ("portMappings", self.port_mappings.as_ref().map(raw)),
            ("bandwidth", self.bandwidth.as_ref().map(raw)),
            ("infinibandGUID", self.infiniband_guid.as_ref().map(raw)),
        ];
        let mut args = CapabilityArgs::new();
        for (name, value) in requests {
            if let Some(value) = value {
                args.set(name, value);
            }
        }
        args
    }

    /// Returns the digest of the network's name and of all requests except `interface`. Journals
    /// keep the digest, so equal selections must have the same digest in every release.
    pub fn digest(&self) -> NetworksDigest {
        let mut text = self.network.to_string();
        let mut add = |key: &str, value: &str| text.push_str(&format!("\n{key}={value}"));
        for (name, value) in self.capability_args().iter() {
            add(name, value.get());
        }
        for (name, value) in self.cni_args.iter().flat_map(RawObject::iter) {
            add(&format!("cni-args.{name}"), value.get());
        }
        if let Some(gateways) = &self.default_route {
            add("default-route", raw(gateways).get());
        }
        if let Some(claim) = &self.ipam_claim {
            add("ipam-claim-reference", claim);
        }
        if let Some(device) = &self.device_id {
            add("deviceID", device);
        }
        NetworksDigest::of(&text)
    }
}

/// Why an annotation is invalid; CNI error code 101.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SelectionError {
    /// The annotation is larger than [`MAX_BYTES`].
    #[error("the annotation has {0} bytes; {MAX_BYTES} are allowed")]
    TooLarge(usize),
    /// The annotation selects more networks than [`MAX_NETWORKS`].
    #[error("the annotation selects {0} networks; {MAX_NETWORKS} are allowed")]
    TooMany(usize),
    /// The annotation looks like JSON but is not a list.
    #[error(
        "the annotation is not a JSON list: {0}; write [{{\"name\": \"net-a\"}}], or comma-separated names"
    )]
    NotList(#[source] JsonError),
    /// One network is invalid.
    #[error("network {position}{name}: {source}")]
    Element {
        /// The network's position in the list, from 1.
        position: usize,
        /// The network's name in parentheses, if it has one.
        name: String,
        /// What is wrong.
        #[source]
        source: ElementError,
    },
    /// Two networks have the key `default-route`.
    #[error("networks {first} and {second} both have the key \"default-route\"; keep it in one")]
    DefaultRouteTwice {
        /// The position of the first network, from 1.
        first: usize,
        /// The position of the second network, from 1.
        second: usize,
    },
    /// The network at this position and the network that replaces the cluster network both have the
    /// key `default-route`. Positions begin at 1.
    #[error(
        "network {0} and the network of the annotation v1.multus-cni.io/default-network both have \
         the key \"default-route\"; keep it in one"
    )]
    DefaultRouteOfBoth(usize),
    /// The annotation `v1.multus-cni.io/default-network` does not select exactly one network.
    #[error("the annotation selects {0} networks; select exactly one")]
    NotOne(usize),
}

/// What is wrong with one network of an annotation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ElementError {
    /// The element is not an object.
    #[error("{0} is not an object; write {{\"name\": \"net-a\"}}")]
    NotObject(String),
    /// A value is invalid, or a key occurs more than once.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The network has no name.
    #[error("key \"name\" is missing; name a NetworkAttachmentDefinition")]
    NoName,
    /// The name is not a valid name of a definition.
    #[error(transparent)]
    Name(#[from] ObjectRefError),
    /// `interface` is not a valid interface name.
    #[error("key \"interface\": {0}")]
    Interface(#[source] NameError),
    /// An element of `ips` is not an address.
    #[error("key \"ips\": {0}")]
    Ip(#[source] RequestedIpError),
    /// A value has too many elements or keys.
    #[error("key {key:?} has {count} elements; {limit} are allowed")]
    TooMany {
        /// The key.
        key: &'static str,
        /// The number of elements.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// `mac` is not a hardware address.
    #[error("key \"mac\": {0}")]
    Mac(#[source] device_info::MacError),
    /// `infiniband-guid` is not a GUID.
    #[error("key \"infiniband-guid\": {0}")]
    Guid(#[source] device_info::GuidError),
    /// `bandwidth` is invalid.
    #[error("key \"bandwidth\": {0}")]
    Bandwidth(#[source] BandwidthError),
    /// An element of `default-route` is not an address that a gateway can have.
    #[error(
        "key \"default-route\": {0:?} is not the IP address of a gateway; use an address such as \
         192.0.2.1, or set the key to [] for no default route"
    )]
    Gateway(String),
    /// `ipam-claim-reference` is not a valid name of an object.
    #[error(
        "key \"ipam-claim-reference\": {0:?} cannot be the name of an object; use lower-case letters, digits, '-' and '.'"
    )]
    Claim(String),
}

#[cfg(test)]
mod tests;
