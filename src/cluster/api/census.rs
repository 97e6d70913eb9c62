//! The names of a node's pods and of the cluster's definitions, page by page.

use super::kinds::Objects;
use super::objects::{PodObject, PodView};
use super::pages::Item;
use super::{ApiError, ApiServer};
use crate::cluster::{Census, PodName};

impl ApiServer {
    /// Lists the pods of a node, without pods that have ended or use the host's network. Adds all
    /// definitions if `with_definitions` is set.
    pub(super) async fn census(
        &self,
        node: &str,
        with_definitions: bool,
    ) -> Result<Census, ApiError> {
        let mut census = Census {
            node: node.to_owned(),
            ..Census::default()
        };
        let take = |item: Item<'_>| {
            let read = item.object().ok().zip(item.read::<PodObject>());
            if let Some((name, view)) = read.map(|(name, pod)| (name, PodView::from(pod)))
                && !view.is_unattached
            {
                census
                    .pods
                    .push(PodName::of(&name, Some(view.identity.uid)));
            }
            true
        };
        self.list(&Objects::pods(node), take).await?;
        if with_definitions {
            self.add_definitions(&mut census, usize::MAX).await?;
        }
        Ok(census)
    }
}
