//! Reads one element of the JSON list that selects a pod's networks.

use std::net::IpAddr;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{ElementError, MAX_CNI_ARGS, MAX_GATEWAYS, MAX_IPS, MAX_PORT_MAPPINGS, Selection};
use crate::cni::RawObject;
use crate::cni::json::{excerpt, same_key, unambiguous};
use crate::npwg::Dialect;
use crate::npwg::bandwidth::Bandwidth;
use crate::npwg::object_ref::{ObjectRef, is_subdomain};
use crate::npwg::port_mapping::PortMapping;
use crate::npwg::requested_ip::RequestedIp;
use crate::npwg::requested_mac::RequestedMac;

/// The keys of NPWG 1.3 §4.1.2.1 and of Multus.
const KEYS: [&str; 13] = [
    "name",
    "namespace",
    "ips",
    "mac",
    "interface",
    "cni-args",
    "portMappings",
    "bandwidth",
    "default-route",
    "infiniband-guid",
    "ipam-claim-reference",
    "deviceID",
    "interfaceRequest",
];

impl Selection {
    /// Reads one element. Also returns the network's name, if the element has one, for error
    /// messages.
    pub(super) fn read(
        raw: &RawValue,
        namespace: &str,
        dialect: Dialect,
    ) -> (Option<String>, Result<Self, ElementError>) {
        match serde_json::from_str::<RawObject>(raw.get()) {
            Ok(object) => {
                let selection = unambiguous(raw.get(), &[])
                    .map_err(ElementError::from)
                    .and_then(|()| read(&object, namespace, dialect));
                (object.value_as("name"), selection)
            }
            Err(_) => {
                let value = excerpt(raw.get()).into_owned();
                (None, Err(ElementError::NotObject(value)))
            }
        }
    }
}

/// Reads the keys of an element.
///
/// As in Multus, the values `""`, `[]` and `{}` count as absent, because some programs write them
/// for an absent request. The exception is `default-route`: an empty list means that the pod has no
/// default route.
fn read(object: &RawObject, namespace: &str, dialect: Dialect) -> Result<Selection, ElementError> {
    let interface = match object.read_text("interface")? {
        Some(name) => Some(name),
        None => object.read_text("interfaceRequest")?,
    };
    let interface = interface.map(|name| name.parse());
    let mac = object.read_text("mac")?;
    let mac = mac.map(|mac| RequestedMac::parse(&mac, dialect));
    let guid = object.read_text("infiniband-guid")?;
    let guid = guid.map(|guid| guid.parse());
    let bandwidth = object.read::<RawObject>("bandwidth")?;
    let bandwidth = bandwidth.and_then(|bandwidth| Bandwidth::read(&bandwidth).transpose());
    let ports = list(object, "portMappings", MAX_PORT_MAPPINGS)?.unwrap_or_default();
    let cni_args = object.read::<RawObject>("cni-args")?;
    let arguments = cni_args.as_ref().map_or(0, RawObject::len);
    check_limit("cni-args", arguments, MAX_CNI_ARGS)?;
    Ok(Selection {
        network: network(object, namespace)?,
        interface: interface.transpose().map_err(ElementError::Interface)?,
        ips: ips(object)?,
        mac: mac.transpose().map_err(ElementError::Mac)?,
        infiniband_guid: guid.transpose().map_err(ElementError::Guid)?,
        port_mappings: port_mappings(&ports)?,
        bandwidth: bandwidth.transpose().map_err(ElementError::Bandwidth)?,
        cni_args,
        default_route: default_route(object)?,
        ipam_claim: ipam_claim(object)?,
        device_id: object.read_text("deviceID")?,
        unknown_keys: unknown_keys(object, &ports),
    })
}

/// Reads the list under a key. Refuses more than `limit` elements.
fn list<T: DeserializeOwned>(
    object: &RawObject,
    key: &'static str,
    limit: usize,
) -> Result<Option<Vec<T>>, ElementError> {
    let list = object.read::<Vec<T>>(key)?;
    check_limit(key, list.as_ref().map_or(0, Vec::len), limit)?;
    Ok(list)
}

fn check_limit(key: &'static str, count: usize, limit: usize) -> Result<(), ElementError> {
    if count > limit {
        return Err(ElementError::TooMany { key, count, limit });
    }
    Ok(())
}

/// Returns the unknown keys of the element and of its `portMappings`. Neither the specification nor
/// Multus defines these keys. A warning lists them. For example, if a user writes `proto` instead
/// of `protocol`, the protocol is TCP, the default. The warning shows why.
///
/// Ignores keys that contain a period, because NPWG leaves these keys to implementations (NPWG 1.3
/// §4.1.2.1). In `portMappings`, such keys count as unknown.
fn unknown_keys(object: &RawObject, ports: &[RawObject]) -> Vec<String> {
    let is_unknown = |key: &str, known: &[&str]| !known.iter().any(|name| same_key(key, name));
    let keys = object.iter().map(|(key, _)| key);
    let mut unknown: Vec<String> = keys
        .filter(|key| !key.contains('.') && is_unknown(key, &KEYS))
        .map(str::to_owned)
        .collect();
    for (index, port) in ports.iter().enumerate() {
        let keys = port.iter().map(|(key, _)| key);
        let keys = keys.filter(|key| is_unknown(key, &PortMapping::KEYS));
        unknown.extend(keys.map(|key| format!("portMappings[{index}].{key}")));
    }
    unknown
}

fn network(object: &RawObject, namespace: &str) -> Result<ObjectRef, ElementError> {
    let own_namespace = object.read_text("namespace")?;
    let namespace = own_namespace.as_deref().unwrap_or(namespace);
    let name = object.read_text("name")?.ok_or(ElementError::NoName)?;
    Ok(ObjectRef::new(namespace, &name)?)
}

fn ips(object: &RawObject) -> Result<Vec<RequestedIp>, ElementError> {
    let texts: Vec<String> = list(object, "ips", MAX_IPS)?.unwrap_or_default();
    let ips = texts.iter().map(|text| text.parse());
    ips.collect::<Result<_, _>>().map_err(ElementError::Ip)
}

fn port_mappings(ports: &[RawObject]) -> Result<Option<Vec<PortMapping>>, ElementError> {
    let mappings = ports.iter().enumerate().map(|(index, port)| {
        PortMapping::read(port).map_err(|error| error.within("portMappings", index))
    });
    let mappings: Vec<PortMapping> = mappings.collect::<Result<_, _>>()?;
    Ok((!mappings.is_empty()).then_some(mappings))
}

fn default_route(object: &RawObject) -> Result<Option<Vec<IpAddr>>, ElementError> {
    let gateway = |text: &String| {
        let address: Option<IpAddr> = text.parse().ok();
        address
            .filter(is_of_a_host)
            .ok_or_else(|| ElementError::Gateway(excerpt(text).into_owned()))
    };
    let texts: Option<Vec<String>> = list(object, "default-route", MAX_GATEWAYS)?;
    texts
        .map(|texts| texts.iter().map(gateway).collect())
        .transpose()
}

/// Whether the address can belong to another host, such as a gateway.
fn is_of_a_host(address: &IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !(address.is_unspecified() || address.is_loopback() || address.is_multicast() || is_broadcast)
}

fn ipam_claim(object: &RawObject) -> Result<Option<String>, ElementError> {
    match object.read_text("ipam-claim-reference")? {
        Some(name) if !is_subdomain(&name) => Err(ElementError::Claim(excerpt(&name).into_owned())),
        name => Ok(name),
    }
}
