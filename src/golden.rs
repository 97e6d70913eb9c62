//! Golden files, which contain the exact output of this release and of the previous release.
//!
//! `WRITE_GOLDEN=1 cargo test --lib golden` writes the golden files of this release.

use std::fs;
use std::path::PathBuf;

/// Compares the output of this release with `tests/golden/current/NAME`. If `WRITE_GOLDEN` is set,
/// writes this file instead.
pub(crate) fn assert_current(name: &str, written: &[u8]) {
    let path = path("current", name);
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        return fs::write(path, written).unwrap();
    }
    let expected = fs::read(&path).unwrap_or_default();
    assert!(
        expected == written,
        "{}: the output of this release differs; keep the format, or raise its version and run \
         WRITE_GOLDEN=1 cargo test --lib golden\nfile:    {}\nwritten: {}",
        path.display(),
        String::from_utf8_lossy(&expected),
        String::from_utf8_lossy(written),
    );
}

/// Reads the output of the previous release from `tests/golden/previous/NAME`.
pub(crate) fn previous(name: &str) -> Vec<u8> {
    let path = path("previous", name);
    fs::read(&path).unwrap_or_else(|cause| panic!("{}: {cause}", path.display()))
}

fn path(release: &str, name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    folder.join(release).join(name)
}
