//! Measures a call. The stopwatch only collects figures: the outcome of the call, and how long its
//! phases and plugins took. The call first answers the runtime, and then sends the figures to the
//! agent.

use std::cell::{Cell, RefCell};
use std::time::Instant;

use crate::cluster::SandboxNetworks;
use crate::cluster::figures::{
    Figures, NetworkFigure, Phase, PhaseFigure, PluginFigure, microseconds,
};
use crate::cni;
use crate::delegate::{DelegateCall, DelegateError, DelegateExec};
use crate::journal::Key;
use crate::request;

/// The figures of one call.
#[derive(Debug)]
pub struct Stopwatch {
    begun: Instant,
    figures: RefCell<Figures>,
    record: RefCell<Option<Key>>,
    agent_answers: Cell<Option<bool>>,
}

impl Default for Stopwatch {
    fn default() -> Self {
        Stopwatch {
            begun: Instant::now(),
            figures: RefCell::default(),
            record: RefCell::default(),
            agent_answers: Cell::default(),
        }
    }
}

impl Stopwatch {
    /// Runs `act` and adds its time to a phase.
    pub fn during<T>(&self, phase: Phase, act: impl FnOnce() -> T) -> T {
        let since = Instant::now();
        let outcome = act();
        self.spent(phase, since);
        outcome
    }

    /// Adds the time since `since` to a phase.
    pub fn spent(&self, phase: Phase, since: Instant) {
        let took = microseconds(since.elapsed());
        if took == 0 {
            // The phase had nothing to do, so omit it.
            return;
        }
        let mut figures = self.figures.borrow_mut();
        let unwind = Phase::Unwind.as_str();
        let has_failed = figures.phases.iter().any(|it| it.phase == unwind);
        if phase != Phase::Unwind && !has_failed {
            figures.last = Some(phase.as_str().into());
        }
        let phases = &mut figures.phases;
        match phases.iter_mut().find(|it| it.phase == phase.as_str()) {
            Some(figure) => figure.took = figure.took.saturating_add(took),
            None => phases.push(PhaseFigure {
                phase: phase.as_str().into(),
                took,
            }),
        }
    }

    /// Records whether the verb succeeded for `network`.
    pub fn attachment(&self, network: &str, done: bool) {
        self.network(network, true, done);
    }

    /// Records whether the verb succeeded for `network`. `is_known` is false if the network's
    /// definition does not exist or cannot be used.
    pub fn network(&self, network: &str, is_known: bool, done: bool) {
        self.figures.borrow_mut().networks.push(NetworkFigure {
            network: network.to_owned(),
            is_unknown: !is_known,
            done,
        });
    }

    /// Records whether the agent answered the call.
    pub fn agent_answered(&self, answered: bool) {
        self.agent_answers.set(Some(answered));
    }

    /// Whether the agent answered the call, or `None` if the call did not ask the agent.
    pub fn agent_answers(&self) -> Option<bool> {
        self.agent_answers.get()
    }

    /// Records the sandbox that the call attached, changed or detached.
    pub fn sandbox(&self, sandbox: SandboxNetworks) {
        self.figures.borrow_mut().sandbox = Some(sandbox);
    }

    /// Records that the call has written to the record of `key`.
    pub fn wrote(&self, key: &Key) {
        *self.record.borrow_mut() = Some(key.clone());
    }

    /// The key of the record to which the call has written.
    pub fn record(&self) -> Option<Key> {
        self.record.borrow().clone()
    }

    /// Returns the figures of a finished call. `failure` is the error that the call returned, if it
    /// failed.
    pub fn stop(&self, call: &request::Call, failure: Option<&cni::Error>) -> Figures {
        let mut figures = self.figures.take();
        figures.verb = call.verb.as_str().into();
        figures.took = microseconds(self.begun.elapsed());
        let of = |key| call.args.get(key).filter(|value| !value.is_empty());
        figures.pod = of("K8S_POD_NAMESPACE")
            .zip(of("K8S_POD_NAME"))
            .map(|(namespace, name)| format!("{namespace}/{name}"));
        let attachment = call.attachment().ok();
        figures.container = attachment.map(|(container, _)| container.to_string());
        figures.code = failure.map_or(0, |failure| failure.code);
        figures.failure = failure.map(|failure| failure.msg.clone());
        figures.sandbox.take_if(|_| failure.is_some());
        figures
    }
}

/// Calls plugins and measures each call.
pub struct Timed<'a> {
    /// Calls the plugins.
    pub exec: &'a dyn DelegateExec,
    /// Keeps the measurements.
    pub stopwatch: &'a Stopwatch,
}

impl DelegateExec for Timed<'_> {
    fn exec(&self, call: &DelegateCall<'_>) -> Result<Vec<u8>, DelegateError> {
        let since = Instant::now();
        let outcome = self.exec.exec(call);
        let took = microseconds(since.elapsed());
        self.stopwatch.spent(Phase::Delegates, since);
        let program = call.binary.path().file_name();
        let plugin = program.map(|name| name.to_string_lossy().into_owned());
        let figure = PluginFigure {
            plugin: plugin.unwrap_or_default(),
            verb: call.verb.as_str().into(),
            done: outcome.is_ok(),
            took,
        };
        self.stopwatch.figures.borrow_mut().plugins.push(figure);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_and_each_attachment_has_one_figure() {
        let stopwatch = Stopwatch::default();
        let pause = || std::thread::sleep(std::time::Duration::from_millis(2));
        stopwatch.during(Phase::Journal, pause);
        stopwatch.during(Phase::Verify, pause);
        stopwatch.during(Phase::Routes, || ());
        stopwatch.during(Phase::Journal, pause);
        stopwatch.during(Phase::Unwind, pause);
        stopwatch.during(Phase::Publish, pause);
        stopwatch.attachment("a/b", true);
        stopwatch.attachment("a/c", false);
        let given = |name: &str| match name {
            "CNI_COMMAND" => Some("DEL".to_owned()),
            "CNI_ARGS" => Some("K8S_POD_NAMESPACE=a;K8S_POD_NAME=web".to_owned()),
            _ => Some("x".to_owned()),
        };
        let call = request::Call::read(given).unwrap();
        let failure = cni::Error::new(105, "no such address");
        let figures = stopwatch.stop(&call, Some(&failure));
        let phases: Vec<&str> = figures.phases.iter().map(|it| &*it.phase).collect();
        assert_eq!(phases, ["journal", "verify", "unwind", "publish"]);
        assert!(
            figures.phases[0].took >= 4_000 && figures.took >= 4_000,
            "{figures:?}"
        );
        assert_eq!((&*figures.verb, figures.code), ("DEL", 105));
        assert_eq!(figures.pod.as_deref(), Some("a/web"));
        assert_eq!(figures.container.as_deref(), Some("x"));
        assert_eq!(figures.failure.as_deref(), Some("no such address"));
        assert_eq!(figures.last.as_deref(), Some("journal"));
        let networks: Vec<_> = figures
            .networks
            .iter()
            .map(|it| (it.network.as_str(), it.done))
            .collect();
        assert_eq!(networks, [("a/b", true), ("a/c", false)]);
    }
}
