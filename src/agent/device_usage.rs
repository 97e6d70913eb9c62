//! Counts the devices of this node and those in use. The agent asks kubelet for the numbers in the
//! background, so that a scrape does not wait for kubelet.

use std::cell::{Ref, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::knowledge::Knowledge;
use crate::kubelet::Usage;

/// The time after which the numbers are out of date.
const HOLD: Duration = Duration::from_secs(60);
/// The shortest interval between two requests to kubelet.
const PAUSE: Duration = Duration::from_secs(1);

/// The devices of this node.
#[derive(Debug, Default)]
pub(super) struct DeviceUsage {
    known: RefCell<Vec<Usage>>,
    changed: Notify,
    shown: Notify,
}

impl DeviceUsage {
    /// Returns the numbers for the metrics page. If the numbers are out of date, returns the old
    /// numbers, and `run` reads new ones in the background.
    pub(super) fn show(&self) -> Ref<'_, Vec<Usage>> {
        self.shown.notify_one();
        self.known.borrow()
    }

    /// Marks the numbers as out of date, because a pod may have got devices.
    pub(super) fn changed(&self) {
        self.changed.notify_one();
    }

    /// Reads the numbers in a loop and never returns. After each read, waits until the numbers are
    /// out of date, then until a client requests the metrics page. If kubelet does not answer,
    /// waits for [`PAUSE`], then until a client requests the metrics page.
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
