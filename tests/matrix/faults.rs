//! The columns of the fault matrix.

use std::time::Duration;

use super::call::Verb;

use super::syscalls::{self, Syscalls};

/// A column of the matrix.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The name, without a slash.
    pub(crate) name: &'static str,
    /// What happens.
    pub(crate) kind: Kind,
}

/// What a fault does.
#[derive(Debug)]
pub(crate) enum Kind {
    /// The process is killed in place of a step.
    Kill,
    /// The process is killed at some time, because delegates work between two steps.
    KillAtSomeTime,
    /// The process is killed while a delegate sleeps before its work. If nobody ended that
    /// delegate, it would make a link after the clean-up.
    KillBesideSleeper,
    /// The system call of a step fails with an errno.
    Errno(&'static str, Syscalls),
    /// The process is stopped after a step, something happens, and the process continues.
    Meanwhile(Event),
    /// A delegate runs this shell script instead of the real plugin, whose path is `$REAL`. The
    /// delegate may take a second.
    Delegate(&'static str),
    /// The node loses power at a step.
    PowerLoss(Loss),
    /// For the walked call, the monotonic clock and the clock of the boot are ahead by this number of
    /// seconds.
    BootClockAhead(u32),
    /// The API server or the agent misbehaves during the walked call.
    Cluster(Trouble),
}

/// What is wrong with the API server or the agent. A proxy between the two makes the API server
/// misbehave.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    /// Requests get this HTTP status as the answer.
    Answered(u16),
    /// The connection of a request ends without an answer.
    Cut,
    /// Requests reach the API server after this time.
    Slow(Duration),
    /// Lists are as they were before the story, and watches bring nothing.
    Stale,
    /// The agent is killed at a request.
    AgentKilled,
}

/// What the disk lacks after a power loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Nothing.
    Nothing,
    /// The last writes to the record.
    LaterWrites,
    /// The end of the record, from any byte on.
    Tail,
    /// The same, but the record has kept its size. Zeroes replace the lost bytes.
    Zeroes,
    /// Everything that the interrupted call wrote to the journal.
    Call,
}

/// What happens while the process is stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// The runtime makes another call for the same sandbox.
    Call(Verb),
    /// The pod's network namespace is deleted.
    NetnsDeleted,
    /// Every link in the pod's network namespace gets another name.
    PodLinksRenamed,
    /// The node's uplink has another name until the call ends.
    UplinkRenamed,
    /// The wall clock is set by this number of seconds.
    ///
    /// No test can set the clock of one process: a time namespace has no wall clock of its own, and
    /// no tracer sees a clock that is read from the vDSO. So the test moves all wall-clock times that
    /// the journal holds in the opposite direction. This shows the same as a clock that is set
    /// between the step and the next time that the call compares: due times of retries, and the age
    /// of files. Deadlines do not depend on the wall clock. The simulation
    /// (`src/operation/simulation.rs`) sets the clock between two readings within one call.
    ClockSet(i64),
}

impl Fault {
    const fn errno(name: &'static str, syscalls: Syscalls) -> Fault {
        Fault {
            name,
            kind: Kind::Errno(name, syscalls),
        }
    }

    const fn meanwhile(name: &'static str, event: Event) -> Fault {
        Fault {
            name,
            kind: Kind::Meanwhile(event),
        }
    }

    const fn delegate(name: &'static str, script: &'static str) -> Fault {
        Fault {
            name,
            kind: Kind::Delegate(script),
        }
    }

    const fn cluster(name: &'static str, trouble: Trouble) -> Fault {
        Fault {
            name,
            kind: Kind::Cluster(trouble),
        }
    }

    const fn power(name: &'static str, loss: Loss) -> Fault {
        Fault {
            name,
            kind: Kind::PowerLoss(loss),
        }
    }

    /// Whether a call that meets the fault waits for seconds.
    pub(crate) fn waits(&self) -> bool {
        match self.kind {
            Kind::KillBesideSleeper | Kind::Cluster(_) => true,
            Kind::Delegate(script) => script.contains("sleep"),
            _ => false,
        }
    }

    /// Whether the sandbox may be gone or damaged after the fault, so that only a clean-up is sure
    /// to succeed.
    pub(crate) fn destroys(&self) -> bool {
        match self.kind {
            Kind::Kill
            | Kind::KillAtSomeTime
            | Kind::KillBesideSleeper
            | Kind::Errno(..)
            | Kind::Delegate(_)
            | Kind::BootClockAhead(_)
            | Kind::Cluster(_) => false,
            Kind::PowerLoss(_) => true,
            Kind::Meanwhile(event) => match event {
                Event::Call(verb) => verb != Verb::Add && verb != Verb::Change,
                Event::NetnsDeleted | Event::PodLinksRenamed => true,
                Event::UplinkRenamed | Event::ClockSet(_) => false,
            },
        }
    }
}

const YEAR: i64 = 365 * 86_400;

/// Every column.
pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "KILL",
        kind: Kind::Kill,
    },
    Fault {
        name: "KILL at some time",
        kind: Kind::KillAtSomeTime,
    },
    Fault {
        name: "KILL beside a sleeping delegate",
        kind: Kind::KillBesideSleeper,
    },
    Fault::errno("ENOSPC", syscalls::GROWING),
    Fault::errno("EIO", syscalls::DISK),
    Fault::errno("EROFS", syscalls::NAMES),
    Fault::errno("EMFILE", syscalls::DESCRIPTORS),
    Fault::errno("ENOMEM", syscalls::MEMORY),
    Fault::errno("EAGAIN", syscalls::PROCESSES),
    Fault::meanwhile("beside ADD", Event::Call(Verb::Add)),
    Fault::meanwhile("beside DEL", Event::Call(Verb::Del)),
    Fault::meanwhile("beside GC", Event::Call(Verb::Gc)),
    Fault::meanwhile("beside change", Event::Call(Verb::Change)),
    Fault::meanwhile("netns deleted", Event::NetnsDeleted),
    Fault::meanwhile("links renamed", Event::PodLinksRenamed),
    Fault::meanwhile("uplink renamed", Event::UplinkRenamed),
    Fault::meanwhile("clock ahead", Event::ClockSet(YEAR)),
    Fault::meanwhile("clock back", Event::ClockSet(-YEAR)),
    Fault::delegate("delegate hangs", "exec sleep 600"),
    Fault::delegate(
        "delegate hangs after its work",
        "$REAL >/dev/null; exec sleep 600",
    ),
    Fault::delegate("delegate floods stdout", "exec yes"),
    Fault::delegate(
        "delegate floods stderr",
        "yes | head -c 3000000 >&2; exit 1",
    ),
    Fault::delegate("delegate killed", "kill -9 $$"),
    Fault::delegate(
        "delegate killed after its work",
        "$REAL >/dev/null; kill -9 $$",
    ),
    Fault::delegate(
        "delegate lies about its address",
        r#"$REAL | jq -c 'if .ips then .ips[0].address = "192.0.2.77/24" else . end'; exit"#,
    ),
    Fault::delegate(
        "delegate lies about its interface",
        r#"$REAL | jq -c 'if .interfaces then .interfaces[-1].name = "other0" else . end'; exit"#,
    ),
    Fault::delegate(
        "delegate answers in an unknown version",
        r#"$REAL | jq -c '.cniVersion = "9.9.9"'; exit"#,
    ),
    Fault::delegate("delegate answers half a result", "$REAL | head -c 20; exit"),
    Fault::power("power loss", Loss::Nothing),
    Fault::power("power loss, later writes lost", Loss::LaterWrites),
    Fault::power("power loss, record torn", Loss::Tail),
    Fault::power("power loss, record zeroed", Loss::Zeroes),
    Fault::power("power loss, call undone", Loss::Call),
    // A time namespace moves the monotonic clock and the clock of the boot. In the call before and
    // in the call after, the two clocks show the usual time: so they jump ahead and back.
    Fault {
        name: "boot clock ahead",
        kind: Kind::BootClockAhead(30 * 86_400),
    },
    Fault::cluster("API 409", Trouble::Answered(409)),
    Fault::cluster("API 429", Trouble::Answered(429)),
    Fault::cluster("API 500", Trouble::Answered(500)),
    Fault::cluster("API cut", Trouble::Cut),
    Fault::cluster("API slow", Trouble::Slow(Duration::from_secs(2))),
    Fault::cluster("API stale", Trouble::Stale),
    Fault::cluster("agent killed", Trouble::AgentKilled),
];
