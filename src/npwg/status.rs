//! The status of an attachment.

use std::net::IpAddr;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::cni::{CniResult, Dns, InterfaceName};

mod merge;

pub use merge::merge_status;

/// The key under which the first status entry of a sandbox lists the sandbox's other entries. A
/// later ADD of the same pod, or a later change of its networks, recognizes outdated entries by
/// this list.
const ATTACHED: &str = "io.jackfield.attached";

/// One element of the status annotation (NPWG 1.3 §5.3). The fields have the order of the keys in
/// the specification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusEntry {
    /// `name`: the definition as `namespace/name`, or the name of the cluster network.
    pub name: String,
    /// `interface`: the name of the interface in the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// `ips`: the addresses of the interface.
    #[serde(default, deserialize_with = "null_is_default")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ips: Vec<String>,
    /// `mac`: the hardware address of the interface, 6 or 20 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// `mtu`: the MTU of the interface in bytes. This key comes from Multus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// `default`: whether the entry describes the cluster network. Every entry has this key.
    #[serde(default, deserialize_with = "null_is_default")]
    pub default: bool,
    /// `dns`: the DNS settings of the result, without the resolver options (NPWG 1.3 §5.3.6).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns: Option<Dns>,
    /// `default-route`: the gateways that the pod requested.
    #[serde(rename = "default-route", skip_serializing_if = "Option::is_none")]
    pub default_route: Option<Vec<String>>,
    /// `device-info`: a JSON object in the format of the Device Information Specification.
    #[serde(rename = "device-info", skip_serializing_if = "Option::is_none")]
    pub device_info: Option<Value>,
    /// `io.jackfield.attached`: the other entries of the same sandbox. Only the first entry has
    /// this key.
    #[serde(rename = "io.jackfield.attached")]
    #[serde(default, deserialize_with = "null_is_default")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<String>,
}

/// The format of addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusAddresses {
    /// `10.1.1.5`, as Multus writes it.
    #[default]
    Address,
    /// `10.1.1.5/24`, as in the specification's examples.
    Prefix,
}

/// The inputs of a status entry.
#[derive(Clone, Debug)]
pub struct StatusSource<'a> {
    /// The value of `name`.
    pub name: &'a str,
    /// Whether the network is the cluster network.
    pub is_default: bool,
    /// The result of the delegates. With `None`, the entry has no addresses, MAC, MTU or DNS
    /// settings.
    pub result: Option<&'a CniResult>,
    /// The requested name of the interface.
    pub ifname: &'a InterfaceName,
    /// The gateways, if the pod's selection has `default-route`.
    pub requested_default_route: Option<&'a [IpAddr]>,
    /// The device information.
    pub device_info: Option<Value>,
    /// The format of addresses.
    pub addresses: StatusAddresses,
}

impl StatusEntry {
    /// Returns the entry of one attachment (NPWG 1.3 §5.1.1, §5.3.2.1, §5.3.3.1, §5.3.4.1).
    ///
    /// Interface, MAC and MTU come from the result's first interface in a sandbox. If the result
    /// lists no interfaces, as in CNI 0.1.0 and 0.2.0, the entry has the requested interface name.
    /// If the result lists only host interfaces, the entry has no interface.
    pub fn from_result(source: StatusSource<'_>) -> Self {
        let nothing = CniResult::default();
        let result = source.result.unwrap_or(&nothing);
        let (index, sandbox) = result.sandbox_interface().unzip();
        let interface = match sandbox {
            Some(interface) => Some(interface.name.clone()),
            None if result.interfaces.is_empty() => Some(source.ifname.to_string()),
            None => None,
        };
        let interface = interface.filter(|name| !name.is_empty());
        let mut dns = result.dns.clone().unwrap_or_default();
        dns.options.clear();
        // "If the mac key is present, interface must also be present" (§5.3.4).
        let mac = sandbox.and_then(|interface| interface.mac.clone());
        let mtu = sandbox.and_then(|interface| interface.mtu);
        Self {
            name: source.name.to_owned(),
            ips: addresses(result, index, source.addresses),
            mac: mac.filter(|_| interface.is_some()),
            // Plugins in Go write 0 for an absent MTU.
            mtu: mtu.filter(|mtu| *mtu != 0),
            interface,
            default: source.is_default,
            dns: Some(dns).filter(|dns| *dns != Dns::default()),
            default_route: source
                .requested_default_route
                .map(|gateways| gateways.iter().map(ToString::to_string).collect()),
            device_info: source.device_info,
            attached: Vec::new(),
        }
    }

    /// Lists the second entry and all further entries in [`attached`](Self::attached) of the first
    /// entry. `entries` contains all entries of one sandbox.
    pub fn sign(entries: &mut [StatusEntry]) {
        if let [first, others @ ..] = entries {
            first.attached = others.iter().map(StatusEntry::mark).collect();
        }
    }

    /// Returns the network and interface of the entry, in the format of a selection:
    /// `namespace/name@interface`. An entry without an interface has only the network.
    fn mark(&self) -> String {
        match &self.interface {
            Some(interface) => format!("{}@{interface}", self.name),
            None => self.name.clone(),
        }
    }
}

/// Returns the addresses of the interface in the sandbox.
///
/// If no address belongs to this interface, returns the addresses that have no interface index.
/// Some plugins return an interface in the sandbox, but addresses without an index. Runtimes, too,
/// use these addresses for the pod.
fn addresses(result: &CniResult, sandbox: Option<usize>, style: StatusAddresses) -> Vec<String> {
    let of = |interface: Option<usize>| -> Vec<String> {
        let ips = result.ips.iter().filter(|ip| ip.interface == interface);
        ips.map(|ip| match style {
            StatusAddresses::Address => ip.address.addr().to_string(),
            StatusAddresses::Prefix => ip.address.to_string(),
        })
        .collect()
    };
    let in_sandbox = sandbox.map(|index| of(Some(index)));
    let in_sandbox = in_sandbox.filter(|addresses| !addresses.is_empty());
    in_sandbox.unwrap_or_else(|| of(None))
}

fn null_is_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests;
