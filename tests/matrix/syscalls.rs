//! The system calls at which faults happen.

type Names = &'static [&'static str];

const OPENING: Names = &["open", "openat"];
const CREATING: Names = &[
    "creat",
    "mkdir",
    "mkdirat",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
];
const REMOVING: Names = &["unlink", "unlinkat", "rmdir"];
const CUTTING: Names = &["truncate", "ftruncate"];
const FILLING: Names = &["write", "writev", "pwrite64", "pwritev", "fallocate"];
const LOCKING: Names = &["flock"];
const FORKING: Names = &["clone", "clone3", "fork", "vfork"];
const SENDING: Names = &["sendto", "sendmsg"];
const SIGNALLING: Names = &["kill", "tkill", "tgkill", "pidfd_send_signal"];
const WAITING: Names = &["poll", "ppoll", "waitid", "wait4", "exit_group"];
const READING: Names = &["read", "getdents64", "fsync"];
const RETURNING_DESCRIPTORS: Names = &["socket", "pipe2", "pidfd_open"];

/// The system calls that change something outside of the process, and a few that mark a time.
///
/// - files: the calls that make, fill, rename, cut or remove a file. `open` and `openat` count only
///   if they may create or write;
/// - locks: `flock`, which others wait for;
/// - processes: the calls that start or signal a process (`clone` starts a thread too);
/// - the kernel's network state: `sendto` and `sendmsg` on netlink;
/// - times: while a delegate runs, the process is in `poll` or `ppoll`. A process that is killed
///   there leaves its delegate at work alone. At `exit_group`, everything is done and nobody knows.
///
/// Calls that only read (`stat`, `getdents`) or only concern the process itself (`mmap`, `close`)
/// are missing: to be killed there is the same as to be killed before the next step.
pub(crate) const CHANGING: &[Names] = &[
    OPENING, CREATING, REMOVING, CUTTING, FILLING, LOCKING, FORKING, SENDING, SIGNALLING, WAITING,
];
/// Further system calls that can fail with an errno.
pub(crate) const FALLIBLE: &[Names] = &[READING, RETURNING_DESCRIPTORS];

/// The system calls at which an errno can occur.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Syscalls {
    names: &'static [Names],
    /// Whether only the files of Jackfield count: journal, locks, publications, installation.
    only_ours: bool,
    /// Whether a call that opens a file counts only if it may create or write the file.
    only_writing: bool,
}

impl Syscalls {
    /// Calls on the files of Jackfield.
    const fn on_ours(names: &'static [Names], only_writing: bool) -> Syscalls {
        Syscalls {
            names,
            only_ours: true,
            only_writing,
        }
    }

    const fn anywhere(names: &'static [Names]) -> Syscalls {
        Syscalls {
            names,
            only_ours: false,
            only_writing: false,
        }
    }
}

/// The calls that need room on a disk.
pub(crate) const GROWING: Syscalls = Syscalls::on_ours(&[OPENING, CREATING, FILLING], true);
/// The calls that a broken disk can fail.
pub(crate) const DISK: Syscalls = Syscalls::on_ours(
    &[OPENING, CREATING, REMOVING, CUTTING, FILLING, READING],
    false,
);
/// The calls that change names in a directory.
pub(crate) const NAMES: Syscalls = Syscalls::on_ours(&[OPENING, CREATING, REMOVING], true);
/// The calls that return a descriptor.
pub(crate) const DESCRIPTORS: Syscalls = Syscalls::anywhere(&[OPENING, RETURNING_DESCRIPTORS]);
/// The calls for which the kernel allocates memory.
pub(crate) const MEMORY: Syscalls = Syscalls::anywhere(&[
    OPENING,
    CREATING,
    RETURNING_DESCRIPTORS,
    FORKING,
    SENDING,
    LOCKING,
    &["getdents64"],
]);
/// The calls that start a process.
pub(crate) const PROCESSES: Syscalls = Syscalls::anywhere(&[FORKING]);

/// What the paths of Jackfield's own files contain.
const OURS: [&str; 5] = [
    "/journal",
    "/run/jackfield",
    "/cluster/status",
    "/net.d",
    "/cni-bin",
];

impl Syscalls {
    /// Whether the system call `name`, which strace recorded as `text`, is one of these.
    pub(crate) fn contain(&self, name: &str, text: &str) -> bool {
        self.names.concat().contains(&name)
            && (!self.only_ours || OURS.iter().any(|ours| text.contains(ours)))
            && (!self.only_writing || !opens(name) || may_write(text))
    }
}

/// Whether a system call changes something outside of the process.
pub(crate) fn changes(name: &str, text: &str) -> bool {
    CHANGING.concat().contains(&name) && (!opens(name) || may_write(text))
}

fn opens(name: &str) -> bool {
    name.starts_with("open")
}

fn may_write(text: &str) -> bool {
    ["O_CREAT", "O_WRONLY", "O_RDWR", "O_APPEND", "O_TRUNC"]
        .iter()
        .any(|flag| text.contains(flag))
}
