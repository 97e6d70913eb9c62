//! The golden files of the tests: what this release and the previous one write, byte for byte.
//!
//! `WRITE_GOLDEN=1 cargo test --lib golden` writes those of this release.

use std::fs;
use std::path::PathBuf;

/// Compares what this release writes with `tests/golden/current/NAME`.
pub(crate) fn assert_current(name: &str, written: &[u8]) {
    let path = path("current", name);
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        return fs::write(path, written).unwrap();
    }
    let expected = fs::read(&path).unwrap_or_default();
    assert!(
        expected == written,
        "{}: this release writes another form; keep the form, or raise its version and run \
         WRITE_GOLDEN=1 cargo test --lib golden\nfile:    {}\nwritten: {}",
        path.display(),
        String::from_utf8_lossy(&expected),
        String::from_utf8_lossy(written),
    );
}

/// What the previous release wrote as `tests/golden/previous/NAME`.
pub(crate) fn previous(name: &str) -> Vec<u8> {
    let path = path("previous", name);
    fs::read(&path).unwrap_or_else(|cause| panic!("{}: {cause}", path.display()))
}

fn path(release: &str, name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    folder.join(release).join(name)
}
