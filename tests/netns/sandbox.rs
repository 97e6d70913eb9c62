//! A network namespace of a test's own, which ends with the test whatever becomes of it.

#![allow(
    clippy::disallowed_methods,
    reason = "what the tests call outside of the node needs no deadline"
)]

use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use jackfield::kernel::{Netlink, PodNetns};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::gettid;

type Work = Box<dyn FnOnce() + Send>;

/// A namespace that lives as long as the one thread that is in it; nothing is mounted for it, so
/// nothing stays when the test is killed.
pub(crate) struct Sandbox {
    path: PathBuf,
    work: Option<Sender<Work>>,
    thread: Option<JoinHandle<()>>,
}

/// A new namespace.
///
/// Without the privilege it fails: a test that silently does nothing proves nothing.
pub(crate) fn sandbox() -> Sandbox {
    let (work, todo) = channel::<Work>();
    let (ready, opened) = channel();
    let thread = std::thread::spawn(move || {
        let made = unshare(CloneFlags::CLONE_NEWNET);
        let path = format!("/proc/{}/task/{}/ns/net", std::process::id(), gettid());
        ready.send(made.map(|()| path)).unwrap();
        for step in todo {
            step();
        }
    });
    let path = opened
        .recv()
        .unwrap()
        .expect("a network namespace needs CAP_SYS_ADMIN: run the tests as root");
    let sandbox = Sandbox {
        path: path.into(),
        work: Some(work),
        thread: Some(thread),
    };
    sandbox.ip("link set lo up");
    sandbox
}

impl Sandbox {
    /// Opened as the plugin opens the one that a runtime names.
    pub(crate) fn open(&self) -> PodNetns {
        PodNetns::open(&self.path).unwrap()
    }

    pub(crate) fn netlink(&self) -> Netlink {
        Netlink::in_netns(&self.open()).unwrap()
    }

    /// Runs `ip` with these words in the namespace, and gives what it prints.
    pub(crate) fn ip(&self, words: &str) -> String {
        self.try_ip(words)
            .unwrap_or_else(|said| panic!("ip {words}: {said}"))
    }

    pub(crate) fn try_ip(&self, words: &str) -> Result<String, String> {
        let mut command = Command::new("ip");
        command.args(words.split_whitespace());
        self.within(move || {
            let output = command.output().expect("the tests use iproute2's ip");
            let text = |octets| String::from_utf8(octets).unwrap();
            if output.status.success() {
                Ok(text(output.stdout))
            } else {
                Err(text(output.stderr))
            }
        })
    }

    pub(crate) fn within<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = channel();
        let step = Box::new(move || done.send(work()).unwrap());
        self.work.as_ref().unwrap().send(step).unwrap();
        result.recv().unwrap()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        drop(self.work.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
