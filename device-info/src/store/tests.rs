use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use nix::sys::stat::Mode;

use super::*;

const ID: &str = "0000:01:10.0";

fn info(address: &str) -> DeviceInfo {
    serde_json::from_str(&format!(
        r#"{{"type":"pci","version":"1.1.0","pci":{{"pci-address":"{address}"}},"kept":[1]}}"#
    ))
    .unwrap()
}

fn files() -> (tempfile::TempDir, DeviceInfoDir) {
    let directory = tempfile::tempdir().unwrap();
    let files = DeviceInfoDir::at(directory.path().join("run/devinfo"));
    (directory, files)
}

/// Reads a device plugin's file that `make` created in `dp/`.
fn with_dp(make: impl FnOnce(&Path)) -> Result<Option<WireDeviceInfo>, StoreError> {
    let (_directory, files) = files();
    let dp = files.base.join("dp");
    fs::create_dir_all(&dp).unwrap();
    make(&dp.join("intel.com-sriov-0000:01:10.0-device.json"));
    files.read_dp("intel.com/sriov", ID)
}

#[test]
// clause: DEVINFO-1.1.0 §4.1 path: the path ends in <resourceName>-<deviceID>-device.json
// clause: DEVINFO-1.1.0 §4.1 slashes: a slash in the name of a resource is replaced
fn a_device_plugins_file_is_found_by_resource_and_device() {
    let found = with_dp(|path| fs::write(path, serde_json::to_vec(&info(ID)).unwrap()).unwrap());
    assert_eq!(found.unwrap(), Some(info(ID).into()));
}

#[test]
fn a_missing_file_of_a_device_plugin_is_not_an_error() {
    let (_directory, files) = files();
    assert_eq!(files.read_dp("intel.com/sriov", ID).unwrap(), None);
    files.prepare_cni().unwrap();
    assert_eq!(files.read_dp("intel.com/sriov", ID).unwrap(), None);
    fs::create_dir(files.base.join("dp")).unwrap();
    assert_eq!(files.read_dp("intel.com/sriov", ID).unwrap(), None);
}

#[test]
fn a_read_only_file_of_the_reference_library_is_replaced() {
    let (_directory, files) = files();
    files.write_dp("r", ID, &info(ID)).unwrap();
    let path = files.base.join("dp/r-0000:01:10.0-device.json");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    files.write_dp("r", ID, &info(ID)).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o644);
}

#[test]
fn an_unsafe_or_broken_file_is_refused_with_a_remedy() {
    type Make = fn(&Path);
    let cases: [(Make, &str); 8] = [
        (
            |path| symlink("/etc/passwd", path).unwrap(),
            "is a symbolic link",
        ),
        (
            |path| symlink("absent", path).unwrap(),
            "is a symbolic link",
        ),
        (
            |path| nix::unistd::mkfifo(path, Mode::S_IRWXU).unwrap(),
            "is not a regular file",
        ),
        (
            |path| fs::create_dir(path).unwrap(),
            "is not a regular file",
        ),
        (
            |path| drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
            "is not a regular file",
        ),
        (
            |path| fs::write(path, "x".repeat(10 << 20)).unwrap(),
            "is larger than 64 KiB",
        ),
        (
            |path| fs::write(path, r#"{"type":"pci","version":"1.1.0","pc"#).unwrap(),
            "EOF while parsing",
        ),
        (|path| fs::write(path, "").unwrap(), "device-info is broken"),
    ];
    for (make, finding) in cases {
        let error = with_dp(make).unwrap_err().to_string();
        for part in [
            "dp/intel.com-sriov-0000:01:10.0-device.json",
            finding,
            "remove",
        ] {
            assert!(error.contains(part), "{error} lacks {part}");
        }
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn a_file_of_another_user_is_refused() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can change the owner of a file");
        return;
    }
    let error = with_dp(|path| {
        fs::write(path, serde_json::to_vec(&info(ID)).unwrap()).unwrap();
        std::os::unix::fs::chown(path, Some(1000), None).unwrap();
    })
    .unwrap_err();
    assert!(
        error.to_string().contains("belongs neither to root"),
        "{error}"
    );
}

#[test]
fn a_directory_that_is_a_link_is_refused() {
    let (directory, files) = files();
    let elsewhere = directory.path().join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::create_dir_all(&files.base).unwrap();
    symlink(&elsewhere, files.base.join("cni")).unwrap();
    let name = CniFileName::of_attachment("a", "b", "c", "net1").unwrap();
    for error in [
        files.read_cni(&name).unwrap_err(),
        files.write_cni(&name, &info(ID)).unwrap_err(),
        files.remove_cni(&name).unwrap_err(),
    ] {
        assert!(error.to_string().contains("is not a directory"), "{error}");
    }
    assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 0);
}

#[test]
fn the_path_to_the_base_directory_may_contain_a_link() {
    let (directory, _) = files();
    fs::create_dir(directory.path().join("real")).unwrap();
    symlink("real", directory.path().join("run")).unwrap();
    let files = DeviceInfoDir::at(directory.path().join("run/devinfo"));
    let name = CniFileName::of_attachment("a", "b", "c", "net1").unwrap();
    files.write_cni(&name, &info(ID)).unwrap();
    assert!(
        directory
            .path()
            .join("real/devinfo/cni/a-b-c_net1")
            .is_file()
    );
}

#[test]
fn a_file_that_describes_another_device_is_refused() {
    let (_directory, files) = files();
    files.write_dp("a/b-c", ID, &info(ID)).unwrap();
    assert_eq!(
        DpFileName::new("r", "vdpa:mgmt/x").unwrap().as_str(),
        "r-vdpa:mgmt-x-device.json"
    );
    assert_eq!(
        DpFileName::new("a/b-c", ID).unwrap(),
        DpFileName::new("a-b/c", ID).unwrap()
    );
    assert!(files.read_dp("a-b/c", ID).unwrap().is_some());
    // Resources `a/b` and `a-b` have the same file name. The file for device `0000:01:10.1`
    // describes device `ID`.
    files.write_dp("a/b", "0000:01:10.1", &info(ID)).unwrap();
    let error = files
        .read_dp("a-b", "0000:01:10.1")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("a device other than \"0000:01:10.1\"") && error.contains("stale"),
        "{error}"
    );
}

// clause: DEVINFO-1.1.0 §4: the file contains one JSON map
#[test]
// clause: DEVINFO-1.1.0 §4.2.1 directory
// clause: DEVINFO-1.1.0 §4.2.1 delete
fn every_user_can_read_the_file_of_an_attachment() {
    let (_directory, files) = files();
    let name = CniFileName::of_attachment("default", "storage", "4f9c", "net1").unwrap();
    files.write_cni(&name, &info(ID)).unwrap();
    files.write_cni(&name, &info("0000:01:10.1")).unwrap();
    assert_eq!(
        files.read_cni(&name).unwrap(),
        Some(info("0000:01:10.1").into())
    );
    let path = files.cni_path(&name);
    assert!(path.ends_with("cni/default-storage-4f9c_net1"));
    for (path, mode) in [
        (path.as_path(), 0o644),
        (path.parent().unwrap(), 0o755),
        (&files.base, 0o755),
    ] {
        assert_eq!(
            fs::metadata(path).unwrap().mode() & 0o7777,
            mode,
            "{}",
            path.display()
        );
    }
    files.remove_cni(&name).unwrap();
    files.remove_cni(&name).unwrap();
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 0);
}

#[test]
fn a_link_is_replaced_and_not_followed() {
    let (directory, files) = files();
    let victim = directory.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    files.prepare_cni().unwrap();
    let name = CniFileName::of_attachment("a", "b", "c", "net1").unwrap();
    symlink(&victim, files.cni_path(&name)).unwrap();
    files.write_cni(&name, &info(ID)).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(
        fs::symlink_metadata(files.cni_path(&name))
            .unwrap()
            .is_file()
    );
}

#[test]
fn temporary_files_of_a_crash_are_overwritten_and_removed() {
    let (_directory, files) = files();
    files.prepare_cni().unwrap();
    let name = CniFileName::of_attachment("a", "b", "c", "net1").unwrap();
    let half = files
        .base
        .join("cni")
        .join(format!(".{}.tmp", name::hash(name.as_str())));
    fs::write(&half, "half").unwrap();
    files.write_cni(&name, &info(ID)).unwrap();
    assert!(!half.exists());
    fs::write(&half, "half").unwrap();
    files.remove_cni(&name).unwrap();
    assert!(!half.exists());
}

#[test]
fn a_failed_write_leaves_the_previous_file_and_nothing_else() {
    let (_directory, files) = files();
    files.prepare_cni().unwrap();
    let name = CniFileName::of_attachment("a", "b", "c", "net1").unwrap();
    fs::create_dir(files.cni_path(&name)).unwrap();
    let error = files.write_cni(&name, &info(ID)).unwrap_err().to_string();
    assert!(error.contains("a-b-c_net1 cannot be written"), "{error}");
    assert_eq!(fs::read_dir(files.base.join("cni")).unwrap().count(), 1);
}

#[test]
fn text_that_is_unsafe_in_a_file_name_is_refused() {
    for (resource, id) in [
        ("r", ".."),
        ("r", "../../etc/passwd"),
        ("r", "."),
        ("r", ""),
        ("", ID),
        ("..", ID),
        ("r\n", ID),
        ("r", "a\0b"),
    ] {
        assert!(
            matches!(DpFileName::new(resource, id), Err(StoreError::Name { .. })),
            "{resource:?} {id:?}"
        );
    }
    for parts in [
        ("..", "b", "c", "d"),
        ("a", "../b", "c", "d"),
        ("a", "b", "/c", "d"),
        ("a", "b", "c", ""),
        ("a", "b", "c", "x\ny"),
    ] {
        let (namespace, network, container, interface) = parts;
        assert!(
            CniFileName::of_attachment(namespace, network, container, interface).is_err(),
            "{parts:?}"
        );
    }
}

#[test]
fn a_path_that_is_not_directly_in_the_directory_is_refused() {
    let files = DeviceInfoDir::at(DeviceInfoDir::DEFAULT);
    let name = files
        .cni_name(Path::new("/var/run/k8s.cni.cncf.io/devinfo/cni/x_net1"))
        .unwrap();
    assert_eq!(name.as_str(), "x_net1");
    for path in [
        "/etc/passwd",
        "cni/x",
        "/var/run/k8s.cni.cncf.io/devinfo/cni/../dp/x",
        "/var/run/k8s.cni.cncf.io/devinfo/cni/a/b",
        "/var/run/k8s.cni.cncf.io/devinfo/cni/",
        "/var/run/k8s.cni.cncf.io/devinfo/cni/.x.tmp",
    ] {
        assert!(files.cni_name(Path::new(path)).is_err(), "{path}");
    }
}

#[test]
// clause: DEVINFO-1.1.0 §4.2: the file name is unique for each network attachment call
// clause: DEVINFO-1.1.0 §4.2.1 unique
fn names_over_255_bytes_are_hashed_and_stay_unique() {
    let long = "x".repeat(300);
    let of = |namespace: &str, container: &str, interface: &str| {
        CniFileName::of_attachment(namespace, &long, container, interface).unwrap()
    };
    let first = of("a", "4f9c", "net1");
    assert!(first.as_str().len() <= 255 && first.as_str().ends_with("-4f9c_net1"));
    for other in [
        of("b", "4f9c", "net1"),
        of("a", "4f9d", "net1"),
        of("a", "4f9c", "net2"),
    ] {
        assert_ne!(first, other);
    }
    // With this long container ID, the file name has no room for the interface name. The names must
    // still differ.
    assert_ne!(of("a", &long, "net1"), of("a", &long, "net2"));
    assert!(of("a", &long, "net1").as_str().len() <= 255);

    let (_directory, files) = files();
    files.write_dp(&long, ID, &info(ID)).unwrap();
    assert!(files.read_dp(&long, ID).unwrap().is_some());
    files.remove_dp(&long, ID).unwrap();
    assert_eq!(files.read_dp(&long, ID).unwrap(), None);
}
