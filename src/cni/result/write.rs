//! Writes results in any version, without the keys that the version lacks.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Serialize, Serializer};

use super::{CniResult, Dns, Interface, IpConfig, ResultError, Route};
use crate::cni::json::JsonError;
use crate::cni::version::Version;

pub(super) fn to_json(result: &CniResult, version: Version) -> Result<String, ResultError> {
    let text = if version.has_legacy_result() {
        serde_json::to_string(&Legacy::new(result, version)?)
    } else {
        serde_json::to_string(&Modern::new(result, version))
    };
    Ok(text.map_err(JsonError::from)?)
}

/// The form in the journal.
impl Serialize for CniResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Modern::new(self, Version::V1_1_0).serialize(serializer)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Modern<'a> {
    cni_version: Version,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    interfaces: Vec<WireInterface<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ips: Vec<WireIp>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    routes: Vec<WireRoute>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dns: Option<WireDns<'a>>,
}

impl<'a> Modern<'a> {
    fn new(result: &'a CniResult, version: Version) -> Self {
        Self {
            cni_version: version,
            interfaces: result
                .interfaces
                .iter()
                .map(|interface| WireInterface::new(interface, version))
                .collect(),
            ips: result
                .ips
                .iter()
                .map(|ip| WireIp::new(ip, version))
                .collect(),
            routes: result
                .routes
                .iter()
                .map(|route| WireRoute::new(route, version))
                .collect(),
            dns: result.dns.as_ref().map(WireDns::new),
        }
    }
}

#[derive(Serialize)]
struct WireInterface<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mac: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<&'a str>,
    #[serde(rename = "socketPath", skip_serializing_if = "Option::is_none")]
    socket_path: Option<&'a str>,
    #[serde(rename = "pciID", skip_serializing_if = "Option::is_none")]
    pci_id: Option<&'a str>,
}

impl<'a> WireInterface<'a> {
    fn new(interface: &'a Interface, version: Version) -> Self {
        let rich = version >= Version::V1_1_0;
        Self {
            name: &interface.name,
            mac: interface.mac.as_deref(),
            mtu: interface.mtu.filter(|_| rich),
            sandbox: interface.sandbox.as_deref(),
            socket_path: interface.socket_path.as_deref().filter(|_| rich),
            pci_id: interface.pci_id.as_deref().filter(|_| rich),
        }
    }
}

#[derive(Serialize)]
struct WireIp {
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<usize>,
    address: IpNet,
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway: Option<IpAddr>,
}

impl WireIp {
    fn new(ip: &IpConfig, version: Version) -> Self {
        let family = match ip.address {
            IpNet::V4(_) => "4",
            IpNet::V6(_) => "6",
        };
        Self {
            version: (version < Version::V1_0_0).then_some(family),
            interface: ip.interface,
            address: ip.address,
            gateway: ip.gateway,
        }
    }
}

#[derive(Serialize)]
struct WireRoute {
    dst: IpNet,
    #[serde(skip_serializing_if = "Option::is_none")]
    gw: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    advmss: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<u32>,
}

impl WireRoute {
    fn new(route: &Route, version: Version) -> Self {
        let rich = version >= Version::V1_1_0;
        Self {
            dst: route.dst,
            gw: route.gw,
            mtu: route.mtu.filter(|_| rich),
            advmss: route.advmss.filter(|_| rich),
            priority: route.priority.filter(|_| rich),
            table: route.table.filter(|_| rich),
            scope: route.scope.filter(|_| rich),
        }
    }
}

#[derive(Serialize)]
struct WireDns<'a> {
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    nameservers: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    search: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    options: &'a [String],
}

impl<'a> WireDns<'a> {
    fn new(dns: &'a Dns) -> Self {
        Self {
            nameservers: &dns.nameservers,
            domain: dns.domain.as_deref(),
            search: &dns.search,
            options: &dns.options,
        }
    }
}

/// 0.1.0 and 0.2.0: the first address of each family, with the routes of that family.
#[derive(Serialize)]
struct Legacy<'a> {
    #[serde(rename = "cniVersion")]
    cni_version: Version,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip4: Option<LegacyIp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip6: Option<LegacyIp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dns: Option<WireDns<'a>>,
}

#[derive(Serialize)]
struct LegacyIp {
    ip: IpNet,
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway: Option<IpAddr>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    routes: Vec<WireRoute>,
}

impl<'a> Legacy<'a> {
    fn new(result: &'a CniResult, version: Version) -> Result<Self, ResultError> {
        result.fits(version)?;
        let family = |four: bool| {
            let of_family = |net: &IpNet| net.addr().is_ipv4() == four;
            let ip = result.ips.iter().find(|ip| of_family(&ip.address))?;
            Some(LegacyIp {
                ip: ip.address,
                gateway: ip.gateway,
                routes: result
                    .routes
                    .iter()
                    .filter(|route| of_family(&route.dst))
                    .map(|route| WireRoute::new(route, version))
                    .collect(),
            })
        };
        Ok(Self {
            cni_version: version,
            ip4: family(true),
            ip6: family(false),
            dns: result.dns.as_ref().map(WireDns::new),
        })
    }
}
