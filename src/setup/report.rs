//! Reports the state of the installation to the agent, which writes it to the cluster. The installer
//! has no access to the API.

use std::path::PathBuf;

use super::install::Options;
use crate::cluster::{Informant, Installation, InstallationState};
use crate::diagnostic::{self, Problem};

/// The default socket of the agent.
const AGENT: &str = "/run/jackfield/agent/agent.sock";

/// The last state that the agent received.
#[derive(Debug)]
pub(super) struct Report {
    agent: Informant,
    last: Option<(InstallationState, String)>,
}

impl Report {
    /// A report without a state yet.
    pub(super) fn new(options: &Options) -> Report {
        let socket = options.template.as_ref().and_then(|template| {
            let named: Option<PathBuf> = template.read("agentSocket").ok().flatten();
            named
        });
        Report {
            agent: Informant::at(&socket.unwrap_or_else(|| AGENT.into())),
            last: None,
        }
    }

    /// Takes a state that the node was in before this process began, so that it is no news.
    pub(super) fn assume(&mut self, state: InstallationState, problem: &dyn Problem) {
        self.last
            .get_or_insert_with(|| (state, diagnostic::line(problem)));
    }

    /// Sends the state, even if the agent received it before, since that agent may have ended.
    pub(super) fn send(&mut self, state: InstallationState, problem: &dyn Problem) {
        let current = (state, diagnostic::line(problem));
        let installation = Installation {
            state: state.as_str().into(),
            message: current.1.clone(),
            is_news: self.last.as_ref() != Some(&current),
        };
        // If the agent does not answer, the next look sends the state again.
        if self.agent.tell(installation) {
            self.last = Some(current);
        }
    }
}
