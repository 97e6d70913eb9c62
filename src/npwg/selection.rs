//! What a pod asks for.

use std::net::IpAddr;

use device_info::Guid;
use thiserror::Error;

use super::Dialect;
use super::bandwidth::{Bandwidth, BandwidthError};
use super::object_ref::{ObjectRef, ObjectRefError};
use super::port_mapping::PortMapping;
use super::requested_ip::{RequestedIp, RequestedIpError};
use super::requested_mac::{RequestedMac, RequestedMacError};
use crate::cni::{CapabilityArgs, InterfaceName, JsonError, NameError, RawObject};

mod element;
mod list;

/// How large the annotation may be, in bytes: all annotations of a pod together have no more.
pub const MAX_BYTES: usize = 256 * 1024;

/// How many networks a pod may select.
///
/// They are attached one after the other within the deadline of one ADD.
pub const MAX_NETWORKS: usize = 64;

/// How many addresses a pod may ask for on one network: in `ips`, or by a claim.
pub const MAX_IPS: usize = 256;

/// How many `portMappings` a pod may ask for on one network.
pub const MAX_PORT_MAPPINGS: usize = 4096;

/// How many keys `cni-args` of one network may have: each of its plugins gets them all.
pub const MAX_CNI_ARGS: usize = 1024;

/// How many gateways `default-route` may name.
pub const MAX_GATEWAYS: usize = 64;

/// One network that a pod selects, and what it asks of it: NPWG 1.3 §4.1.2.1.
///
/// Whatever is in here is valid by itself. What contradicts something else (an interface name
/// used twice, `ips` beside a claim, a capability that nobody declares) is judged with the whole
/// pod in view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The definition.
    pub network: ObjectRef,
    /// `interface`: how the interface is to be called in the pod.
    pub interface: Option<InterfaceName>,
    /// `ips`: the addresses that must be assigned; empty when none was asked for.
    pub ips: Vec<RequestedIp>,
    /// `mac`: the hardware address that must be assigned.
    pub mac: Option<RequestedMac>,
    /// `infiniband-guid`: the GUID that must be assigned.
    pub infiniband_guid: Option<Guid>,
    /// `portMappings`: one at least where there are any.
    pub port_mappings: Option<Vec<PortMapping>>,
    /// `bandwidth`.
    pub bandwidth: Option<Bandwidth>,
    /// `cni-args`, as they were written.
    pub cni_args: Option<RawObject>,
    /// `default-route`: the gateways; an empty list takes the default routes away.
    pub default_route: Option<Vec<IpAddr>>,
    /// `ipam-claim-reference`: the name of an IPAMClaim in the pod's namespace.
    pub ipam_claim: Option<String>,
    /// `deviceID`, which Multus knows and the specification does not.
    pub device_id: Option<String>,
    /// Keys that the specification reserves and does not define; a typing error, as a rule.
    pub unknown_keys: Vec<String>,
}

impl Selection {
    /// A network of which nothing is asked.
    #[must_use]
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

    /// Reads the annotation in either form: names with commas between them, or a JSON list.
    ///
    /// The first form takes `namespace/name@interface`, as Multus does. An empty annotation
    /// selects nothing.
    ///
    /// # Errors
    ///
    /// [`SelectionError`] when it is invalid in the sense of NPWG 1.3 §4.1.2.1, with the network,
    /// the key and the value.
    pub fn parse_list(
        annotation: &str,
        pod_namespace: &str,
        dialect: Dialect,
    ) -> Result<Vec<Self>, SelectionError> {
        list::parse(annotation, pod_namespace, dialect)
    }

    /// Reads the annotation that replaces the cluster network: exactly one network, in either
    /// form.
    ///
    /// # Errors
    ///
    /// As [`Self::parse_list`], and when it selects none or several.
    pub fn parse_default_network(
        annotation: &str,
        namespace: &str,
        dialect: Dialect,
    ) -> Result<Self, SelectionError> {
        let mut list = list::parse(annotation, namespace, dialect)?;
        match (list.pop(), list.len()) {
            (Some(one), 0) => Ok(one),
            (last, rest) => Err(SelectionError::NotOne(rest + usize::from(last.is_some()))),
        }
    }

    /// What is asked for, as capabilities: NPWG 1.3 §4.1.2.1.3.2 and its siblings, each in the
    /// form that CNI's conventions give it.
    ///
    /// # Errors
    ///
    /// None that could occur; JSON's writer has one in its signature.
    pub fn capability_args(&self) -> Result<CapabilityArgs, JsonError> {
        let mut args = CapabilityArgs::new();
        if !self.ips.is_empty() {
            args.insert("ips", &self.ips)?;
        }
        if let Some(mac) = &self.mac {
            args.insert("mac", mac)?;
        }
        if let Some(mappings) = &self.port_mappings {
            args.insert("portMappings", mappings)?;
        }
        if let Some(bandwidth) = &self.bandwidth {
            args.insert("bandwidth", bandwidth)?;
        }
        if let Some(guid) = &self.infiniband_guid {
            args.insert("infinibandGUID", guid)?;
        }
        Ok(args)
    }
}

/// Why an annotation is invalid; CNI error code 101.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SelectionError {
    /// It is larger than [`MAX_BYTES`].
    #[error("the annotation has {0} bytes; {MAX_BYTES} are allowed")]
    TooLarge(usize),
    /// It selects more than [`MAX_NETWORKS`].
    #[error("the annotation selects {0} networks; {MAX_NETWORKS} are allowed")]
    TooMany(usize),
    /// It looks like JSON and is no list.
    #[error(
        "the annotation is no JSON list: {0}; write [{{\"name\": \"net-a\"}}], or names with commas between them"
    )]
    NoList(JsonError),
    /// One network is described invalidly.
    #[error("network {position}{name}: {source}")]
    Element {
        /// Its place in the list, from 1.
        position: usize,
        /// Its name in parentheses, if it has one.
        name: String,
        /// What is wrong with it.
        #[source]
        source: ElementError,
    },
    /// Two networks have the key `default-route`.
    #[error("networks {first} and {second} both have the key \"default-route\"; only one may")]
    DefaultRouteTwice {
        /// The place of the first of them, from 1.
        first: usize,
        /// The place of the second.
        second: usize,
    },
    /// So have the network that replaces the cluster network and another one.
    #[error(
        "network {0} has the key \"default-route\", and so has the network of the annotation \
         v1.multus-cni.io/default-network; only one may"
    )]
    DefaultRouteOfBoth(usize),
    /// The annotation for the default network selects another number than one.
    #[error("the annotation selects {0} networks; select exactly one")]
    NotOne(usize),
}

/// What is wrong with one network of an annotation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ElementError {
    /// It is no object, or a value has a wrong type.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// It has no name.
    #[error("key \"name\" is missing; name a NetworkAttachmentDefinition")]
    NoName,
    /// It cannot be the name of a definition.
    #[error(transparent)]
    Name(#[from] ObjectRefError),
    /// `interface` cannot be the name of one.
    #[error("key \"interface\": {0}")]
    Interface(#[source] NameError),
    /// An element of `ips` is no address.
    #[error("key \"ips\": {0}")]
    Ip(#[source] RequestedIpError),
    /// A value has too many elements or keys.
    #[error("key {key:?} has {count} elements; {limit} are allowed")]
    TooMany {
        /// The key.
        key: &'static str,
        /// How many there are.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// `mac` is no hardware address.
    #[error("key \"mac\": {0}")]
    Mac(#[source] RequestedMacError),
    /// `infiniband-guid` is no GUID.
    #[error("key \"infiniband-guid\": {0}")]
    Guid(#[source] device_info::GuidError),
    /// `bandwidth` is invalid.
    #[error("key \"bandwidth\": {0}")]
    Bandwidth(#[source] BandwidthError),
    /// An element of `default-route` is no address that a gateway may have.
    #[error(
        "key \"default-route\": {0:?} is no IP address of a gateway; write it as 192.0.2.1, \
         or [] for no default route at all"
    )]
    Gateway(String),
    /// `ipam-claim-reference` cannot be the name of an object.
    #[error(
        "key \"ipam-claim-reference\": {0:?} cannot be the name of an object; use lower-case letters, digits, '-' and '.'"
    )]
    Claim(String),
}

#[cfg(test)]
mod tests;
