//! Reports the state of the installation to the agent, which writes the state to the cluster. The
//! installer itself has no access to the API server.

use std::path::PathBuf;

use super::Say;
use super::install::Options;
use crate::cluster::{Informant, Installation, InstallationState};
use crate::diagnostic::{self, Problem};

/// The default socket of the agent.
const AGENT: &str = "/run/jackfield/agent/agent.sock";

/// What the agent received last, and what the installer logged last. A new state or a new reason is
/// news: the agent reports news in an event.
#[derive(Debug)]
pub(super) struct Report {
    agent: Informant,
    last: Option<(InstallationState, String)>,
    logged: String,
}

impl Report {
    /// Creates a report that has no state yet.
    pub(super) fn new(options: &Options) -> Report {
        let template = options.template.as_ref();
        let socket: Option<PathBuf> = template.and_then(|it| it.value_as("agentSocket"));
        Report {
            agent: Informant::at(&socket.unwrap_or_else(|| AGENT.into())),
            last: None,
            logged: String::new(),
        }
    }

    /// Records that the node had this state, for the reason `problem`, before this process started.
    /// The same state with the same reason then does not count as news. Does nothing if the report
    /// already has a state.
    pub(super) fn assume(&mut self, state: InstallationState, problem: &dyn Problem) {
        self.last
            .get_or_insert_with(|| (state, diagnostic::line(problem)));
    }

    /// Whether `problem` was logged last.
    pub(super) fn is_logged(&self, problem: &dyn Problem) -> bool {
        self.logged == diagnostic::line(problem)
    }

    /// Logs problems, unless the same problems were logged last.
    pub(super) fn log(&mut self, problems: &[&dyn Problem], say: Say<'_>) {
        let lines: Vec<String> = problems.iter().map(|it| diagnostic::line(*it)).collect();
        let lines = lines.join("\n");
        if self.logged != lines {
            problems.iter().for_each(|problem| say(*problem));
            self.logged = lines;
        }
    }

    /// Logs why the node is in a state, unless the same reason was logged last. Sends the state.
    pub(super) fn tell(&mut self, state: InstallationState, why: &dyn Problem, say: Say<'_>) {
        self.log(&[why], say);
        self.send(state, why);
    }

    /// Sends the state even if the agent has already received it, because the agent may have
    /// restarted since.
    pub(super) fn send(&mut self, state: InstallationState, problem: &dyn Problem) {
        let current = (state, diagnostic::line(problem));
        let installation = Installation {
            state: state.as_str().into(),
            message: current.1.clone(),
            is_news: self.last.as_ref() != Some(&current),
        };
        // If the agent did not receive the state, the state is still news in the next call.
        if self.agent.tell(installation) {
            self.last = Some(current);
        }
    }
}
