//! Who is on a node: its pods and the cluster's definitions, page by page.

use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::Value;

use super::{ApiError, ApiServer};
use crate::cluster::{Census, PodName};

/// Objects a page.
const PAGE: usize = 100;

/// One page of a list; of its objects only what is looked at.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Page {
    metadata: PageMetadata,
    items: Vec<Item>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PageMetadata {
    #[serde(rename = "continue")]
    more: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Item {
    metadata: Metadata,
    spec: Value,
    status: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    namespace: String,
    name: String,
    uid: Option<String>,
}

impl ApiServer {
    /// The pods of a node that have, or will have, a network of their own, and all definitions.
    pub(super) async fn census(&self, node: &str) -> Result<Census, ApiError> {
        let mut census = Census {
            node: node.to_owned(),
            ..Census::default()
        };
        let escaped = utf8_percent_encode(node, NON_ALPHANUMERIC);
        let pods = format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{escaped}");
        for pod in self.list(&pods).await? {
            if pod.is_attached() {
                census.pods.push(PodName {
                    namespace: pod.metadata.namespace,
                    name: pod.metadata.name,
                    uid: pod.metadata.uid,
                });
            }
        }
        let names = self.names_of_definitions(usize::MAX).await?;
        census.definitions = names.definitions;
        census.broken = names.broken;
        Ok(census)
    }

    /// Every object of a list; `path` ends where further parameters begin.
    async fn list(&self, path: &str) -> Result<Vec<Item>, ApiError> {
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

impl Item {
    /// Whether a runtime attaches it, or has: not one on the host's network, nor one that ended.
    fn is_attached(&self) -> bool {
        let is_on_host = self.spec.get("hostNetwork").and_then(Value::as_bool) == Some(true);
        let phase = self.status.get("phase").and_then(Value::as_str);
        !is_on_host && !matches!(phase, Some("Succeeded" | "Failed"))
    }
}
