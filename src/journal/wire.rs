//! The JSON of the journal's records: every key, in the order in which it is written.
//!
//! Only these types name the keys, so renaming a field of a plan, a device or a route changes no
//! record. `tests/golden` pins the result.
//!
//! A pod waits while its record is written, so writing borrows: it copies no configuration and no
//! result. Values with one text form (addresses, GUIDs, interface names, CNI results and arguments)
//! keep their own serialization.

mod attachment;
mod device;
mod route;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{steps, unrestored};
use crate::cluster::PodName;
use crate::cni::{CniResult, ContainerId, InterfaceName};
use attachment::Attachment;
use device::Device;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use route::Route;
use route::RouteChange;

/// The first record of a sandbox: [`steps::Header`].
#[derive(Serialize, Deserialize)]
pub(super) struct Header<'a> {
    format: u32,
    boot: Cow<'a, str>,
    container: Cow<'a, ContainerId>,
    ifname: Cow<'a, InterfaceName>,
    netns: Cow<'a, str>,
    netns_id: Cow<'a, str>,
    args: Cow<'a, str>,
    pod: Option<Pod<'a>>,
    attachments: Vec<Attachment<'a>>,
}

impl<'a> From<&'a steps::Header> for Header<'a> {
    fn from(header: &'a steps::Header) -> Header<'a> {
        Header {
            format: header.format,
            boot: Cow::Borrowed(&header.boot),
            container: Cow::Borrowed(&header.container),
            ifname: Cow::Borrowed(&header.ifname),
            netns: Cow::Borrowed(&header.netns),
            netns_id: Cow::Borrowed(&header.netns_id),
            args: Cow::Borrowed(&header.args),
            pod: header.pod.as_ref().map(Pod::from),
            attachments: header.attachments.iter().map(Attachment::from).collect(),
        }
    }
}

impl From<Header<'_>> for steps::Header {
    fn from(header: Header<'_>) -> steps::Header {
        steps::Header {
            format: header.format,
            boot: header.boot.into_owned(),
            container: header.container.into_owned(),
            ifname: header.ifname.into_owned(),
            netns: header.netns.into_owned(),
            netns_id: header.netns_id.into_owned(),
            args: header.args.into_owned(),
            pod: header.pod.map(PodName::from),
            attachments: header.attachments.into_iter().map(Into::into).collect(),
        }
    }
}

/// The part of a [`Header`] that says whose the record is, without the attachments, whose
/// configurations may be long.
#[derive(Debug, Deserialize)]
pub(super) struct Owner {
    pub(super) boot: String,
    pub(super) container: ContainerId,
    pub(super) netns: String,
    pub(super) netns_id: String,
    pod: Option<Pod<'static>>,
}

impl Owner {
    /// Whether the record is that of `pod`.
    pub(super) fn is(&self, pod: &PodName) -> bool {
        self.pod.as_ref().is_some_and(|own| *own == Pod::from(pod))
    }
}

/// A pod: [`PodName`].
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Pod<'a> {
    namespace: Cow<'a, str>,
    name: Cow<'a, str>,
    uid: Option<Cow<'a, str>>,
}

impl<'a> From<&'a PodName> for Pod<'a> {
    fn from(pod: &'a PodName) -> Pod<'a> {
        Pod {
            namespace: Cow::Borrowed(&pod.namespace),
            name: Cow::Borrowed(&pod.name),
            uid: pod.uid.as_deref().map(Cow::Borrowed),
        }
    }
}

impl From<Pod<'_>> for PodName {
    fn from(pod: Pod<'_>) -> PodName {
        PodName {
            namespace: pod.namespace.into_owned(),
            name: pod.name.into_owned(),
            uid: pod.uid.map(Cow::into_owned),
        }
    }
}

/// A record after the first: [`steps::Step`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Step<'a> {
    Baseline(Vec<Device<'a>>),
    Started(usize),
    Attached(usize, Cow<'a, CniResult>),
    Failed(usize, usize),
    Routes(usize, RouteChange<'a>),
    Complete,
    Detached(usize),
}

impl<'a> From<&steps::Step<'a>> for Step<'a> {
    fn from(step: &steps::Step<'a>) -> Step<'a> {
        match *step {
            steps::Step::Baseline(devices) => {
                Step::Baseline(devices.iter().map(Device::from).collect())
            }
            steps::Step::Started(index) => Step::Started(index),
            steps::Step::Attached(index, result) => Step::Attached(index, Cow::Borrowed(result)),
            steps::Step::Failed(index, place) => Step::Failed(index, place),
            steps::Step::Routes(index, change) => Step::Routes(index, change.into()),
            steps::Step::Complete => Step::Complete,
            steps::Step::Detached(index) => Step::Detached(index),
        }
    }
}

/// An entry below `unrestored/`: [`unrestored::Unrestored`].
#[derive(Serialize, Deserialize)]
pub(super) struct Unrestored<'a> {
    boot: Cow<'a, str>,
    before: Device<'a>,
    pod: Option<Pod<'a>>,
    causes: Cow<'a, [String]>,
}

impl<'a> From<&'a unrestored::Unrestored> for Unrestored<'a> {
    fn from(device: &'a unrestored::Unrestored) -> Unrestored<'a> {
        Unrestored {
            boot: Cow::Borrowed(&device.boot),
            before: Device::from(&device.before),
            pod: device.pod.as_ref().map(Pod::from),
            causes: Cow::Borrowed(&device.causes),
        }
    }
}

impl From<Unrestored<'_>> for unrestored::Unrestored {
    fn from(device: Unrestored<'_>) -> unrestored::Unrestored {
        unrestored::Unrestored {
            boot: device.boot.into_owned(),
            before: device.before.into(),
            pod: device.pod.map(PodName::from),
            causes: device.causes.into_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
