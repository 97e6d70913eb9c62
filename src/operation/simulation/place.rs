//! The directories of a simulated node, on a file system in memory if possible. A world is one run
//! of the simulation. All worlds of a [`Runner`](super::Runner) use the same directories, because
//! building the sysfs fixture takes longer than most worlds.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use device_info::fixtures;

/// The directories of a simulated node.
pub(super) struct Place {
    root: tempfile::TempDir,
}

impl Place {
    pub(super) fn new() -> Place {
        let memory = Path::new("/dev/shm");
        let made = tempfile::Builder::new()
            .prefix("jackfield-")
            .tempdir_in(memory);
        let root = made.unwrap_or_else(|_| tempfile::tempdir().unwrap());
        let place = Place { root };
        fixtures::igb().build(place.root.path()).unwrap();
        fs::create_dir(place.bin()).unwrap();
        for plugin in ["bridge", "sriov", "tuning"] {
            let path = place.bin().join(plugin);
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        place.clear();
        place
    }

    /// Removes the files of the previous world.
    pub(super) fn clear(&self) {
        for dir in [
            self.journal(),
            self.locks(),
            self.path("netns"),
            self.devinfo(),
        ] {
            let _ = fs::remove_dir_all(dir);
        }
        let _ = fs::remove_file(self.checkpoint());
        fs::create_dir(self.path("netns")).unwrap();
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.path("journal")
    }

    pub(super) fn locks(&self) -> PathBuf {
        self.path("locks")
    }

    pub(super) fn bin(&self) -> PathBuf {
        self.path("bin")
    }

    pub(super) fn devinfo(&self) -> PathBuf {
        self.path("devinfo")
    }

    pub(super) fn checkpoint(&self) -> PathBuf {
        self.path("checkpoint")
    }

    pub(super) fn netns(&self, name: &str) -> PathBuf {
        self.path("netns").join(name)
    }

    /// The directory of a PCI function in sysfs.
    pub(super) fn function(&self, address: &str) -> PathBuf {
        self.path("sys/bus/pci/devices").join(address)
    }
}
