//! One element of the JSON form.

use std::net::IpAddr;

use serde_json::value::RawValue;

use super::{ElementError, MAX_CNI_ARGS, MAX_GATEWAYS, MAX_IPS, MAX_PORT_MAPPINGS, Selection};
use crate::cni::json::{excerpt, same_key, unambiguous};
use crate::cni::{JsonError, RawObject};
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
    /// Reads one element. The first value is its name for messages, if it has one.
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
                (object.read("name").ok().flatten(), selection)
            }
            Err(_) => {
                let error = JsonError::key("networks", raw.get(), "expected an object with a name");
                (None, Err(error.into()))
            }
        }
    }
}

fn read(object: &RawObject, namespace: &str, dialect: Dialect) -> Result<Selection, ElementError> {
    let interface = match text(object, "interface")? {
        Some(name) => Some(name),
        None => text(object, "interfaceRequest")?,
    };
    Ok(Selection {
        network: network(object, namespace)?,
        interface: interface
            .map(|name| name.parse())
            .transpose()
            .map_err(ElementError::Interface)?,
        ips: ips(object)?,
        mac: text(object, "mac")?
            .map(|mac| RequestedMac::parse(&mac, dialect))
            .transpose()
            .map_err(ElementError::Mac)?,
        infiniband_guid: text(object, "infiniband-guid")?
            .map(|guid| guid.parse())
            .transpose()
            .map_err(ElementError::Guid)?,
        port_mappings: port_mappings(object)?,
        bandwidth: object
            .read::<RawObject>("bandwidth")?
            .map(|bandwidth| Bandwidth::read(&bandwidth))
            .transpose()
            .map_err(ElementError::Bandwidth)?
            .flatten(),
        cni_args: cni_args(object)?,
        default_route: default_route(object)?,
        ipam_claim: ipam_claim(object)?,
        device_id: text(object, "deviceID")?,
        unknown_keys: unknown_keys(object)?,
    })
}

/// A string; `None` when it is empty.
///
/// Programs write `""`, `[]` and `{}` for an absent request, and Multus reads them so. Only an empty
/// `default-route` has a meaning.
fn text(object: &RawObject, key: &str) -> Result<Option<String>, ElementError> {
    Ok(object.read::<String>(key)?.filter(|text| !text.is_empty()))
}

/// Keys that the specification reserves but does not define, including those of `portMappings`: a
/// user who writes `proto` for `protocol` should learn why the protocol is TCP.
fn unknown_keys(object: &RawObject) -> Result<Vec<String>, ElementError> {
    let is_unknown = |key: &str, known: &[&str]| !known.iter().any(|name| same_key(key, name));
    let keys = object.iter().map(|(key, _)| key);
    let mut unknown: Vec<String> = keys
        .filter(|key| !key.contains('.') && is_unknown(key, &KEYS))
        .map(str::to_owned)
        .collect();
    let ports = object.read::<Vec<RawObject>>("portMappings")?;
    for (index, port) in ports.unwrap_or_default().iter().enumerate() {
        let keys = port.iter().map(|(key, _)| key);
        let keys = keys.filter(|key| is_unknown(key, &PortMapping::KEYS));
        unknown.extend(keys.map(|key| format!("portMappings[{index}].{key}")));
    }
    Ok(unknown)
}

fn network(object: &RawObject, namespace: &str) -> Result<ObjectRef, ElementError> {
    let own_namespace = text(object, "namespace")?;
    let name = text(object, "name")?.ok_or(ElementError::NoName)?;
    Ok(ObjectRef::new(
        own_namespace.as_deref().unwrap_or(namespace),
        &name,
    )?)
}

fn ips(object: &RawObject) -> Result<Vec<RequestedIp>, ElementError> {
    let texts = object.read::<Vec<String>>("ips")?.unwrap_or_default();
    check_limit("ips", texts.len(), MAX_IPS)?;
    texts
        .iter()
        .map(|text| text.parse().map_err(ElementError::Ip))
        .collect()
}

fn port_mappings(object: &RawObject) -> Result<Option<Vec<PortMapping>>, ElementError> {
    let elements: Vec<RawObject> = object.read("portMappings")?.unwrap_or_default();
    check_limit("portMappings", elements.len(), MAX_PORT_MAPPINGS)?;
    let mappings = elements
        .iter()
        .enumerate()
        .map(|(index, element)| {
            PortMapping::read(element).map_err(|error| error.within("portMappings", index))
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok((!mappings.is_empty()).then_some(mappings))
}

fn cni_args(object: &RawObject) -> Result<Option<RawObject>, ElementError> {
    let args = object.read::<RawObject>("cni-args")?;
    check_limit(
        "cni-args",
        args.as_ref().map_or(0, RawObject::len),
        MAX_CNI_ARGS,
    )?;
    Ok(args)
}

fn check_limit(key: &'static str, count: usize, limit: usize) -> Result<(), ElementError> {
    if count > limit {
        return Err(ElementError::TooMany { key, count, limit });
    }
    Ok(())
}

fn default_route(object: &RawObject) -> Result<Option<Vec<IpAddr>>, ElementError> {
    object
        .read::<Vec<String>>("default-route")?
        .map(|texts| {
            check_limit("default-route", texts.len(), MAX_GATEWAYS)?;
            texts
                .iter()
                .map(|text| {
                    let address: Option<IpAddr> = text.parse().ok();
                    address
                        .filter(is_of_a_host)
                        .ok_or_else(|| ElementError::Gateway(excerpt(text).into_owned()))
                })
                .collect()
        })
        .transpose()
}

/// Whether an address can belong to another machine, as a gateway's must.
fn is_of_a_host(address: &IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !(address.is_unspecified() || address.is_loopback() || address.is_multicast() || is_broadcast)
}

fn ipam_claim(object: &RawObject) -> Result<Option<String>, ElementError> {
    match text(object, "ipam-claim-reference")? {
        Some(name) if !is_subdomain(&name) => Err(ElementError::Claim(excerpt(&name).into_owned())),
        name => Ok(name),
    }
}
