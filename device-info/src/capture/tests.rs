use super::*;
use crate::fixtures;
use crate::sysfs::Sysfs;

fn all() -> Vec<(&'static str, Capture)> {
    vec![
        ("igb", fixtures::igb()),
        ("igb_vfio", fixtures::igb_vfio()),
        ("igb_noiommu", fixtures::igb_noiommu()),
        ("unverified_e810", fixtures::unverified_e810(12)),
        ("unverified_x710", fixtures::unverified_x710(12)),
        ("unverified_i350", fixtures::unverified_i350(7)),
        ("unverified_vmd", fixtures::unverified_vmd()),
        ("unverified_connectx6", fixtures::unverified_connectx6(12)),
        ("unverified_bluefield2", fixtures::unverified_bluefield2()),
        ("vdpasim", fixtures::vdpasim()),
        ("vduse", fixtures::vduse()),
        ("vp_vdpa_vhost", fixtures::vp_vdpa_vhost()),
        ("vp_vdpa_virtio", fixtures::vp_vdpa_virtio()),
        ("netdevsim", fixtures::netdevsim()),
        ("ipoib", fixtures::ipoib()),
        ("rxe", fixtures::rxe()),
    ]
}

/// Returns the lines of a capture without the values of addresses, GUIDs and switch IDs.
/// `Capture::read` redacts these values again, so a capture of the built machine may have other
/// values.
fn shape(capture: &Capture) -> Vec<String> {
    capture
        .lines()
        .map(|line| match line.split_once(" = ") {
            Some((path, _))
                if path.ends_with("address")
                    || path.ends_with("_guid")
                    || path.ends_with("gids/0")
                    || path.ends_with("switch_id") =>
            {
                path.to_owned()
            }
            _ => line,
        })
        .collect()
}

#[test]
fn a_machine_built_from_a_capture_gives_the_same_capture() {
    for (name, capture) in all() {
        let directory = tempfile::tempdir().unwrap();
        let sysfs = capture.build(directory.path()).unwrap();
        let again = Capture::read(&sysfs, None);
        let (found, made) = (shape(&again), shape(&capture));
        let lost: Vec<_> = made.iter().filter(|line| !found.contains(line)).collect();
        let more: Vec<_> = found.iter().filter(|line| !made.contains(line)).collect();
        assert!(
            lost.is_empty() && more.is_empty(),
            "{name}: lost {lost:#?}, more {more:#?}"
        );
        assert_eq!(sysfs.take_remarks(), [], "{name}");
    }
}

#[test]
fn a_capture_survives_json() {
    for (name, capture) in all() {
        assert_eq!(
            Capture::from_json(&capture.to_json()).unwrap(),
            capture,
            "{name}"
        );
    }
}

#[test]
fn an_unknown_format_or_a_truncated_capture_is_refused_in_one_line() {
    let text = fixtures::rxe().to_json();
    let other = text.replacen("\"format\": 1", "\"format\": 9", 1);
    assert!(
        Capture::from_json(&other)
            .unwrap_err()
            .to_string()
            .contains("format 9")
    );
    let error = Capture::from_json(text.split_at(text.len() / 2).0)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("capture the machine again") && !error.contains('\n'),
        "{error}"
    );
}

#[test]
fn a_capture_cannot_write_outside_its_directory() {
    for (path, node) in [
        ("../escape", Node::Text(String::new())),
        ("/tmp/escape", Node::Text(String::new())),
        ("a/../../escape", Node::Directory),
        ("", Node::Directory),
        ("link", Node::Link("../../escape".to_owned())),
        ("link", Node::Link("/etc".to_owned())),
    ] {
        let mut capture = Capture::default();
        capture.sysfs.insert(path.to_owned(), node);
        let directory = tempfile::tempdir().unwrap();
        let error = capture.build(directory.path()).unwrap_err();
        assert!(matches!(error, CaptureError::Outside(_)), "{path}: {error}");
    }
}

#[test]
fn nothing_is_created_through_a_link_of_the_capture() {
    let link = |target: &str| Node::Link(target.to_owned());
    let mut capture = Capture::default();
    for (path, node) in [
        ("p/q/up", link("../..")),
        ("root", link("p/q/up/..")),
        ("root/escape/link", link("anywhere")),
    ] {
        capture.sysfs.insert(path.to_owned(), node);
    }
    let directory = tempfile::tempdir().unwrap();
    let error = capture.build(directory.path()).unwrap_err();
    assert!(matches!(error, CaptureError::Io { .. }), "{error}");
    assert!(!directory.path().join("escape").exists());
}

#[test]
fn this_machine_can_be_captured_and_built_again() {
    let here = Capture::read(&Sysfs::host(), None);
    let directory = tempfile::tempdir().unwrap();
    let again = Capture::read(&here.build(directory.path()).unwrap(), None);
    assert_eq!(shape(&again), shape(&here));
}
