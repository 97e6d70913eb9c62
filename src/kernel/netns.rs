//! Opens, checks and enters the network namespace of a pod.

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

/// The network namespace of the calling thread.
const OURS: &str = "/proc/thread-self/ns/net";

/// The identity of a network namespace: the device and the inode of its file.
///
/// All paths to a namespace give the same ID while the namespace exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NetnsId {
    device: u64,
    inode: u64,
}

impl fmt::Display for NetnsId {
    /// Writes the ID in the notation of `/proc/PID/ns/net` and `lsns`: `net:[4026531840]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "net:[{}]", self.inode)
    }
}

/// The network namespace of a pod, from `CNI_NETNS` (CNI 1.1.0 §2).
///
/// The file stays open, so this value refers to the same namespace even if the runtime unmounts
/// the path or mounts a different namespace over it.
#[derive(Debug)]
pub struct PodNetns {
    file: File,
    path: PathBuf,
    id: NetnsId,
}

/// Why a path cannot be used as a network namespace.
#[derive(Debug, Error)]
pub enum NetnsError {
    /// The path does not exist.
    #[error("network namespace {0}: it does not exist; the sandbox is gone, or CNI_NETNS is wrong")]
    Missing(PathBuf),
    /// The path cannot be opened or examined.
    #[error("network namespace {0}: {1}; check the path, and check that Jackfield runs as root")]
    Unreadable(PathBuf, #[source] io::Error),
    /// The path is not a network namespace. It is, for example, a plain file, a directory or a
    /// mount namespace.
    #[error(
        "{0}: it is {1}, not a network namespace; set CNI_NETNS to one, such as \
         /var/run/netns/NAME or /proc/PID/ns/net"
    )]
    NotNetns(PathBuf, PathKind),
    /// The kernel refuses the switch to the namespace.
    #[error("network namespace {0}: cannot enter it: {1}; {remedy}", remedy = entry_remedy(.1))]
    NotEntered(PathBuf, #[source] io::Error),
}

impl NetnsError {
    /// Whether the error is temporary: a lack of descriptors or memory, or an interrupting signal.
    /// The namespace may exist, although Jackfield cannot open or enter it now.
    #[must_use]
    pub fn is_shortage(&self) -> bool {
        let (Self::Unreadable(_, cause) | Self::NotEntered(_, cause)) = self else {
            return false;
        };
        let number = cause.raw_os_error().map(Errno::from_raw);
        matches!(
            number,
            Some(Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::EINTR)
        )
    }
}

/// The kind of a path that is not a network namespace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PathKind {
    /// A directory.
    #[error("a directory")]
    Directory,
    /// A regular file, such as the mount point of an unmounted namespace.
    #[error("a plain file (an unmounted namespace leaves such a file)")]
    File,
    /// A device, a FIFO or a socket.
    #[error("a special file")]
    SpecialFile,
    /// A namespace that is not a network namespace. Its kind is unknown.
    #[error("a namespace of another kind")]
    Namespace,
    /// A namespace that is not a network namespace, with its name in `/proc`, such as
    /// `mnt:[4026531841]`.
    #[error("a namespace of another kind, {0}")]
    NamedNamespace(String),
}

impl PodNetns {
    /// Opens the path and checks that it is a network namespace. A bind mount of another kind of
    /// namespace passes this check, but the kernel then refuses the switch to that namespace.
    ///
    /// # Errors
    /// [`NetnsError::Missing`] if the path does not exist, [`NetnsError::NotNetns`] if it is not a
    /// network namespace, [`NetnsError::Unreadable`] for all other errors.
    pub fn open(path: &Path) -> Result<Self, NetnsError> {
        let unreadable = |cause: io::Error| NetnsError::Unreadable(path.to_owned(), cause);
        let not_netns = |found: PathKind| NetnsError::NotNetns(path.to_owned(), found);
        // Non-blocking, because a blocking open of a FIFO would wait for a writer.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags((OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits())
            .open(path)
            .map_err(|cause| match cause.kind() {
                io::ErrorKind::NotFound => NetnsError::Missing(path.to_owned()),
                _ => unreadable(cause),
            })?;
        let metadata = file.metadata().map_err(unreadable)?;
        #[cfg(test)]
        if let Some(inode) = crate::machine::current().and_then(|machine| machine.netns(path)) {
            let device = metadata.dev();
            return Ok(Self {
                id: NetnsId { device, inode },
                file,
                path: path.to_owned(),
            });
        }
        let filesystem = fstatfs(&file).map_err(|errno| unreadable(errno.into()))?;
        if filesystem.filesystem_type() != NSFS_MAGIC {
            return Err(not_netns(PathKind::of(&metadata)));
        }
        // The link in `/proc` names the kind of the namespace, as in `net:[inode]`. For a bind
        // mount, the link is a path, and the kernel checks the kind only when a thread enters the
        // namespace. The ioctl NS_GET_NSTYPE returns the kind in both cases, but would need unsafe
        // code.
        let name = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
            .map_err(unreadable)?;
        let name = name.to_string_lossy();
        if !name.starts_with("net:[") && !name.starts_with('/') {
            return Err(not_netns(PathKind::NamedNamespace(name.into_owned())));
        }
        Ok(Self {
            id: NetnsId::of(&metadata),
            file,
            path: path.to_owned(),
        })
    }

    /// Returns the path that was passed to [`Self::open`].
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the identity of the namespace.
    #[must_use]
    pub fn id(&self) -> NetnsId {
        self.id
    }

    /// Returns whether this is the calling thread's namespace. In the plugin, that is the host's
    /// namespace.
    ///
    /// An ADD in the host's namespace would change the node's addresses and routes, so ADD refuses
    /// that namespace unless `CNI_NETNS_OVERRIDE` is set. A runtime does not call CNI for a pod
    /// with `hostNetwork`, so such an ADD is usually a mistake.
    ///
    /// # Errors
    /// [`NetnsError::Unreadable`] if `/proc` is not mounted.
    pub fn is_ours(&self) -> Result<bool, NetnsError> {
        let ours = std::fs::metadata(OURS).map_err(ours_unreadable)?;
        Ok(NetnsId::of(&ours) == self.id)
    }

    /// Enters the namespace with the calling thread, runs `work`, and returns to the previous
    /// namespace.
    ///
    /// This method starts no thread for `work`. A thread would cost a stack, a clone, two wake-ups
    /// and a join, only to open one netlink socket. This method opens the previous namespace before
    /// the switch, so that the return needs no new descriptor.
    ///
    /// # Panics
    /// If the kernel refuses the return to the previous namespace. Without the panic, Jackfield and
    /// its delegates would treat the pod's namespace as the host's. After the panic, the runtime
    /// cleans up with a DEL.
    pub(super) fn within<T>(&self, work: impl FnOnce() -> T) -> Result<T, NetnsError> {
        let home = File::open(OURS).map_err(ours_unreadable)?;
        enter(&self.file).map_err(|errno| match errno {
            Errno::EINVAL => NetnsError::NotNetns(self.path.clone(), PathKind::Namespace),
            errno => NetnsError::NotEntered(self.path.clone(), errno.into()),
        })?;
        let done = work();
        #[allow(clippy::panic, reason = "no code may run in the wrong namespace")]
        if let Err(errno) = enter(&home) {
            panic!(
                "network namespace {}: cannot leave it: {errno}",
                self.path.display()
            );
        }
        Ok(done)
    }
}

fn ours_unreadable(cause: io::Error) -> NetnsError {
    NetnsError::Unreadable(OURS.into(), cause)
}

#[allow(
    clippy::disallowed_methods,
    reason = "the only function that may enter a namespace"
)]
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

impl PathKind {
    fn of(metadata: &std::fs::Metadata) -> Self {
        if metadata.is_dir() {
            Self::Directory
        } else if metadata.is_file() {
            Self::File
        } else {
            Self::SpecialFile
        }
    }
}

fn entry_remedy(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(nix::libc::EPERM) => "run Jackfield with CAP_SYS_ADMIN",
        _ => "check that the sandbox still exists",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(path: &str) -> String {
        PodNetns::open(Path::new(path)).unwrap_err().to_string()
    }

    // clause: CNI-1.1.0 §3 network namespace: CNI_NETNS refers to a network namespace
    #[test]
    fn a_path_that_is_no_network_namespace_is_refused() {
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
            let text = message(path.to_str().unwrap());
            assert!(text.contains(part), "{text}");
            assert!(text.contains(path.to_str().unwrap()), "{text}");
        }
    }

    #[test]
    fn opening_a_fifo_does_not_block() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(message(fifo.to_str().unwrap()).contains("a special file"));
    }

    #[test]
    fn the_namespace_of_this_process_is_recognized_by_any_path() {
        for path in ["/proc/self/ns/net", "/proc/thread-self/ns/net"] {
            let netns = PodNetns::open(Path::new(path)).unwrap();
            assert!(netns.is_ours().unwrap(), "{path}");
            let link = std::fs::read_link(path).unwrap();
            assert_eq!(netns.id().to_string(), link.to_str().unwrap());
        }
    }
}
