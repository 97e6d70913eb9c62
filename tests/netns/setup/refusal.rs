//! What is refused says so in one line, and changes nothing.

use std::fs;
use std::path::{Path, PathBuf};

use super::Setup;
use crate::lab::{Outcome, run};

impl Setup {
    /// A call that is refused in one line with all of `words`, after which everything is as it was.
    #[track_caller]
    pub(super) fn refuses(&self, call: impl FnOnce(&Setup) -> Outcome, words: &[&str]) {
        let before = self.files();
        refused(&call(self), words);
        assert_eq!(self.files(), before);
    }

    /// The installation becomes one of another release.
    pub(super) fn is_of_release(&self, release: &str) {
        let manifest = self.lab.path("net.d/.jackfield/manifest.json");
        let text = fs::read_to_string(&manifest).unwrap();
        let ours = format!("\"{}\"", env!("CARGO_PKG_VERSION"));
        let theirs = text.replace(&ours, &format!("{release:?}"));
        assert_ne!(theirs, text);
        fs::write(&manifest, theirs).unwrap();
    }
}

/// One line, with all of `words`.
#[track_caller]
pub(super) fn refused(outcome: &Outcome, words: &[&str]) {
    assert_eq!(
        (outcome.exit, outcome.stdout.as_str()),
        (1, ""),
        "{outcome}"
    );
    let last = outcome.stderr.lines().last().unwrap_or_default();
    for word in words {
        assert!(last.contains(word), "{word:?} in {outcome}");
    }
}

/// A mounted file system; it is taken off with its test.
pub(super) struct Mount(PathBuf);

impl Mount {
    /// What is there at `at`, to be read alone.
    pub(super) fn read_only(at: &Path) -> Mount {
        let on = at.display().to_string();
        run("mount", &["--bind", &on, &on]);
        let mounted = Mount(at.into());
        run("mount", &["-o", "remount,ro,bind", &on]);
        mounted
    }

    pub(super) fn tmpfs(at: &Path, options: &str) -> Mount {
        let at = at.display().to_string();
        run("mount", &["-t", "tmpfs", "-o", options, "tmpfs", &at]);
        Mount(at.into())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        run("umount", &["-l", &self.0.display().to_string()]);
    }
}
