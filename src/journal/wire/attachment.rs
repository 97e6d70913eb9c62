//! An attachment in the [`Header`](crate::journal::Header) of a record.

use std::net::IpAddr;
use std::path::PathBuf;

use device_info::Guid;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::value::RawValue;

use crate::allocation::AllocatedDevice;
use crate::cni::{CapabilityArgs, InterfaceName, NetworkConfig, NetworkName, RawObject};
use crate::npwg::{NetworksDigest, RequestedIp, RequestedMac};
use crate::plan::{self, Segment};

/// One attachment.
#[derive(Serialize, Deserialize)]
#[serde(remote = "plan::Attachment")]
pub(in crate::journal) struct Attachment {
    label: String,
    is_cluster: bool,
    ifname: InterfaceName,
    network: NetworkName,
    #[serde(with = "AsWritten")]
    config: NetworkConfig,
    capability_args: CapabilityArgs,
    cni_args: Option<RawObject>,
    extra_args: Vec<(String, String)>,
    inject: Vec<(String, Box<RawValue>)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<AllocatedDevice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_info_file: Option<PathBuf>,
    #[serde(with = "Requested")]
    requested: plan::Requested,
    /// Missing if the pod requests no MAC or GUID, and in the records of older releases.
    #[serde(skip_serializing_if = "Option::is_none")]
    segment: Option<Segment>,
    default_route: Option<Vec<IpAddr>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_auxiliary: bool,
    /// Missing for networks of the node configuration, and in the records of older releases.
    #[serde(skip_serializing_if = "Option::is_none")]
    selection: Option<NetworksDigest>,
}

/// The addresses and the device that the pod requested.
#[derive(Serialize, Deserialize)]
#[serde(remote = "plan::Requested")]
struct Requested {
    ips: Vec<RequestedIp>,
    mac: Option<RequestedMac>,
    guid: Option<Guid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
}

/// Keeps a configuration byte for byte, including numbers and unknown keys.
struct AsWritten;

impl AsWritten {
    fn serialize<S: Serializer>(config: &NetworkConfig, out: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(config.raw()).map_err(ser::Error::custom)?;
        raw.serialize(out)
    }

    fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<NetworkConfig, D::Error> {
        let raw = Box::<RawValue>::deserialize(input)?;
        NetworkConfig::recorded(raw.get().as_bytes()).map_err(de::Error::custom)
    }
}
