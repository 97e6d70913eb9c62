//! The receiver of the events of a watch.

use crate::cluster::api::events::Event;
use crate::cluster::api::kinds::Objects;
use crate::cluster::api::{ApiError, ApiServer};

/// Receives what a watch reports.
#[allow(async_fn_in_trait, reason = "everything runs on one thread")]
pub(super) trait WatchTarget {
    /// Prepares for a new watch and returns the version at which the watch begins.
    async fn begin(&self, server: &ApiServer, objects: &Objects) -> Result<String, ApiError>;

    /// Handles an event.
    fn take(&self, event: Event<'_>);

    /// Notes that the watch may have missed events and has to begin again.
    fn lose(&self);

    /// Notes that the API server does not serve objects of this kind.
    fn none_served(&self);
}
