//! How many devices the node has and how many are in use, as kubelet reported them a moment ago: a
//! scrape makes no request.

use std::cell::{Ref, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::knowledge::Knowledge;
use crate::kubelet::Usage;

/// How long the figures hold.
const HOLD: Duration = Duration::from_secs(60);
/// How often kubelet is asked at most.
const PAUSE: Duration = Duration::from_secs(1);

/// The devices of this node.
#[derive(Debug, Default)]
pub(super) struct DeviceUsage {
    known: RefCell<Vec<Usage>>,
    changed: Notify,
    shown: Notify,
}

impl DeviceUsage {
    /// The figures for a page. Those of the next page are at most [`HOLD`] older than this one.
    pub(super) fn show(&self) -> Ref<'_, Vec<Usage>> {
        self.shown.notify_one();
        self.known.borrow()
    }

    /// Notes that a pod got devices.
    pub(super) fn changed(&self) {
        self.changed.notify_one();
    }

    /// Keeps the figures fresh, for ever, as long as pages show them.
    pub(super) async fn run(self: Rc<Self>, knowledge: Rc<Knowledge>) {
        loop {
            let devices = knowledge.devices().await;
            let is_known = devices.is_some();
            *self.known.borrow_mut() = devices.unwrap_or_default();
            sleep(PAUSE).await;
            if is_known {
                let _ = timeout(HOLD - PAUSE, self.changed.notified()).await;
            }
            self.shown.notified().await;
        }
    }
}
