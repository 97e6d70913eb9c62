//! Jackfield's binary: the machine that it is built for, its content and its mode.

use std::fmt;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::manifest::Manifest;
use super::problem::Drift;
use super::{HostPaths, SetupError};
use crate::cni::NetworkConfig;
use crate::regular_file;

/// The executable of this process. This path works even if the file was removed.
pub(super) const OURSELVES: &str = "/proc/self/exe";

/// The machine that a program is built for: `e_machine` of its ELF header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine(u16);

impl Machine {
    /// Returns the machine of the program at `path`. Returns `None` if the file cannot be read, or
    /// if it is not an ELF program.
    pub fn of(path: &Path) -> Option<Machine> {
        let mut header = [0; 20];
        let mut program = regular_file::open(path).ok()?;
        program.read_exact(&mut header).ok()?;
        let [0x7f, b'E', b'L', b'F', _, order, ..] = header else {
            return None;
        };
        let machine = [header[18], header[19]];
        Some(Machine(match order {
            2 => u16::from_be_bytes(machine),
            _ => u16::from_le_bytes(machine),
        }))
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            62 => f.write_str("x86-64"),
            183 => f.write_str("aarch64"),
            other => write!(f, "ELF machine {other}"),
        }
    }
}

/// The size and checksum of a file, which show whether its content has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    size: u64,
    crc32: u32,
}

impl Content {
    /// Reads the whole file and returns its size and checksum.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn of(path: &Path) -> io::Result<Content> {
        let mut file = regular_file::open(path)?;
        let (mut hash, mut size) = (crc32fast::Hasher::new(), 0);
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = file.read(&mut buffer)?;
            if read == 0 {
                let crc32 = hash.finalize();
                return Ok(Content { size, crc32 });
            }
            hash.update(buffer.get(..read).unwrap_or_default());
            size += read as u64;
        }
    }
}

/// The mode of the installed binary: every user may run the binary, and only root may change it.
pub(super) const MODE: u32 = 0o755;

/// Returns the mode and the owner of a program, if the mode is not [`MODE`] or the owner is not
/// root.
pub(super) fn wrong_mode(path: &Path) -> Option<(u32, u32)> {
    let found = path.metadata().ok()?;
    let (mode, owner) = (found.mode() & 0o7777, found.uid());
    let is_right = mode == MODE && owner == 0;
    (!is_right).then_some((mode, owner))
}

/// Returns how the binary on the node differs from the binary that was installed.
pub(super) fn drift(paths: &HostPaths, installed: &Manifest) -> Option<Drift> {
    let path = installed.binary.clone();
    let here = paths.here(&path);
    match Content::of(&here) {
        Ok(content) if content == installed.content => {
            let (mode, owner) = wrong_mode(&here)?;
            Some(Drift::BinaryMode { path, mode, owner })
        }
        Ok(_) => Some(Drift::BinaryReplaced(path)),
        Err(cause) => Some(Drift::BinaryUnreadable(path, Arc::new(cause))),
    }
}

/// Checks that the executable of this process is built for the same machine as the programs on the
/// node: the installed binary and the plugins of `network`. That this executable runs proves
/// nothing, because a kernel with emulation also runs executables for other machines.
///
/// # Errors
/// [`SetupError::OtherMachine`].
pub(super) fn check_machine(
    paths: &HostPaths,
    network: Option<&NetworkConfig>,
) -> Result<(), SetupError> {
    let Some(ours) = Machine::of(Path::new(OURSELVES)) else {
        return Ok(());
    };
    let plugins = network.iter().flat_map(|network| network.plugins());
    let types =
        plugins.flat_map(|plugin| std::iter::once(plugin.plugin_type()).chain(plugin.ipam_type()));
    let names = types.map(|name| paths.bin_dir.join(name.as_str()));
    for path in names.chain([paths.binary()]) {
        let path = paths.here(&path);
        if let Some(theirs) = Machine::of(&path).filter(|theirs| *theirs != ours) {
            return Err(SetupError::OtherMachine { path, theirs, ours });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_a_machine_and_a_script_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let write = |bytes: &[u8]| {
            let path = dir.path().join("program");
            std::fs::write(&path, bytes).unwrap();
            Machine::of(&path).map(|machine| machine.to_string())
        };
        let mut elf = [0; 24];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[18] = 183;
        assert_eq!(write(&elf).as_deref(), Some("aarch64"));
        elf[18] = 62;
        assert_eq!(write(&elf).as_deref(), Some("x86-64"));
        elf[18] = 22;
        assert_eq!(write(&elf).as_deref(), Some("ELF machine 22"));
        assert_eq!(write(b"#!/bin/sh\nexec something\n"), None);
        assert_eq!(write(b""), None);
        assert!(Machine::of(Path::new(OURSELVES)).is_some());
    }

    #[test]
    fn a_changed_file_has_different_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "one").unwrap();
        let one = Content::of(&path).unwrap();
        std::fs::write(&path, "two").unwrap();
        assert_ne!(Content::of(&path).unwrap(), one);
        assert!(Content::of(&dir.path().join("b")).is_err());
    }
}
