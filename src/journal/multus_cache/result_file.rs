//! The file in which libcni caches one attachment with its arguments and its result.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{CacheError, CachedAttachment, config};
use crate::cni::{CapabilityArgs, CniResult, InterfaceName, RawObject};
use crate::journal::Key;

/// A file in the cache of libcni.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ResultFile {
    pub(super) container_id: Option<String>,
    config: Option<String>,
    if_name: Option<String>,
    network_name: Option<String>,
    netns: Option<String>,
    cni_args: Option<Vec<Vec<String>>>,
    capability_args: Option<RawObject>,
    result: Option<Box<RawValue>>,
}

impl ResultFile {
    pub(super) fn is_of(&self, ifname: &InterfaceName) -> bool {
        self.if_name.as_deref() == Some(ifname.as_str())
    }

    /// Returns a key that sorts `net2` before `net10`.
    pub(super) fn sort_key(&self) -> (usize, String) {
        let name = self.if_name.clone().unwrap_or_default();
        (name.len(), name)
    }

    pub(super) fn netns(&self) -> Option<String> {
        self.netns.clone().filter(|netns| !netns.is_empty())
    }

    pub(super) fn args(&self) -> String {
        let pairs = self.cni_args.iter().flatten();
        let pairs = pairs.filter_map(|pair| match pair.as_slice() {
            [key, value] if !key.is_empty() => Some(format!("{key}={value}")),
            _ => None,
        });
        pairs.collect::<Vec<_>>().join(";")
    }

    /// Copies `CNI_ARGS`, the capability arguments and the result of the ADD from this file to
    /// `cached`. If the file lacks `CNI_ARGS` or capability arguments, `cached` keeps its own.
    pub(super) fn complete(self, cached: &mut CachedAttachment) {
        let args = self.args();
        if !args.is_empty() {
            cached.args = args;
            cached.attachment.extra_args.clear();
        }
        if let Some(given) = &self.capability_args {
            cached.attachment.capability_args = CapabilityArgs::from(given);
        }
        let version = cached.attachment.config.version();
        let parse = |raw: Box<RawValue>| CniResult::parse(raw.get().as_bytes(), version).ok();
        cached.result = self.result.and_then(parse);
    }

    pub(super) fn attachment(self, key: &Key) -> Result<CachedAttachment, CacheError> {
        let ifname: InterfaceName = self.if_name.as_deref().unwrap_or_default().parse()?;
        let config = config(self.config.as_deref())?;
        let label = self.network_name.clone().unwrap_or_default();
        let is_cluster = ifname == key.ifname;
        let mut cached = CachedAttachment::bare(label, is_cluster, ifname, config)?;
        self.complete(&mut cached);
        Ok(cached)
    }
}
