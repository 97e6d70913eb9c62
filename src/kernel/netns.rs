//! A pod's network namespace, checked when it is opened.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sched::{CloneFlags, setns};
use nix::sys::statfs::{NSFS_MAGIC, fstatfs};
use thiserror::Error;

/// The namespace of the calling thread.
const OURS: &str = "/proc/thread-self/ns/net";

/// Which network namespace it is: device and inode of its file.
///
/// Two paths that lead to one namespace have one ID, for as long as somebody holds it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NetnsId {
    device: u64,
    inode: u64,
}

impl fmt::Display for NetnsId {
    /// As `/proc/PID/ns/net` and `lsns` write it: `net:[4026531840]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "net:[{}]", self.inode)
    }
}

/// A network namespace that is there and is one: what `CNI_NETNS` names (CNI 1.1.0 §2).
///
/// It is opened once and kept open, so that everything after is about the same namespace, even
/// when the runtime unmounts the path or mounts another one over it in the meantime.
#[derive(Debug)]
pub struct PodNetns {
    file: File,
    path: PathBuf,
    id: NetnsId,
}

/// A path that leads to no network namespace that can be used.
#[derive(Debug, Error)]
pub enum NetnsError {
    /// Nothing is there.
    #[error("network namespace {}: it does not exist; the sandbox is gone, or CNI_NETNS is wrong", path.display())]
    Missing {
        /// As it was given.
        path: PathBuf,
    },
    /// It cannot be opened or asked what it is.
    #[error("network namespace {}: {source}; check the path and that Jackfield runs as root", path.display())]
    Unreadable {
        /// As it was given.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A file, a directory, a namespace of another kind.
    #[error("{} is {found}, not a network namespace; let CNI_NETNS name one, as /var/run/netns/NAME or /proc/PID/ns/net", path.display())]
    NotNetns {
        /// As it was given.
        path: PathBuf,
        /// What it is instead.
        found: String,
    },
    /// The kernel does not let this process in.
    #[error("network namespace {}: entering it: {source}; {remedy}", path.display())]
    NotEntered {
        /// As it was given.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
        /// What would help.
        remedy: &'static str,
    },
}

impl PodNetns {
    /// Opens the namespace at `path` and makes sure that it is a network namespace.
    ///
    /// # Errors
    /// [`NetnsError::Missing`] where nothing is there, [`NetnsError::NotNetns`] where something
    /// else is, [`NetnsError::Unreadable`] for anything else.
    pub fn open(path: &Path) -> Result<Self, NetnsError> {
        let unreadable = |source: io::Error| NetnsError::Unreadable {
            path: path.to_owned(),
            source,
        };
        // Non-blocking: on a FIFO put there by mistake a plain open would wait for a writer.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags((OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits())
            .open(path)
            .map_err(|source| match source.kind() {
                io::ErrorKind::NotFound => NetnsError::Missing {
                    path: path.to_owned(),
                },
                _ => unreadable(source),
            })?;
        let not_netns = |found: String| NetnsError::NotNetns {
            path: path.to_owned(),
            found,
        };
        let metadata = file.metadata().map_err(unreadable)?;
        let filesystem = fstatfs(&file).map_err(|errno| unreadable(errno.into()))?;
        if filesystem.filesystem_type() != NSFS_MAGIC {
            return Err(not_netns(kind_of(&metadata).to_owned()));
        }
        // The name of an nsfs file tells its kind, `net:[inode]`, as NS_GET_NSTYPE would; this
        // way needs no ioctl, and with it no unsafe code. One that is bound to a path bears that
        // path instead, and its kind shows when it is entered.
        let name = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
            .map_err(unreadable)?;
        let name = name.to_string_lossy();
        if !name.starts_with("net:[") && !name.starts_with('/') {
            return Err(not_netns(format!("a namespace of another kind, {name}")));
        }
        Ok(Self {
            id: NetnsId::of(&metadata),
            file,
            path: path.to_owned(),
        })
    }

    /// The path it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which namespace it is.
    #[must_use]
    pub fn id(&self) -> NetnsId {
        self.id
    }

    /// Whether it is the namespace that the calling thread is in: the host's, for the plugin.
    ///
    /// A pod with `hostNetwork` never gets to CNI, so an ADD into the host's own namespace is a
    /// mistake that would move the node's addresses and routes; callers refuse it.
    ///
    /// # Errors
    /// [`NetnsError::Unreadable`] when `/proc` is not there to compare with.
    pub fn is_ours(&self) -> Result<bool, NetnsError> {
        let ours = std::fs::metadata(OURS).map_err(|source| NetnsError::Unreadable {
            path: OURS.into(),
            source,
        })?;
        Ok(NetnsId::of(&ours) == self.id)
    }

    /// Runs `work` inside of the namespace and comes back.
    ///
    /// On the calling thread: one that is thrown away has a stack, a clone, two wake-ups and a join
    /// for one socket. The way back is held open before it enters.
    ///
    /// # Panics
    /// When the kernel closes the way back: what would run next, plugins included, would run in
    /// the pod's namespace and take it for the host's. A call that ends here is undone by DEL.
    pub(super) fn within<T>(&self, work: impl FnOnce() -> T) -> Result<T, NetnsError> {
        let home = File::open(OURS).map_err(|source| NetnsError::Unreadable {
            path: OURS.into(),
            source,
        })?;
        self.enter()?;
        let done = work();
        #[allow(clippy::panic, reason = "nothing may run where it would run now")]
        if let Err(errno) = enter(&home) {
            panic!(
                "the way back from {} is closed: {errno}",
                self.path.display()
            );
        }
        Ok(done)
    }

    fn enter(&self) -> Result<(), NetnsError> {
        enter(&self.file).map_err(|errno| match errno {
            Errno::EINVAL => NetnsError::NotNetns {
                path: self.path.clone(),
                found: "a namespace of another kind".to_owned(),
            },
            errno => NetnsError::NotEntered {
                path: self.path.clone(),
                source: errno.into(),
                remedy: match errno {
                    Errno::EPERM => "run Jackfield with CAP_SYS_ADMIN",
                    _ => "check that the sandbox is still there",
                },
            },
        })
    }
}

#[allow(clippy::disallowed_methods, reason = "the one place that may")]
fn enter(netns: &File) -> Result<(), Errno> {
    setns(netns, CloneFlags::CLONE_NEWNET)
}

impl NetnsId {
    fn of(metadata: &std::fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}

fn kind_of(metadata: &std::fs::Metadata) -> &'static str {
    if metadata.is_dir() {
        "a directory"
    } else if metadata.is_file() {
        "a plain file (a namespace that was unmounted leaves one)"
    } else {
        "a special file"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(path: &str) -> String {
        PodNetns::open(Path::new(path)).unwrap_err().to_string()
    }

    // clause: CNI-1.1.0 §3 network namespace: what CNI_NETNS refers to is one
    #[test]
    fn netns_entry_a_path_that_is_no_network_namespace_is_refused_and_says_what_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let plain = directory.path().join("left-over");
        std::fs::write(&plain, "").unwrap();
        let table = [
            (directory.path().join("nothing"), "does not exist"),
            (
                directory.path().to_owned(),
                "a directory, not a network namespace",
            ),
            (plain, "a plain file"),
            (PathBuf::from("/dev/null"), "a special file"),
            (PathBuf::from("/proc/self/ns/mnt"), "another kind, mnt:["),
            (PathBuf::from("/proc/self/status"), "a plain file"),
        ];
        for (path, part) in table {
            let said = message(path.to_str().unwrap());
            assert!(said.contains(part), "{said}");
            assert!(said.contains(path.to_str().unwrap()), "{said}");
        }
    }

    #[test]
    fn a_fifo_does_not_make_it_wait() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(message(fifo.to_str().unwrap()).contains("a special file"));
    }

    #[test]
    fn netns_entry_our_own_namespace_is_known_as_ours_by_any_path() {
        for path in ["/proc/self/ns/net", "/proc/thread-self/ns/net"] {
            let netns = PodNetns::open(Path::new(path)).unwrap();
            assert!(netns.is_ours().unwrap(), "{path}");
            let link = std::fs::read_link(path).unwrap();
            assert_eq!(netns.id().to_string(), link.to_str().unwrap());
        }
    }
}
