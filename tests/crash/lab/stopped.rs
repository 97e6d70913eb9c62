//! Stops a call after one of its steps, lets something happen, and lets the call continue. Or kills
//! the call while a delegate works.

use std::fs;
use std::process::{Child, Output};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Lab;
use crate::steps::Step;
use crate::table::call::{Call, Verb};
use crate::table::faults::Event;

/// A process that makes no progress for this time hangs.
const HANGS_AFTER: Duration = Duration::from_secs(60);

impl Lab {
    /// Runs a call, and lets `event` happen after `step`. Returns the end of the call, and whether
    /// the event happened.
    pub(crate) fn stopped(&self, verb: Verb, step: &Step, event: Event) -> (Output, bool) {
        let options = step.injection("signal=STOP");
        let mut call = self.traced(verb, &options).spawn().unwrap();
        let stopped = wait_until("the stop", || {
            if call.try_wait().unwrap().is_some() {
                return Some(None);
            }
            let is_stopped = self.trace().contains("stopped by SIGSTOP");
            is_stopped.then(|| only_child(&call))
        });
        let Some(pid) = stopped else {
            return (call.wait_with_output().unwrap(), false);
        };
        let mut beside = None;
        let happened = match event {
            Event::Call(verb) => {
                beside = Some(self.call_beside(verb));
                true
            }
            Event::NetnsDeleted => {
                self.delete_netns();
                true
            }
            Event::PodLinksRenamed => self.rename_pod_links(),
            Event::UplinkRenamed => {
                self.rename_uplink("uplink0", "renamed0");
                true
            }
            Event::ClockSet(seconds) => {
                self.set_clock(seconds);
                true
            }
        };
        kill(pid, Signal::SIGCONT).unwrap();
        let done = call.wait_with_output().unwrap();
        if let Some(beside) = beside {
            let done = beside.wait_with_output().unwrap();
            assert_ne!(done.status.code(), Some(101), "the call beside panicked");
        }
        if matches!(event, Event::UplinkRenamed) {
            self.rename_uplink("renamed0", "uplink0");
        }
        (done, happened)
    }

    /// Kills a call while the delegate of a network sleeps before its work. Returns the end of the
    /// call, and whether the delegate slept.
    pub(crate) fn beside_sleeper(
        &self,
        verb: Verb,
        network: &str,
        time: Duration,
    ) -> (Output, bool) {
        let script = format!(
            "conf=$(cat); sleep {}; printf %s \"$conf\" | $REAL; exit",
            time.as_secs()
        );
        self.disturb(network, &script, None);
        let mut call = self.command(Call::of(verb)).spawn().unwrap();
        let is_asleep = wait_until("the sleeper", || {
            let has_ended = call.try_wait().unwrap().is_some();
            (has_ended || self.is_disturbed()).then_some(!has_ended)
        });
        let _ = call.kill();
        self.heal();
        (call.wait_with_output().unwrap(), is_asleep)
    }

    /// Starts another call, and waits until it has come as far as it can: it has ended, or it has
    /// opened a lock.
    fn call_beside(&self, verb: Verb) -> Child {
        let mut call = self.command(Call::of(verb)).spawn().unwrap();
        wait_until("the call beside", || {
            let fds = fs::read_dir(format!("/proc/{}/fd", call.id()));
            let mut fds = fds.into_iter().flatten().flatten();
            let waits = fds.any(|fd| {
                let target = fs::read_link(fd.path()).unwrap_or_default();
                target.starts_with("/run/jackfield/locks")
            });
            (waits || call.try_wait().unwrap().is_some()).then_some(())
        });
        call
    }
}

/// The process that strace runs.
fn only_child(strace: &Child) -> Option<Pid> {
    let id = strace.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    let pid = children.split_whitespace().next()?.parse().ok()?;
    Some(Pid::from_raw(pid))
}

fn wait_until<T>(what: &str, mut is_so: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(it) = is_so() {
            return it;
        }
        assert!(since.elapsed() < HANGS_AFTER, "{what} never came");
        std::thread::sleep(Duration::from_millis(1));
    }
}
