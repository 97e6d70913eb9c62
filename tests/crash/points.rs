//! The steps of a run: the system calls at which it can be killed with a difference.

use std::fmt;

/// The system calls that change something outside of the process, and a few that mark a time.
///
/// - files: whatever makes, fills, renames, cuts or removes one; `open` and `openat` only when
///   they may create or write;
/// - locks: `flock`, which others wait for;
/// - processes: whatever starts or signals one (`clone` starts a thread too);
/// - the kernel's network state: `sendto`, `sendmsg` on netlink (`write` on pipes and on standard
///   output is among the files);
/// - times: `poll` and its like are entered while a delegate runs, and killing there leaves it at
///   work alone; `exit_group` is the end, when all is done and nobody knows it.
///
/// Left out is what only looks (`stat`, `read`, `getdents`), what only concerns the process itself
/// (`mmap`, `close`, `fcntl`): to be killed there is to be killed before the next point.
pub(crate) const CHANGING: &str = "?open,openat,?creat,?mkdir,mkdirat,?rename,?renameat,renameat2,\
    ?link,linkat,?symlink,symlinkat,?unlink,unlinkat,?rmdir,truncate,ftruncate,fallocate,\
    write,writev,pwrite64,pwritev,flock,clone,clone3,?fork,?vfork,\
    sendto,sendmsg,kill,tkill,tgkill,pidfd_send_signal,?poll,ppoll,waitid,wait4,exit_group";

/// One step of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    syscall: String,
    nth: usize,
    /// The call as it was recorded.
    text: String,
}

impl Point {
    /// The points of a run by its record.
    pub(crate) fn all(record: &str) -> Vec<Point> {
        let mut points: Vec<Point> = Vec::new();
        for line in record.lines() {
            let Some((syscall, _)) = line.split_once('(') else {
                continue;
            };
            if !syscall
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
            {
                continue;
            }
            let nth = points
                .iter()
                .filter(|point| point.syscall == syscall)
                .count()
                + 1;
            points.push(Point {
                syscall: syscall.to_owned(),
                nth,
                text: line.chars().take(120).collect(),
            });
        }
        points.retain(Point::changes);
        points
    }

    fn changes(&self) -> bool {
        !self.syscall.starts_with("open")
            || ["O_CREAT", "O_WRONLY", "O_RDWR", "O_APPEND", "O_TRUNC"]
                .iter()
                .any(|flag| self.text.contains(flag))
    }

    /// What makes strace kill the run here: the counters of strace are per system call.
    pub(crate) fn injection(&self) -> [String; 4] {
        let Point { syscall, nth, .. } = self;
        [
            "-e".to_owned(),
            format!("trace={syscall}"),
            "-e".to_owned(),
            format!("inject={syscall}:signal=KILL:when={nth}"),
        ]
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} number {}: {}", self.syscall, self.nth, self.text)
    }
}
