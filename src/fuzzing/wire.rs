//! Targets for the frames between plugin and agent, kubelet's gRPC answers, the kernel's netlink
//! messages, and the files in sysfs.

use std::fs;
use std::path::PathBuf;

use device_info::{Facts, Inventory, fixtures, fuzzing};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{accepted, said, settles};
use crate::cluster::frame::{self, FromAgent, MAX_FROM_AGENT, MAX_TO_AGENT, ToAgent};
use crate::journal::RouteChange;

/// Reads a message between plugin and agent. Takes the input once as a whole frame and once as the
/// JSON in a frame.
pub(super) fn frames(bytes: &[u8]) -> Option<()> {
    let length = u32::try_from(bytes.len()).ok()?;
    let header = [&b"JF\x00\x01"[..], &length.to_be_bytes()].concat();
    for frame in [bytes.to_vec(), [&header, bytes].concat()] {
        message::<ToAgent>(&frame, MAX_TO_AGENT);
        message::<FromAgent>(&frame, MAX_FROM_AGENT);
    }
    Some(())
}

fn message<T: DeserializeOwned + Serialize>(frame: &[u8], limit: usize) {
    if let Some(message) = accepted(frame::read::<T>(&mut &*frame, limit)) {
        settles(&message);
        // The written frame may have keys that the input omits, so it may be larger than `limit`.
        let written = frame::encode(&message, usize::MAX).unwrap_or_default();
        assert!(frame::read::<T>(&mut written.as_slice(), usize::MAX).is_ok());
    }
}

/// Reads the input as each of kubelet's answers: to `Get`, to `List` and to
/// `GetAllocatableResources`.
pub(super) fn pod_resources(bytes: &[u8]) -> Option<()> {
    let answers = crate::kubelet::answered(bytes).into_iter();
    answers.filter_map(accepted).for_each(|it| settles(&it));
    Some(())
}

/// Reads a piece of an rtnetlink answer. Checks that default routes stay the same when the journal
/// writes and reads them.
pub(super) fn netlink(bytes: &[u8]) -> Option<()> {
    let answers = crate::kernel::default_routes_in(bytes).into_iter();
    for routes in answers.filter_map(accepted) {
        routes.iter().for_each(|route| said(route));
        let change = RouteChange {
            removed: routes,
            ..RouteChange::default()
        };
        let written = serde_json::to_string(&change).unwrap_or_default();
        assert_eq!(serde_json::from_str(&written).ok(), Some(change));
    }
    Some(())
}

/// Reads a datagram of devlink.
pub(super) fn devlink(bytes: &[u8]) -> Option<()> {
    accepted(fuzzing::devlink(bytes)).map(drop)
}

/// Writes a part of the input to one attribute in the sysfs of a fake machine, and then reads the
/// machine. The first two bytes choose the attribute. The other bytes are the attribute's new
/// content.
pub(super) fn sysfs(bytes: &[u8]) -> Option<()> {
    thread_local!(static MACHINE: Option<Machine> = Machine::new());
    let (place, value) = bytes.split_first_chunk()?;
    let place = usize::from(u16::from_be_bytes(*place));
    MACHINE.with(|machine| {
        let machine = machine.as_ref()?;
        let (path, before) = machine.attributes.iter().cycle().nth(place)?;
        assert!(fs::write(path, value).is_ok());
        let sysfs = device_info::Sysfs::at(&machine.root, machine.root.with_file_name("dev"));
        let _ = Inventory::read(&sysfs, &mut |_| None);
        for id in ["0000:01:10.0", "0000:3b:00.3", "vdpapci0"] {
            let _ = Facts::read(&sysfs, id, &mut |_| None);
        }
        sysfs.take_remarks().iter().for_each(|remark| said(remark));
        assert!(fs::write(path, before).is_ok());
        Some(())
    })
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
        let attributes = machine.lines().filter_map(|line| {
            let (path, _) = line.split_once(" = ")?;
            let path = (!path.starts_with('/')).then(|| root.join(path))?;
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
