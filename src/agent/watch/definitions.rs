//! The watch of definitions, which reports that they changed, without their content.
//!
//! It begins at the current version, so that the API server sends nothing for definitions that do not
//! change.

use tracing::info;

use super::WatchTarget;
use crate::agent::definition_cache::DefinitionCache;
use crate::cluster::api::events::Event;
use crate::cluster::api::kinds::Objects;
use crate::cluster::api::{ApiError, ApiServer};

/// Reports changed definitions to the cache.
pub(super) struct DefinitionWatch<'a> {
    objects: Objects,
    kept: &'a DefinitionCache,
}

impl<'a> DefinitionWatch<'a> {
    /// A watch that reports to `kept`.
    pub(super) fn new(kept: &'a DefinitionCache) -> DefinitionWatch<'a> {
        DefinitionWatch {
            objects: Objects::definitions(),
            kept,
        }
    }
}

impl WatchTarget for DefinitionWatch<'_> {
    fn objects(&self) -> &Objects {
        &self.objects
    }

    fn version(&self) -> Option<String> {
        self.kept.version()
    }

    async fn begin(&self, server: &ApiServer) -> Result<String, ApiError> {
        let version = server.version_of(&self.objects).await?;
        self.kept.begin(version.clone());
        let kind = self.objects.kind;
        info!(kind, version, "changes are watched");
        Ok(version)
    }

    fn take(&self, event: Event<'_>) {
        if let Ok(object) = &event.object {
            self.kept.changed(object, &event.version);
        }
        if !event.version.is_empty() {
            self.kept.progress(event.version);
        }
    }

    fn lose(&self) {
        self.kept.lose();
    }

    fn none_served(&self) {
        self.kept.none_served();
    }
}
