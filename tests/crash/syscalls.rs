//! The system calls at which faults happen.

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
pub(crate) const CHANGING: &[&str] = &[
    "open",
    "openat",
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
    "unlink",
    "unlinkat",
    "rmdir",
    "truncate",
    "ftruncate",
    "fallocate",
    "write",
    "writev",
    "pwrite64",
    "pwritev",
    "flock",
    "clone",
    "clone3",
    "fork",
    "vfork",
    "sendto",
    "sendmsg",
    "kill",
    "tkill",
    "tgkill",
    "pidfd_send_signal",
    "poll",
    "ppoll",
    "waitid",
    "wait4",
    "exit_group",
];
/// Further system calls that can fail with an errno.
pub(crate) const FALLIBLE: &[&str] = &[
    "read",
    "getdents64",
    "socket",
    "pipe2",
    "pidfd_open",
    "fsync",
];

/// The system calls at which an errno can occur.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Syscalls {
    names: &'static [&'static str],
    /// Whether only the files of Jackfield count: journal, locks, publications, installation.
    only_ours: bool,
    /// Whether a call that opens a file counts only if it may create or write the file.
    only_writing: bool,
}

/// The calls that need room on a disk.
pub(crate) const GROWING: Syscalls = Syscalls {
    names: &[
        "open",
        "openat",
        "mkdir",
        "mkdirat",
        "rename",
        "renameat",
        "renameat2",
        "link",
        "linkat",
        "symlink",
        "symlinkat",
        "write",
        "writev",
        "fallocate",
    ],
    only_ours: true,
    only_writing: true,
};
/// The calls that a broken disk can fail.
pub(crate) const DISK: Syscalls = Syscalls {
    names: &[
        "open",
        "openat",
        "mkdir",
        "mkdirat",
        "rename",
        "renameat",
        "renameat2",
        "link",
        "linkat",
        "symlink",
        "symlinkat",
        "unlink",
        "unlinkat",
        "rmdir",
        "truncate",
        "ftruncate",
        "write",
        "writev",
        "read",
        "getdents64",
        "fsync",
    ],
    only_ours: true,
    only_writing: false,
};
/// The calls that change names in a directory.
pub(crate) const NAMES: Syscalls = Syscalls {
    names: &[
        "open",
        "openat",
        "mkdir",
        "mkdirat",
        "rename",
        "renameat",
        "renameat2",
        "link",
        "linkat",
        "symlink",
        "symlinkat",
        "unlink",
        "unlinkat",
        "rmdir",
    ],
    only_ours: true,
    only_writing: true,
};
/// The calls that return a descriptor.
pub(crate) const DESCRIPTORS: Syscalls = Syscalls {
    names: &["open", "openat", "socket", "pipe2", "pidfd_open"],
    only_ours: false,
    only_writing: false,
};
/// The calls for which the kernel allocates memory.
pub(crate) const MEMORY: Syscalls = Syscalls {
    names: &[
        "open",
        "openat",
        "mkdir",
        "rename",
        "link",
        "socket",
        "pipe2",
        "pidfd_open",
        "clone",
        "clone3",
        "vfork",
        "sendto",
        "sendmsg",
        "flock",
        "getdents64",
    ],
    only_ours: false,
    only_writing: false,
};
/// The calls that start a process.
pub(crate) const PROCESSES: Syscalls = Syscalls {
    names: &["clone", "clone3", "fork", "vfork"],
    only_ours: false,
    only_writing: false,
};

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
        self.names.contains(&name)
            && (!self.only_ours || OURS.iter().any(|ours| text.contains(ours)))
            && (!self.only_writing || !opens(name) || may_write(text))
    }
}

/// Whether a system call changes something outside of the process.
pub(crate) fn changes(name: &str, text: &str) -> bool {
    CHANGING.contains(&name) && (!opens(name) || may_write(text))
}

fn opens(name: &str) -> bool {
    name.starts_with("open")
}

fn may_write(text: &str) -> bool {
    ["O_CREAT", "O_WRONLY", "O_RDWR", "O_APPEND", "O_TRUNC"]
        .iter()
        .any(|flag| text.contains(flag))
}
