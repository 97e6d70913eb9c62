//! Events about the node itself. The agent retries each event until the API server creates or
//! refuses the event, or until newer events replace it in the queue.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use tracing::{info, warn};

use super::knowledge::Knowledge;
use super::pause::Pause;
use crate::cluster::api::{EventContext, create_node_event};
use crate::cluster::{Event, Installation, InstallationState, owed_writes};

/// The maximum number of events that wait for the API server. A further event replaces the oldest.
const MOST: usize = 16;
/// The longest pause after repeated failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The events that wait for the API server.
#[derive(Debug, Default)]
pub(super) struct NodeEvents {
    waiting: RefCell<VecDeque<(Event, String)>>,
    wake: Notify,
}

impl NodeEvents {
    /// Queues an event for [`NodeEvents::run`].
    pub(super) fn create(&self, event: Event) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() >= MOST {
            waiting.pop_front();
        }
        waiting.push_back((event, owed_writes::period_now()));
        self.wake.notify_one();
    }

    /// Queues an event about the installation if the installer reports a new state or a new reason.
    /// Ignores a state that this release does not know.
    pub(super) fn installation(&self, installation: &Installation) {
        let message = installation.message.as_str();
        let state = InstallationState::named(&installation.state);
        let Some(state) = state.filter(|_| installation.is_news) else {
            return;
        };
        info!(state = state.as_str(), "the installation: {message}");
        self.create(match state {
            InstallationState::Installed => Event::normal("Installed", message),
            InstallationState::Multus => Event::normal("MultusStays", message),
            InstallationState::MigrationWaits => Event::warning("MigrationWaits", message),
            InstallationState::NoNetwork => Event::warning("NoClusterNetwork", message),
            InstallationState::Failed => Event::warning("InstallationFailed", message),
        });
    }

    /// Creates the queued events. Never returns.
    pub(super) async fn run(self: Rc<Self>, knowledge: Rc<Knowledge>) {
        let pause = Pause::default();
        loop {
            let Some((event, period)) = self.waiting.borrow().front().cloned() else {
                self.wake.notified().await;
                continue;
            };
            let server = knowledge.server();
            let occasion = EventContext {
                node: &knowledge.node,
                period: &period,
            };
            match create_node_event(&server, &event, occasion).await {
                Err(error) if error.is_general() => {
                    warn!("cannot create an event about the node; the agent retries: {error}");
                    knowledge.renew_after(&error).await;
                    let length = pause.lengthen(LONGEST_PAUSE, error.retry_after());
                    tokio::time::sleep(length).await;
                    continue;
                }
                // Drop the event, because the API server would refuse a retry too.
                Err(error) => warn!("cannot create an event about the node: {error}"),
                Ok(()) => {}
            }
            pause.clear();
            let mut waiting = self.waiting.borrow_mut();
            waiting.pop_front_if(|(first, _)| *first == event);
        }
    }
}
