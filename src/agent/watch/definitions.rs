//! The watch of definitions: which of them changed, not what they are.
//!
//! It begins at the version of the moment, so that the API server sends nothing for definitions
//! that stay as they are.

use tracing::info;

use super::WatchTarget;
use crate::agent::definition_cache::DefinitionCache;
use crate::cluster::api::events::Event;
use crate::cluster::api::kinds::Objects;
use crate::cluster::api::{ApiError, ApiServer};

/// The definitions that are kept, as far as changes of them go.
pub(super) struct DefinitionWatch<'a> {
    objects: Objects,
    kept: &'a DefinitionCache,
}

impl<'a> DefinitionWatch<'a> {
    /// Changes are to be told to `kept`.
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
