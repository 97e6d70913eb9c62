//! Writes results in any version. Omits what the version cannot express.
//!
//! Versions before 0.3.0 can express only DNS settings and one address for each IP family, with its
//! gateway and the routes of the family. If a result has interfaces or routes but no address, these
//! versions could express only its DNS settings. So [`CniResult::fits`] refuses such a result.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{CniResult, Interface, IpConfig, ResultError, Route};
use crate::cni::json::JsonError;
use crate::cni::version::Version;

pub(super) fn to_json(result: &CniResult, version: Version) -> Result<String, ResultError> {
    result.fits(version)?;
    Ok(serde_json::to_string(&In(version, result)).map_err(JsonError::from)?)
}

/// Writes a result as the journal stores it: as JSON of version 1.1.0.
impl Serialize for CniResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        In(Version::V1_1_0, self).serialize(serializer)
    }
}

/// A part of a result and the version in which to write it.
struct In<'a, T>(Version, &'a T);

impl Serialize for In<'_, CniResult> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(version, result) = *self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("cniVersion", version.as_str())?;
        if version.has_legacy_result() {
            option(&mut map, "ip4", LegacyIp::of_family(true, result, version))?;
            option(&mut map, "ip6", LegacyIp::of_family(false, result, version))?;
        } else {
            list(&mut map, "interfaces", version, &result.interfaces)?;
            list(&mut map, "ips", version, &result.ips)?;
            list(&mut map, "routes", version, &result.routes)?;
        }
        option(&mut map, "dns", result.dns.as_ref())?;
        map.end()
    }
}

impl Serialize for In<'_, Interface> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(version, interface) = *self;
        let is_rich = version >= Version::V1_1_0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &interface.name)?;
        option(&mut map, "mac", interface.mac.as_ref())?;
        option(&mut map, "mtu", interface.mtu.filter(|_| is_rich))?;
        option(&mut map, "sandbox", interface.sandbox.as_ref())?;
        if is_rich {
            option(&mut map, "socketPath", interface.socket_path.as_ref())?;
            option(&mut map, "pciID", interface.pci_id.as_ref())?;
        }
        map.end()
    }
}

impl Serialize for In<'_, IpConfig> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(version, ip) = *self;
        let mut map = serializer.serialize_map(None)?;
        if version < Version::V1_0_0 {
            let is_ipv4 = ip.address.addr().is_ipv4();
            map.serialize_entry("version", if is_ipv4 { "4" } else { "6" })?;
        }
        option(&mut map, "interface", ip.interface)?;
        map.serialize_entry("address", &ip.address)?;
        option(&mut map, "gateway", ip.gateway)?;
        map.end()
    }
}

impl Serialize for In<'_, Route> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(version, route) = *self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("dst", &route.dst)?;
        option(&mut map, "gw", route.gw)?;
        if version >= Version::V1_1_0 {
            option(&mut map, "mtu", route.mtu)?;
            option(&mut map, "advmss", route.advmss)?;
            option(&mut map, "priority", route.priority)?;
            option(&mut map, "table", route.table)?;
            option(&mut map, "scope", route.scope)?;
        }
        map.end()
    }
}

/// The value of `ip4` or `ip6` in 0.1.0 and 0.2.0: the first address of the family, and the routes
/// of the family.
#[derive(Serialize)]
struct LegacyIp<'a> {
    ip: IpNet,
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway: Option<IpAddr>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    routes: Vec<In<'a, Route>>,
}

impl<'a> LegacyIp<'a> {
    fn of_family(is_ipv4: bool, result: &'a CniResult, version: Version) -> Option<Self> {
        let is_of = |net: IpNet| net.addr().is_ipv4() == is_ipv4;
        let ip = result.ips.iter().find(|ip| is_of(ip.address))?;
        let routes = result.routes.iter().filter(|route| is_of(route.dst));
        Some(Self {
            ip: ip.address,
            gateway: ip.gateway,
            routes: routes.map(|route| In(version, route)).collect(),
        })
    }
}

/// Writes a key, unless its value is `None`.
fn option<M: SerializeMap>(
    map: &mut M,
    key: &str,
    value: Option<impl Serialize>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(key, &value))
}

/// Writes a list, unless it is empty.
fn list<'a, T, M: SerializeMap>(
    map: &mut M,
    key: &str,
    version: Version,
    list: &'a [T],
) -> Result<(), M::Error>
where
    In<'a, T>: Serialize,
{
    let list: Vec<In<'a, T>> = list.iter().map(|element| In(version, element)).collect();
    option(map, key, Some(list).filter(|list| !list.is_empty()))
}
