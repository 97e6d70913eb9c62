//! Reads lists page by page, with a limit for the size of a page in bytes.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::value::RawValue;
use tracing::warn;

use super::kinds::{METADATA_LIST, ObjectHead, ObjectNameError, Objects};
use super::server::{GROUP, LARGEST};
use super::{ApiError, ApiServer};
use crate::npwg::ObjectRef;

/// The maximum number of objects on the first page. The page is small, because the client does not
/// yet know the size of the objects.
const FIRST: usize = 16;
/// The maximum number of objects on a later page.
const MOST: usize = 500;
/// The size limit of a page of more than one object, in bytes.
const PAGE_BYTES: usize = 512 << 10;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Page<'a> {
    metadata: PageMetadata,
    /// `null` in an empty list.
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PageMetadata {
    #[serde(rename = "resourceVersion")]
    version: String,
    #[serde(rename = "continue")]
    more: Option<String>,
}

/// How many objects the next page has.
#[derive(Debug, Clone, Copy)]
struct PageSize(usize);

impl PageSize {
    fn bytes(self) -> usize {
        match self.0 {
            1 => LARGEST,
            _ => PAGE_BYTES,
        }
    }

    /// Returns the number of objects for the next page. The current page has `length` bytes. The
    /// next page should have about half of `PAGE_BYTES`.
    fn after(self, length: usize) -> PageSize {
        PageSize((self.0 * (PAGE_BYTES / 2) / length.max(1)).clamp(1, MOST))
    }

    /// Returns the number of objects for a retry after a page was too long.
    fn smaller(self) -> PageSize {
        PageSize((self.0 / 8).max(1))
    }
}

/// One object of a list.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a>(&'a RawValue);

impl<'a> Item<'a> {
    /// Returns the object's name.
    ///
    /// # Errors
    /// [`ObjectNameError`].
    pub fn object(self) -> Result<ObjectRef, ObjectNameError> {
        let head: ObjectHead = serde_json::from_str(self.0.get())?;
        Ok(head.object()?)
    }

    /// Returns the object's text.
    pub fn text(self) -> &'a str {
        self.0.get()
    }

    /// Reads the object. If the object cannot be read, logs a warning and returns `None`.
    pub(super) fn read<T: Deserialize<'a>>(self) -> Option<T> {
        let read = serde_json::from_str(self.text());
        read.inspect_err(|cause| match self.object() {
            Ok(object) => warn!("skipped {object}, which cannot be read: {cause}"),
            Err(cause) => warn!("skipped an object without a valid name: {cause}"),
        })
        .ok()
    }
}

impl ApiServer {
    /// Reads a list, and passes each object to `take` until `take` returns false. Returns the
    /// resource version of the list. Keeps only one page in memory at a time.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn list(
        &self,
        objects: &Objects,
        mut take: impl FnMut(Item<'_>) -> bool,
    ) -> Result<String, ApiError> {
        let (mut size, mut more) = (PageSize(FIRST), String::new());
        loop {
            let path = objects.path(&format!("limit={}{more}", size.0));
            let text = match self.get(&path, objects.listed_as, size.bytes()).await {
                Err(error) if error.is_long_answer() && size.0 > 1 => {
                    size = size.smaller();
                    continue;
                }
                text => text?,
            };
            let page: Page<'_> = self.parse(&format!("GET {path}"), &text)?;
            let items = page.items.unwrap_or_default();
            let is_wanted = items.into_iter().all(|item| take(Item(item)));
            size = size.after(text.len());
            match page.metadata.more.filter(|token| !token.is_empty()) {
                Some(token) if is_wanted => {
                    let token = utf8_percent_encode(&token, NON_ALPHANUMERIC);
                    more = format!("&continue={token}");
                }
                _ => return Ok(page.metadata.version),
            }
        }
    }

    /// Returns the resource version of the cluster's definitions. A watch can begin at this
    /// version.
    ///
    /// Lists only the definition with the arbitrary name `any` in the namespace `default`. This
    /// definition need not exist. For this list, the API server examines no other definition. For
    /// a list with `limit=1`, the API server examines all definitions. With 10,000 definitions,
    /// this list took 1.0 ms of CPU time, and a list with `limit=1` took 2.7 ms.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn definitions_version(&self) -> Result<String, ApiError> {
        let path = format!(
            "/apis/{GROUP}/v1/namespaces/default/network-attachment-definitions?\
             fieldSelector=metadata.name%3Dany"
        );
        let text = self.get(&path, METADATA_LIST, LARGEST).await?;
        let page: Page<'_> = self.parse(&format!("GET {path}"), &text)?;
        Ok(page.metadata.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_even_if_an_object_is_invalid() {
        let none: Page<'_> =
            serde_json::from_str(r#"{"metadata":{"resourceVersion":"7"},"items":null}"#).unwrap();
        assert_eq!(
            (none.metadata.version.as_str(), none.items.is_none()),
            ("7", true)
        );
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let text = format!(
            r#"{{"items":[{{"metadata":{{"name":"a","namespace":"b","x":{deep}}}}},{{"metadata":{{"name":7}}}}]}}"#
        );
        let page: Page<'_> = serde_json::from_str(&text).unwrap();
        let items = page.items.unwrap();
        assert_eq!(Item(items[0]).object().unwrap().to_string(), "b/a");
        assert!(Item(items[1]).object().is_err());
    }

    #[test]
    fn a_page_has_many_small_objects_or_few_large_ones() {
        let first = PageSize(FIRST);
        assert_eq!(first.after(FIRST * 100).0, MOST, "small objects");
        assert_eq!(first.after(FIRST << 13).0, 32);
        assert_eq!(first.smaller().smaller().0, 1);
        let large = PageSize(1).after(2 << 20);
        assert_eq!(
            (large.0, large.bytes()),
            (1, LARGEST),
            "one object per page"
        );
        assert_eq!(large.after(100).0, MOST);
    }
}
