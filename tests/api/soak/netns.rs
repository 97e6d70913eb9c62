//! The network namespaces of pods.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

/// Namespaces that no pod uses. To end one costs the kernel more than all else of a pod.
#[derive(Default)]
pub(super) struct Spare(Mutex<Vec<File>>);

impl Spare {
    /// A namespace of this name: a spare one, or a new one.
    pub(super) fn name(&self, name: &str) -> Netns {
        let spare = self.0.lock().unwrap().pop();
        let namespace = spare.unwrap_or_else(unshared);
        let path = Path::new("/run/netns").join(name);
        File::create_new(&path).unwrap();
        let source = format!("/proc/self/fd/{}", namespace.as_raw_fd());
        let (source, none) = (Some(source.as_str()), None::<&str>);
        mount(source, &path, none, MsFlags::MS_BIND, none).unwrap();
        Netns {
            path,
            namespace: Mutex::new(Some(namespace)),
        }
    }

    /// Takes a namespace back in which nothing is left.
    pub(super) fn take_back(&self, netns: &Netns) {
        let namespace = netns.unname();
        self.0.lock().unwrap().extend(namespace);
    }
}

/// A new namespace. A thread makes it that ends with it: no other code of this process gets into it.
fn unshared() -> File {
    let thread = std::thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        File::open("/proc/thread-self/ns/net").unwrap()
    });
    thread.join().unwrap()
}

/// The network namespace of a sandbox, as `ip netns add` makes it.
pub(super) struct Netns {
    path: PathBuf,
    namespace: Mutex<Option<File>>,
}

impl Netns {
    /// Deletes it, if it is there.
    pub(super) fn delete(&self) {
        self.unname();
    }

    fn unname(&self) -> Option<File> {
        let namespace = self.namespace.lock().unwrap().take()?;
        umount2(&self.path, MntFlags::MNT_DETACH).unwrap();
        fs::remove_file(&self.path).unwrap();
        Some(namespace)
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        self.delete();
    }
}
