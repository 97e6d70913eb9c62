//! The virtual machine's kernel and root file system, which `lab/setup` prepares.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// The path of the script. The suite runs from a checkout.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/lab/setup");

/// The files that QEMU boots.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Images {
    pub(super) kernel: PathBuf,
    pub(super) initramfs: PathBuf,
    /// The folder with `dpdk-testpmd`.
    pub(super) dpdk: PathBuf,
}

/// Returns the cache folder: `JACKFIELD_VM_DIR`, otherwise below the user's cache.
pub(super) fn folder() -> PathBuf {
    folder_from(|name| std::env::var_os(name).filter(|value| !value.is_empty()))
}

fn folder_from(variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    if let Some(own) = variable("JACKFIELD_VM_DIR") {
        return PathBuf::from(own);
    }
    let cache = variable("XDG_CACHE_HOME").map_or_else(
        || Path::new(&variable("HOME").unwrap_or_else(|| "/root".into())).join(".cache"),
        PathBuf::from,
    );
    cache.join("jackfield/vm")
}

/// Runs the script, which does nothing if everything exists.
pub(super) fn prepare(refresh: bool) -> Result<Images, SetupError> {
    let start = |source| SetupError::Start {
        script: SCRIPT,
        source,
    };
    let mut out = tempfile::tempfile().map_err(start)?;
    let status = Command::new(SCRIPT)
        .arg(folder())
        .args(refresh.then_some("--refresh"))
        .stdin(Stdio::null())
        .stdout(out.try_clone().map_err(start)?)
        .status()
        .map_err(start)?;
    if !status.success() {
        return Err(SetupError::Failed {
            script: SCRIPT,
            status,
        });
    }
    let output = all_of(&mut out).map_err(start)?;
    images(&output).ok_or(SetupError::Output {
        script: SCRIPT,
        output,
    })
}

fn all_of(file: &mut File) -> io::Result<String> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text)
}

fn images(output: &str) -> Option<Images> {
    let value = |key: &str| {
        output
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
            .map(PathBuf::from)
    };
    Some(Images {
        kernel: value("kernel")?,
        initramfs: value("initramfs")?,
        dpdk: value("dpdk")?,
    })
}

/// Why the set-up failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError {
    #[error("{script}: {source}; run hw-tests from a checkout of Jackfield")]
    Start {
        script: &'static str,
        source: io::Error,
    },
    #[error("{script}: {status}; see its message above")]
    Failed {
        script: &'static str,
        status: ExitStatus,
    },
    #[error("{script} did not print the paths of kernel and initramfs, but: {output}")]
    Output {
        script: &'static str,
        output: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_outside_the_checkout_and_can_be_chosen() {
        let with = |set: &'static [(&str, &str)]| {
            folder_from(move |name| {
                let found = set.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| (*value).into())
            })
        };
        assert_eq!(with(&[("JACKFIELD_VM_DIR", "/a")]), Path::new("/a"));
        assert_eq!(
            with(&[("XDG_CACHE_HOME", "/c"), ("HOME", "/h")]),
            Path::new("/c/jackfield/vm")
        );
        assert_eq!(with(&[("HOME", "/h")]), Path::new("/h/.cache/jackfield/vm"));
    }

    #[test]
    fn the_scripts_output_is_read_by_key() {
        let images =
            images("version=6.12\nkernel=/c/vmlinux\ninitramfs=/c/i.cpio\ndpdk=/c/d\n").unwrap();
        assert_eq!(images.kernel, Path::new("/c/vmlinux"));
        assert_eq!(images.initramfs, Path::new("/c/i.cpio"));
        assert!(super::images("kernel=/c/vmlinux\n").is_none());
    }
}
