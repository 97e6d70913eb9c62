//! Tests of the manifest's format on disk.

use std::fs;

use super::*;
use crate::golden;

fn place(host_root: &Path) -> HostPaths {
    HostPaths {
        host_root: host_root.to_owned(),
        conf_dir: "/etc/cni/net.d".into(),
        cluster_conf_dir: "/etc/cni/net.d".into(),
        bin_dir: "/opt/cni/bin".into(),
    }
}

fn content() -> Content {
    serde_json::from_str(r#"{"size":4096,"crc32":7}"#).unwrap()
}

/// A manifest with every field.
fn example(place: &HostPaths) -> Manifest {
    let conf = PathBuf::from("/etc/cni/net.d/00-jackfield.conflist");
    let mut manifest = Manifest::new(place, content(), conf.clone(), true);
    manifest.version = semver::Version::new(0, 0, 1);
    manifest.network = Some(content());
    manifest.made_conf_dir = true;
    manifest.taken_over = Some(RawObject::parse(br#"{"type":"jackfield"}"#).unwrap());
    manifest.replaced.push(ReplacedFile {
        path: conf,
        kept: "0-00-jackfield.conflist".to_owned(),
        mode: 0o600,
        owner: Some((0, 0)),
    });
    manifest.installed = 1_000_000;
    manifest.repairs.push(1_000_001);
    manifest.is_leaving = true;
    manifest
}

fn text(manifest: &Manifest, place: &HostPaths) -> Vec<u8> {
    manifest.stage(place).unwrap().put().unwrap();
    fs::read(folder(place).join(FILE)).unwrap()
}

#[test]
fn golden_manifest_is_current() {
    let dir = tempfile::tempdir().unwrap();
    let place = place(dir.path());
    let written = text(&example(&place), &place);
    golden::assert_current("manifest.json", &written);
}

#[test]
fn golden_manifest_of_the_previous_release_is_readable() {
    let dir = tempfile::tempdir().unwrap();
    let place = place(dir.path());
    make_folder(&folder(&place)).unwrap();
    let file = folder(&place).join(FILE);
    fs::write(&file, golden::previous("manifest.json")).unwrap();
    let read = Manifest::read(&place).unwrap().unwrap();
    let mut expected = example(&place);
    expected.network = None;
    expected.installed = 0;
    expected.replaced[0].owner = None;
    assert_eq!(
        String::from_utf8(text(&read, &place)),
        String::from_utf8(text(&expected, &place))
    );
}
