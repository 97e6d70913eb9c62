//! What comes over sockets: the agent's frames, kubelet's gRPC, the kernel's netlink; and what the
//! kernel shows of devices in files.

use std::fs;
use std::path::PathBuf;

use device_info::{Facts, Inventory, fixtures, fuzzing};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{said, settles};
use crate::cluster::frame::{self, FromAgent, MAX_FROM_AGENT, MAX_TO_AGENT, ToAgent};
use crate::journal::wire::Route;
use crate::kernel::DefaultRoute;

/// What plugin and agent say to each other: as a whole frame, and as the JSON of one.
pub(super) fn frames(bytes: &[u8]) {
    let Ok(length) = u32::try_from(bytes.len()) else {
        return;
    };
    let header = [&b"JF\x00\x01"[..], &length.to_be_bytes()].concat();
    for frame in [bytes.to_vec(), [&header, bytes].concat()] {
        message::<ToAgent>(&frame, MAX_TO_AGENT);
        message::<FromAgent>(&frame, MAX_FROM_AGENT);
    }
}

fn message<T: DeserializeOwned + Serialize>(frame: &[u8], limit: usize) {
    match frame::read::<T>(&mut &*frame, limit) {
        Ok(message) => {
            settles(&message);
            // The other side's may be shorter: this one writes every key.
            let written = frame::encode(&message, usize::MAX).unwrap_or_default();
            assert!(frame::read::<T>(&mut written.as_slice(), usize::MAX).is_ok());
        }
        Err(error) => said(&error),
    }
}

/// kubelet's answers to all that it is asked.
pub(super) fn pod_resources(bytes: &[u8]) {
    for answer in crate::kubelet::answered(bytes) {
        match answer {
            Ok(devices) => settles(&devices),
            Err(error) => said(&error),
        }
    }
}

/// A piece of rtnetlink's answer. Default routes go into the journal and back.
pub(super) fn netlink(bytes: &[u8]) {
    for outcome in crate::kernel::default_routes_in(bytes) {
        match outcome {
            Ok(routes) => {
                for route in routes {
                    let written = serde_json::to_string(&Route::from(&route)).unwrap_or_default();
                    let again = serde_json::from_str::<Route<'_>>(&written).ok();
                    let again = again.map(DefaultRoute::from);
                    assert_eq!(again.as_ref(), Some(&route));
                    said(&route);
                }
            }
            Err(error) => said(&error),
        }
    }
}

/// A datagram of devlink's.
pub(super) fn devlink(bytes: &[u8]) {
    if let Err(error) = fuzzing::devlink(bytes) {
        said(&error);
    }
}

/// A machine of which one attribute, which the first two octets choose, holds the others. Whatever
/// it holds, everything that is read of the machine is read.
pub(super) fn sysfs(bytes: &[u8]) {
    let Some(([high, low], value)) = bytes.split_first_chunk() else {
        return;
    };
    thread_local!(static MACHINE: Option<Machine> = Machine::new());
    MACHINE.with(|machine| {
        let Some(machine) = machine else { return };
        let place =
            usize::from(u16::from_be_bytes([*high, *low])) % machine.attributes.len().max(1);
        let Some((path, before)) = machine.attributes.get(place) else {
            return;
        };
        assert!(fs::write(path, value).is_ok());
        let sysfs = device_info::Sysfs::at(&machine.root, machine.root.with_file_name("dev"));
        let _ = Inventory::read(&sysfs, &mut |_| None);
        for id in ["0000:01:10.0", "0000:3b:00.3", "vdpapci0"] {
            let _ = Facts::read(&sysfs, id, &mut |_| None);
        }
        sysfs.take_remarks().iter().for_each(|remark| said(remark));
        assert!(fs::write(path, before).is_ok());
    });
}

struct Machine {
    root: PathBuf,
    attributes: Vec<(PathBuf, Vec<u8>)>,
    _dir: tempfile::TempDir,
}

impl Machine {
    fn new() -> Option<Machine> {
        let dir = tempfile::tempdir().ok()?;
        let machine = fixtures::igb_vfio()
            .with(fixtures::unverified_connectx6(2))
            .with(fixtures::vp_vdpa_virtio())
            .with(fixtures::ipoib());
        let sysfs = machine.build(dir.path()).ok()?;
        let root = sysfs.root().to_owned();
        let paths = machine.lines().filter_map(|line| {
            let (path, _) = line.split_once(" = ")?;
            (!path.starts_with('/')).then(|| root.join(path))
        });
        let attributes = paths.filter_map(|path| {
            let before = fs::read(&path).ok()?;
            Some((path, before))
        });
        Some(Machine {
            attributes: attributes.collect(),
            root,
            _dir: dir,
        })
    }
}
