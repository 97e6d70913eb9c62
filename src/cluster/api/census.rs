//! Who is on a node: its pods and the cluster's definitions, page by page.

use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::objects::{PodObject, PodView};
use super::{ApiError, ApiServer};
use crate::cluster::{Census, PodName};

/// Pods a page.
const PAGE: usize = 100;

/// One page of a list of pods.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Page {
    metadata: PageMetadata,
    items: Vec<PodObject>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PageMetadata {
    #[serde(rename = "continue")]
    more: Option<String>,
}

impl ApiServer {
    /// The pods of a node that have, or will have, a network of their own, and all definitions where
    /// they are asked for.
    pub(super) async fn census(
        &self,
        node: &str,
        with_definitions: bool,
    ) -> Result<Census, ApiError> {
        let mut census = Census {
            node: node.to_owned(),
            ..Census::default()
        };
        let escaped = utf8_percent_encode(node, NON_ALPHANUMERIC);
        let pods = format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{escaped}");
        for pod in self.list(&pods).await? {
            let metadata = pod.metadata.clone();
            if !PodView::from(pod).is_unattached {
                census.pods.push(PodName {
                    namespace: metadata.namespace.unwrap_or_default(),
                    name: metadata.name.unwrap_or_default(),
                    uid: metadata.uid,
                });
            }
        }
        if with_definitions {
            let names = self.names_of_definitions(usize::MAX).await?;
            census.definitions = names.definitions;
            census.broken = names.broken;
        }
        Ok(census)
    }

    /// Every pod of a list; `path` ends where further parameters begin.
    async fn list(&self, path: &str) -> Result<Vec<PodObject>, ApiError> {
        let mut items = Vec::new();
        let mut more = String::new();
        loop {
            let path = format!("{path}&limit={PAGE}{more}");
            let page: Page = self.request(Method::GET, &path, None).await?;
            items.extend(page.items);
            match page.metadata.more.filter(|token| !token.is_empty()) {
                Some(token) => {
                    let token = utf8_percent_encode(&token, NON_ALPHANUMERIC);
                    more = format!("&continue={token}");
                }
                None => return Ok(items),
            }
        }
    }
}
