//! What the installer says of its node goes to the agent, which tells the cluster: the installer has
//! no access to the API.

use std::path::PathBuf;

use super::install::Options;
use crate::cluster::{Informant, Installation, InstallationState};

/// Where the agent listens unless the configuration says otherwise.
const AGENT: &str = "/run/jackfield/agent/agent.sock";

/// The state of the node as the agent was told last.
#[derive(Debug)]
pub(super) struct Report {
    agent: Informant,
    told: Option<(InstallationState, String)>,
}

impl Report {
    /// Nothing is told yet. What `is_known` is no news.
    pub(super) fn new(options: &Options) -> Report {
        let socket = options.template.as_ref().and_then(|template| {
            let named: Option<PathBuf> = template.read("agentSocket").ok().flatten();
            named
        });
        Report {
            agent: Informant::at(&socket.unwrap_or_else(|| AGENT.into())),
            told: None,
        }
    }

    /// The node has been in this state since before this process began.
    pub(super) fn is_known(&mut self, state: InstallationState, message: &str) {
        self.told.get_or_insert((state, message.to_owned()));
    }

    /// Tells the state, also where the agent was told it before: that one may have ended since.
    pub(super) fn tell(&mut self, state: InstallationState, message: &str) {
        let is_news = self
            .told
            .as_ref()
            .is_none_or(|(told, words)| (*told, words.as_str()) != (state, message));
        let installation = Installation {
            state: state.as_str().into(),
            message: message.to_owned(),
            is_news,
        };
        // An agent that is away is told at the next look.
        if self.agent.tell(installation) {
            self.told = Some((state, message.to_owned()));
        }
    }
}
