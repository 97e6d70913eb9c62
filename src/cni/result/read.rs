//! Reads results of any version.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Deserializer};

use super::{CniResult, Dns, Interface, IpConfig, ResultError, Route};
use crate::cni::json::{JsonError, RawObject, read};
use crate::cni::version::Version;

pub(super) fn parse(text: &[u8], config_version: Version) -> Result<CniResult, ResultError> {
    let object = RawObject::parse(text).map_err(|error| match error {
        JsonError::Empty => ResultError::Empty,
        other => ResultError::Json(other),
    })?;
    let version = match object.read::<String>("cniVersion")? {
        Some(own) if !own.is_empty() => own.parse()?,
        _ => config_version,
    };
    Ok(match version.has_legacy_result() {
        true => legacy(&object)?,
        false => modern(&object)?,
    })
}

/// Reads a result of 0.3.0 or later. Accepts the keys of 1.1.0 in all these versions.
fn modern(object: &RawObject) -> Result<CniResult, JsonError> {
    let interfaces = numbered(object, "interfaces", interface)?;
    let mut ips = list(object, "ips", ip_config)?;
    for ip in &mut ips {
        // `ip.interface` is an index in the plugin's list, which may contain `null`. `interfaces`
        // omits `null`, so replace the index with the position in `interfaces`. Drop an index
        // without an interface, because runtimes use the index without a check.
        let place = |written| interfaces.binary_search_by_key(&written, |(index, _)| *index);
        ip.interface = ip.interface.and_then(|index| place(index).ok());
    }
    Ok(CniResult {
        interfaces: interfaces
            .into_iter()
            .map(|(_, interface)| interface)
            .collect(),
        ips,
        routes: list(object, "routes", route)?,
        dns: dns(object)?,
    })
}

/// Reads a result of 0.1.0 or 0.2.0. Such a result has at most one address and one list of routes
/// for each IP family.
fn legacy(object: &RawObject) -> Result<CniResult, JsonError> {
    let mut result = CniResult {
        dns: dns(object)?,
        ..CniResult::default()
    };
    for family in ["ip4", "ip6"] {
        let Some(config) = object.read::<RawObject>(family)? else {
            continue;
        };
        result.ips.push(IpConfig {
            address: required(&config, "ip")?,
            gateway: address(&config, "gateway")?,
            interface: None,
        });
        result.routes.extend(list(&config, "routes", route)?);
    }
    Ok(result)
}

fn interface(object: &RawObject) -> Result<Interface, JsonError> {
    Ok(Interface {
        name: object.read_text("name")?.unwrap_or_default(),
        mac: object.read_text("mac")?,
        mtu: object.read("mtu")?,
        sandbox: object.read_text("sandbox")?,
        socket_path: object.read_text("socketPath")?,
        pci_id: object.read_text("pciID")?,
    })
}

fn ip_config(object: &RawObject) -> Result<IpConfig, JsonError> {
    // In results of old plugins, -1 means that the address belongs to no interface.
    let interface = object.read::<i64>("interface")?;
    Ok(IpConfig {
        address: required(object, "address")?,
        gateway: address(object, "gateway")?,
        interface: interface.and_then(|index| usize::try_from(index).ok()),
    })
}

fn route(object: &RawObject) -> Result<Route, JsonError> {
    Ok(Route {
        dst: required(object, "dst")?,
        gw: address(object, "gw")?,
        mtu: object.read("mtu")?,
        advmss: object.read("advmss")?,
        priority: object.read("priority")?,
        table: object.read("table")?,
        scope: object.read("scope")?,
    })
}

fn dns(object: &RawObject) -> Result<Option<Dns>, JsonError> {
    let Some(object) = object.read::<RawObject>("dns")? else {
        return Ok(None);
    };
    let strings = |key| Ok::<_, JsonError>(object.read::<Vec<String>>(key)?.unwrap_or_default());
    let dns = Dns {
        nameservers: strings("nameservers")?,
        domain: object.read_text("domain")?,
        search: strings("search")?,
        options: strings("options")?,
    };
    Ok((dns != Dns::default()).then_some(dns))
}

fn list<T>(
    object: &RawObject,
    key: &str,
    element: fn(&RawObject) -> Result<T, JsonError>,
) -> Result<Vec<T>, JsonError> {
    let list = numbered(object, key, element)?;
    Ok(list.into_iter().map(|(_, value)| value).collect())
}

/// Returns the elements of a list with their indices. Skips `null` elements. A plugin in Go can
/// write such elements, because the lists of the reference library contain pointers.
fn numbered<T>(
    object: &RawObject,
    key: &str,
    element: fn(&RawObject) -> Result<T, JsonError>,
) -> Result<Vec<(usize, T)>, JsonError> {
    let list: Vec<Option<RawObject>> = object.read(key)?.unwrap_or_default();
    let list = list.iter().enumerate();
    list.filter_map(|(index, object)| Some((index, object.as_ref()?)))
        .map(|(index, object)| match element(object) {
            Ok(value) => Ok((index, value)),
            Err(error) => Err(error.within(key, index)),
        })
        .collect()
}

fn required(object: &RawObject, key: &str) -> Result<IpNet, JsonError> {
    const EXPECTED: &str = "expected an address with a prefix length, as in 192.0.2.1/24";
    let Some(raw) = object.get(key) else {
        return Err(JsonError::missing(key, EXPECTED));
    };
    let text: String = read(key, raw)?;
    text.parse()
        .map_err(|_| JsonError::key(key, raw.get(), EXPECTED))
}

fn address(object: &RawObject, key: &str) -> Result<Option<IpAddr>, JsonError> {
    const EXPECTED: &str = "expected an IPv4 or IPv6 address";
    let Some(text) = object.read_text(key)? else {
        return Ok(None);
    };
    let invalid = |_| JsonError::key(key, &format!("{text:?}"), EXPECTED);
    text.parse().map(Some).map_err(invalid)
}

/// Reads a result from the journal, which stores results with the keys of CNI 1.1.0.
impl<'de> Deserialize<'de> for CniResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = RawObject::deserialize(deserializer)?;
        modern(&object).map_err(serde::de::Error::custom)
    }
}
