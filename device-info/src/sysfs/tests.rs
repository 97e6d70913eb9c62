//! Tests with attributes that are missing, unreadable or invalid, and with links that form a cycle.

use std::os::unix::fs::symlink;
use std::path::Path;

use nix::sys::stat::Mode;

use super::*;
use crate::fixtures;

const PF: &str = "devices/pci0000:00/0000:00:04.0/0000:01:00.0";
const VF: &str = "devices/pci0000:00/0000:00:04.0/0000:01:10.0";

/// Builds the igb fixture in a directory and changes one path.
fn igb_with(path: &str, change: impl FnOnce(&Path)) -> (tempfile::TempDir, Sysfs) {
    let directory = tempfile::tempdir().unwrap();
    let sysfs = fixtures::igb().build(directory.path()).unwrap();
    let path = sysfs.root().join(path);
    let _ = std::fs::remove_file(&path);
    change(&path);
    (directory, sysfs)
}

fn numa_of_vf(sysfs: &Sysfs) -> Option<u32> {
    sysfs
        .pci_function("0000:01:10.0".parse().unwrap())
        .unwrap()
        .numa_node()
}

#[test]
fn an_empty_or_absent_attribute_is_unknown_without_a_remark() {
    for text in ["", "\n", " \n"] {
        let (_directory, sysfs) = igb_with(&format!("{VF}/numa_node"), |path| {
            std::fs::write(path, text).unwrap()
        });
        assert_eq!(numa_of_vf(&sysfs), None);
        assert_eq!(sysfs.take_remarks(), []);
    }
    let (_directory, sysfs) = igb_with(&format!("{VF}/numa_node"), |_| {});
    assert_eq!(numa_of_vf(&sysfs), None);
    assert_eq!(sysfs.take_remarks(), []);
}

#[test]
fn an_attribute_without_its_line_feed_is_read() {
    let (_directory, sysfs) = igb_with(&format!("{VF}/numa_node"), |path| {
        std::fs::write(path, "1").unwrap()
    });
    assert_eq!(numa_of_vf(&sysfs), Some(1));
}

#[test]
fn a_bad_attribute_causes_a_remark_of_one_line() {
    type Change = fn(&Path);
    let cases: [(Change, &str); 5] = [
        (
            |path| std::fs::write(path, "x".repeat(10 << 20)).unwrap(),
            "larger than 4096 bytes",
        ),
        (
            |path| std::fs::write(path, "seven\n").unwrap(),
            "\"seven\" is not a NUMA node",
        ),
        (
            |path| std::fs::write(path, [0xff, 0xfe]).unwrap(),
            "is not text",
        ),
        // Reading a process's memory at address 0 fails with EIO.
        (|path| symlink("/proc/self/mem", path).unwrap(), "I/O error"),
        (|path| symlink("numa_node", path).unwrap(), "symbolic links"),
    ];
    for (change, reason) in cases {
        let (_directory, sysfs) = igb_with(&format!("{VF}/numa_node"), change);
        assert_eq!(numa_of_vf(&sysfs), None);
        let remarks = sysfs.take_remarks();
        let [remark] = remarks.as_slice() else {
            panic!("{reason}: {remarks:?}");
        };
        let text = remark.to_string();
        assert!(
            text.contains("0000:01:10.0/numa_node") && text.contains(reason),
            "{text}"
        );
        assert!(text.contains("; check ") && !text.contains('\n'), "{text}");
    }
}

#[test]
fn a_fifo_in_place_of_an_attribute_does_not_block_the_reader() {
    let (_directory, sysfs) = igb_with(&format!("{VF}/numa_node"), |path| {
        nix::unistd::mkfifo(path, Mode::S_IRWXU).unwrap();
    });
    assert_eq!(numa_of_vf(&sysfs), None);
}

#[test]
fn an_attribute_that_the_driver_does_not_support_has_no_value() {
    use std::io;
    for errno in [
        nix::errno::Errno::EOPNOTSUPP,
        nix::errno::Errno::EINVAL,
        nix::errno::Errno::ENODEV,
        nix::errno::Errno::ENOENT,
    ] {
        let error = io::Error::from(errno);
        let cause = attribute::Cause::of(&error);
        assert!(AttributeError::new(Path::new("phys_port_name"), cause).is_absence());
    }
    let error = io::Error::from(nix::errno::Errno::EIO);
    assert!(!AttributeError::new(Path::new("speed"), attribute::Cause::of(&error)).is_absence());
}

#[test]
fn a_device_that_vanishes_between_two_reads_is_unknown_from_then_on() {
    let directory = tempfile::tempdir().unwrap();
    let sysfs = fixtures::igb().build(directory.path()).unwrap();
    let vf = sysfs.pci_function("0000:01:10.0".parse().unwrap()).unwrap();
    assert_eq!(vf.driver().as_deref(), Some("igbvf"));
    std::fs::remove_dir_all(sysfs.root().join(VF)).unwrap();
    assert_eq!(
        (vf.driver(), vf.vf_index(), vf.netdev(), vf.vendor()),
        (None, None, None, None)
    );
    assert_eq!(sysfs.take_remarks(), []);
}

#[test]
fn links_that_form_a_cycle_cause_no_endless_search() {
    let directory = tempfile::tempdir().unwrap();
    let sysfs = fixtures::igb().build(directory.path()).unwrap();
    // The PF names its own VF as its PF, and the VF names itself as one of its VFs.
    symlink("../0000:01:10.0", sysfs.root().join(PF).join("physfn")).unwrap();
    symlink("../0000:01:10.2", sysfs.root().join(VF).join("virtfn0")).unwrap();
    symlink("../0000:01:10.0", sysfs.root().join(VF).join("virtfn1")).unwrap();
    let vf = sysfs.pci_function("0000:01:10.0".parse().unwrap()).unwrap();
    assert_eq!(vf.vf_index(), Some(0));
    assert!(!vf.vfs().iter().any(|(_, address)| *address == vf.address()));
    let (count, _) = cost::of(|| crate::Capture::read(&sysfs, None));
    assert!(count.lines().count() > 0);
}

#[test]
fn the_number_of_remarks_is_bounded() {
    let sysfs = Sysfs::at("/nowhere", "/nowhere");
    for number in 0..1000 {
        let path = format!("/nowhere/{number}");
        sysfs.remark(AttributeError::new(
            Path::new(&path),
            attribute::Cause::Huge,
        ));
    }
    assert_eq!(sysfs.take_remarks().len(), MAX_REMARKS);
    assert_eq!(sysfs.take_remarks(), []);
}

#[test]
fn the_crate_sysfs_class_reads_devices_within_the_size_limit() {
    use sysfs_class::SysClass;
    let (_directory, sysfs) = igb_with(&format!("{VF}/config"), |path| {
        std::fs::write(path, "x".repeat(1 << 20)).unwrap()
    });
    let vf = sysfs.pci_function("0000:01:10.0".parse().unwrap()).unwrap();
    assert_eq!(vf.id(), "0000:01:10.0");
    assert_eq!(vf.trim_file("vendor").unwrap(), "0x8086");
    assert_eq!(vf.parse_file::<i32, _>("numa_node").unwrap(), -1);
    assert!(vf.read_file("config").is_err());
    assert!(vf.read_file("nothing").is_err());
    assert_eq!(
        <crate::PciFunction as SysClass>::dir(),
        Path::new("/sys/bus/pci/devices")
    );
}
