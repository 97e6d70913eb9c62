//! An attachment in a [`Header`](super::Header).

use std::borrow::Cow;
use std::net::IpAddr;
use std::path::Path;

use device_info::Guid;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::allocation::{AllocatedDevice, Origin};
use crate::cni::{CapabilityArgs, InterfaceName, NetworkConfig, NetworkName, RawObject};
use crate::npwg::{RequestedIp, RequestedMac};
use crate::plan;

/// One attachment: [`plan::Attachment`].
#[derive(Serialize, Deserialize)]
pub(super) struct Attachment<'a> {
    label: Cow<'a, str>,
    is_cluster: bool,
    ifname: Cow<'a, InterfaceName>,
    network: Cow<'a, NetworkName>,
    #[serde(with = "as_written")]
    config: Cow<'a, NetworkConfig>,
    capability_args: Cow<'a, CapabilityArgs>,
    cni_args: Option<Cow<'a, RawObject>>,
    extra_args: Cow<'a, [(String, String)]>,
    inject: Cow<'a, [(String, Box<RawValue>)]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resource: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    device: Option<Allocated<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    device_info_file: Option<Cow<'a, Path>>,
    requested: Requested<'a>,
    /// Missing in records of releases that knew no segments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    segment: Option<Cow<'a, str>>,
    default_route: Option<Cow<'a, [IpAddr]>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_auxiliary: bool,
}

impl<'a> From<&'a plan::Attachment> for Attachment<'a> {
    fn from(attachment: &'a plan::Attachment) -> Attachment<'a> {
        Attachment {
            label: Cow::Borrowed(&attachment.label),
            is_cluster: attachment.is_cluster,
            ifname: Cow::Borrowed(&attachment.ifname),
            network: Cow::Borrowed(&attachment.network),
            config: Cow::Borrowed(&attachment.config),
            capability_args: Cow::Borrowed(&attachment.capability_args),
            cni_args: attachment.cni_args.as_ref().map(Cow::Borrowed),
            extra_args: Cow::Borrowed(&attachment.extra_args),
            inject: Cow::Borrowed(&attachment.inject),
            resource: attachment.resource.as_deref().map(Cow::Borrowed),
            device: attachment.device.as_ref().map(Allocated::from),
            device_info_file: attachment.device_info_file.as_deref().map(Cow::Borrowed),
            requested: Requested::from(&attachment.requested),
            segment: attachment
                .segment
                .as_ref()
                .map(|segment| Cow::Borrowed(segment.as_str())),
            default_route: attachment.default_route.as_deref().map(Cow::Borrowed),
            is_auxiliary: attachment.is_auxiliary,
        }
    }
}

impl From<Attachment<'_>> for plan::Attachment {
    fn from(attachment: Attachment<'_>) -> plan::Attachment {
        plan::Attachment {
            label: attachment.label.into_owned(),
            is_cluster: attachment.is_cluster,
            ifname: attachment.ifname.into_owned(),
            network: attachment.network.into_owned(),
            config: attachment.config.into_owned(),
            capability_args: attachment.capability_args.into_owned(),
            cni_args: attachment.cni_args.map(Cow::into_owned),
            extra_args: attachment.extra_args.into_owned(),
            inject: attachment.inject.into_owned(),
            resource: attachment.resource.map(Cow::into_owned),
            device: attachment.device.map(AllocatedDevice::from),
            device_info_file: attachment.device_info_file.map(Cow::into_owned),
            requested: attachment.requested.into(),
            segment: attachment
                .segment
                .map(|name| plan::Segment::recorded(name.into_owned())),
            default_route: attachment.default_route.map(Cow::into_owned),
            is_auxiliary: attachment.is_auxiliary,
        }
    }
}

/// What the pod asked for: [`plan::Requested`].
#[derive(Serialize, Deserialize)]
struct Requested<'a> {
    ips: Cow<'a, [RequestedIp]>,
    mac: Option<RequestedMac>,
    guid: Option<Guid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    device: Option<Cow<'a, str>>,
}

impl<'a> From<&'a plan::Requested> for Requested<'a> {
    fn from(requested: &'a plan::Requested) -> Requested<'a> {
        Requested {
            ips: Cow::Borrowed(&requested.ips),
            mac: requested.mac,
            guid: requested.guid,
            device: requested.device.as_deref().map(Cow::Borrowed),
        }
    }
}

impl From<Requested<'_>> for plan::Requested {
    fn from(requested: Requested<'_>) -> plan::Requested {
        plan::Requested {
            ips: requested.ips.into_owned(),
            mac: requested.mac,
            guid: requested.guid,
            device: requested.device.map(Cow::into_owned),
        }
    }
}

/// The device of an attachment: [`AllocatedDevice`].
#[derive(Serialize, Deserialize)]
struct Allocated<'a> {
    id: Cow<'a, str>,
    resource: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    driver: Option<Cow<'a, str>>,
    /// Missing in records of releases that did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<Source>,
}

/// [`Origin`].
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Source {
    Manifest,
    PodResources,
    Checkpoint,
    Dra,
}

impl<'a> From<&'a AllocatedDevice> for Allocated<'a> {
    fn from(device: &'a AllocatedDevice) -> Allocated<'a> {
        Allocated {
            id: Cow::Borrowed(&device.id),
            resource: Cow::Borrowed(&device.resource),
            driver: device.driver.as_deref().map(Cow::Borrowed),
            origin: device.origin.map(|origin| match origin {
                Origin::Manifest => Source::Manifest,
                Origin::PodResources => Source::PodResources,
                Origin::Checkpoint => Source::Checkpoint,
                Origin::Dra => Source::Dra,
            }),
        }
    }
}

impl From<Allocated<'_>> for AllocatedDevice {
    fn from(device: Allocated<'_>) -> AllocatedDevice {
        AllocatedDevice {
            id: device.id.into_owned(),
            resource: device.resource.into_owned(),
            driver: device.driver.map(Cow::into_owned),
            origin: device.origin.map(|source| match source {
                Source::Manifest => Origin::Manifest,
                Source::PodResources => Origin::PodResources,
                Source::Checkpoint => Origin::Checkpoint,
                Source::Dra => Origin::Dra,
            }),
        }
    }
}

/// A configuration is kept byte for byte: numbers and unknown keys stay as they were written.
mod as_written {
    use std::borrow::Cow;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::value::RawValue;

    use crate::cni::NetworkConfig;

    pub(super) fn serialize<S: Serializer>(
        config: &NetworkConfig,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        let raw: &RawValue =
            serde_json::from_str(config.raw()).map_err(serde::ser::Error::custom)?;
        raw.serialize(out)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        input: D,
    ) -> Result<Cow<'static, NetworkConfig>, D::Error> {
        let raw = Box::<RawValue>::deserialize(input)?;
        NetworkConfig::recorded(raw.get().as_bytes())
            .map(Cow::Owned)
            .map_err(serde::de::Error::custom)
    }
}
