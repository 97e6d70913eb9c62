//! Fuzz targets for files on the node: files of the journal, Multus' cache, files of kubelet, the
//! runtime's CNI configuration directory, device-info files, and the PCI ID database. Another
//! program or a previous release may have written such a file, or a failing disk may have damaged
//! it.

use std::collections::BTreeSet;
use std::fs;

use device_info::{Capture, DeviceInfo, PciNames, WireDeviceInfo};

use super::{accepted, of_lines, parts, said, settles, text};
use crate::allocation::Checkpoint;
use crate::cluster::OwedWrites;
use crate::cni::RawObject;
use crate::journal::{Journal, Key, MultusCache, record};
use crate::setup::conf::OurConf;
use crate::setup::manifest::Manifest;
use crate::setup::takeover::{self, FromMultus};
use crate::setup::{HostPaths, directory};

/// Creates a temporary directory with these files. Dropping the value removes the directory.
pub(super) fn dir_with(files: &[(&str, &[u8])]) -> Option<tempfile::TempDir> {
    let dir = tempfile::tempdir().ok()?;
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent()?).ok()?;
        fs::write(path, text).ok()?;
    }
    Some(dir)
}

fn key() -> Option<Key> {
    Some(Key {
        container: "c".parse().ok()?,
        ifname: "eth0".parse().ok()?,
    })
}

/// Reads the input as a record, once unchanged and once with a valid length and checksum before
/// every line. Also reads the input as the marker of a failed detachment. Checks that a readable
/// record can be written and read again.
pub(super) fn journal(bytes: &[u8]) -> Option<()> {
    for text in [bytes.to_vec(), of_lines(bytes, record::append_json)] {
        let dir = dir_with(&[("sandboxes/c@eth0", &text), ("owed/c@eth0", bytes)])?;
        let journal = Journal::new(dir.path());
        journal.all_owed();
        journal.due(None);
        let survey = accepted(journal.survey());
        let damaged = survey.iter().flat_map(|survey| &survey.damaged);
        damaged.for_each(|it| said(&it.cause));
        for found in survey.into_iter().flat_map(|survey| survey.records) {
            let sandbox = found.sandbox;
            assert!(sandbox.to_detach().len() <= sandbox.header.attachments.len());
            assert!(journal.write(&sandbox).is_ok());
            let again = journal.find(&sandbox.header.key());
            let again = again.map(|it| format!("{it:?}")).unwrap_or_default();
            assert!(again.starts_with("Found("), "{again}");
        }
        accepted(journal.find(&key()?));
    }
    Some(())
}

/// Reads the cache of Multus. The input contains the file of a sandbox, a zero byte, and the file
/// in which libcni caches one attachment.
pub(super) fn multus_cache(bytes: &[u8]) -> Option<()> {
    let [sandbox, result] = parts(bytes);
    let files = [("c", sandbox), ("results/net-c-eth0", result)];
    let (dir, key) = (dir_with(&files)?, key()?);
    let cache = MultusCache::new(dir.path());
    let known = cache.read(&key);
    known.damage.iter().for_each(|line| said(line));
    assert!(cache.containers().contains(&key.container));
    Some(())
}

/// Reads the input as `kubelet_internal_checkpoint` and as `dra_manager_state`.
pub(super) fn kubelet_files(bytes: &[u8]) -> Option<()> {
    crate::allocation::claimed(bytes);
    let dir = dir_with(&[("checkpoint", bytes)])?;
    let checkpoint = accepted(Checkpoint::read(&dir.path().join("checkpoint")))?;
    for pod in ["", "u", "5e0b1e3e"] {
        for (resource, ids) in checkpoint.devices_of(pod, &["app", "init"]) {
            assert!(checkpoint.is_registered(&resource));
            let has = |id: &String| checkpoint.holders(id).any(|holder| holder == pod);
            assert!(ids.iter().take(32).all(has));
        }
    }
    Some(())
}

/// Reads an owed write: a file with a pod's statuses and events that the API server has not
/// received yet. Checks that the content can be written and read again.
pub(super) fn owed_writes(bytes: &[u8]) -> Option<()> {
    const NAME: &str = "0000000001.000000001-1.json";
    let dir = dir_with(&[(&format!("publish/{NAME}"), bytes)])?;
    let owed = OwedWrites::new(dir.path());
    let survey = owed.survey().unwrap_or_default();
    match owed.read(NAME) {
        Ok(Some(write)) => {
            assert_eq!((survey.waiting.len(), survey.broken.len()), (1, 0));
            settles(&write.publication);
            assert!(owed.keep(&write.publication).is_ok());
            let kept = owed.names().unwrap_or_default();
            let is_whole = |name: &String| matches!(owed.read(name), Ok(Some(_)));
            assert!(kept.iter().all(is_whole), "{kept:?}");
        }
        Ok(None) => assert!(survey.waiting.is_empty() && survey.broken.is_empty()),
        Err(cause) => {
            assert_eq!((survey.waiting.len(), survey.broken.len()), (0, 1));
            said(&cause);
        }
    }
    Some(())
}

/// Reads the CNI configuration directory of the runtime. The input contains a CNI configuration
/// (for Jackfield, Multus or a different plugin), a zero byte, and Jackfield's manifest.
pub(super) fn installation(bytes: &[u8]) -> Option<()> {
    let [conf, manifest] = parts(bytes);
    let files = [
        ("net.d/00-a.conflist", conf),
        ("net.d/.jackfield/manifest.json", manifest),
    ];
    let dir = dir_with(&files)?;
    let paths = HostPaths {
        host_root: dir.path().to_owned(),
        conf_dir: "/net.d".into(),
        cluster_conf_dir: "/net.d".into(),
        bin_dir: "/bin".into(),
    };
    accepted(Manifest::read(&paths));
    if let directory::Kind::Broken(cause) = directory::kind(&dir.path().join("net.d/00-a.conflist"))
    {
        said(&cause);
    }
    let from = FromMultus {
        dry_run: true,
        ..FromMultus::default()
    };
    if let Some(takeover) = accepted(takeover::read(&paths, &from, None)) {
        let remarks = takeover.remarks.iter();
        remarks.for_each(|remark| said(remark));
        written_and_read(&takeover.ours);
    }
    written_and_read(&RawObject::parse_configuration(conf).ok()?);
    Some(())
}

/// Generates Jackfield's configuration from a template. Checks that Jackfield recognizes the
/// configuration as its own, and that reading and writing the configuration again changes nothing.
fn written_and_read(template: &RawObject) {
    let conf = OurConf::from_template(template);
    let text = conf.text();
    let object = RawObject::parse(text.as_bytes());
    let again = object.ok().and_then(|object| OurConf::read(&object));
    assert_eq!(again.map(|it| it.text()), Some(text));
    accepted(conf.node_config());
}

/// Parses the input as a capture, and as a device-info file of a device plugin or delegate. Checks
/// that an accepted value can be written and read again.
pub(super) fn device_info(bytes: &[u8]) -> Option<()> {
    capture(bytes);
    let wire = accepted(WireDeviceInfo::from_json(bytes))?;
    for id in ["0000:01:10.0", "vdpa0", ""] {
        let _ = wire.describes(id);
    }
    let info = accepted(DeviceInfo::try_from(wire))?;
    let text = serde_json::to_string(&WireDeviceInfo::from(info.clone())).unwrap_or_default();
    let again = WireDeviceInfo::from_json(text.as_bytes()).map(DeviceInfo::try_from);
    assert_eq!(again.and_then(|again| again).ok(), Some(info), "{text}");
    Some(())
}

/// Parses a capture, which describes the hardware of a machine in JSON.
fn capture(bytes: &[u8]) -> Option<()> {
    let capture = accepted(Capture::from_json(text(bytes)?))?;
    capture.lines().for_each(drop);
    let again = Capture::from_json(&capture.to_json());
    assert_eq!(again.ok(), Some(capture));
    Some(())
}

/// Parses the PCI ID database of the node and looks up the names of two devices in it.
pub(super) fn pci_names(bytes: &[u8]) -> Option<()> {
    let wanted = BTreeSet::from([(0x15b3, 0x101e), (0x8086, 0x1572)]);
    let names = PciNames::parse(bytes, &wanted);
    for (vendor, device) in wanted {
        let found = [names.vendor(vendor), names.device(vendor, device)];
        for name in found.into_iter().flatten() {
            said(&name);
            assert!(name.len() <= 160 && !name.is_empty(), "{name}");
        }
    }
    Some(())
}
