//! The keys of the node configuration, for the documentation and for warnings about other keys.

use super::keys::Keys;
use crate::cni::RawObject;
use crate::request::{deadlines, log, policy};

/// The keys that [`NodeConfig::parse`](super::NodeConfig::parse) reads.
pub const KEYS: [&str; 37] = [
    "clusterNetwork",
    "delegates",
    "defaultNetworks",
    "systemNamespaces",
    "agentSocket",
    "kubeconfig",
    "manifestDir",
    "confDir",
    "binDir",
    "cniDir",
    "multusNamespace",
    "namespaceIsolation",
    "globalNamespaces",
    "readinessindicatorfile",
    "auxiliaryCNIChainName",
    "journalDir",
    "devInfoDir",
    "sysfsRoot",
    "podResourcesSocket",
    "kubeletCheckpoint",
    "invalidAnnotation",
    "verify",
    "verifyCluster",
    "delegateCheck",
    "undeclared",
    "npwgVersion",
    "statusAddresses",
    "statusNeedsAgent",
    "deadlines",
    "policy",
    "logFile",
    "logLevel",
    "logToStderr",
    "logOptions",
    "cniVersion",
    "cniVersions",
    "name",
];

fn is_known(key: &str) -> bool {
    key.starts_with("cni.dev/")
        || KEYS
            .iter()
            .chain(&ACCEPTED)
            .any(|name| name.eq_ignore_ascii_case(key))
}

/// Keys of the CNI protocol and of Multus that cause no warning.
pub const ACCEPTED: [&str; 12] = [
    "cniVersion",
    "cniVersions",
    "name",
    "type",
    "capabilities",
    "runtimeConfig",
    "prevResult",
    "disableCheck",
    "disableGC",
    "args",
    "dns",
    "ipam",
];

/// Keys of Multus' own process, which have no effect here.
pub const MULTUS_ONLY: [&str; 2] = ["retryDeleteOnError", "socketDir"];

/// The largest number of warnings that name a key.
const MOST_WARNINGS: usize = 32;

impl Keys<'_> {
    /// One line for each key without an effect, including the keys of `deadlines`, `logOptions` and
    /// `policy`, since a misspelt restriction restricts nothing.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = self.top_level_warnings();
        let mut inside = |place: &str, object: &RawObject, known: &[&str]| {
            let keys = object.iter().map(|(key, _)| key);
            let unknown =
                keys.filter(|key| !known.iter().any(|name| name.eq_ignore_ascii_case(key)));
            warnings.extend(unknown.map(|key| {
                format!("unknown key {key:?} in {place} of the node configuration; it is ignored")
            }));
        };
        let object = |outer: &RawObject, key: &str| outer.read::<RawObject>(key).ok().flatten();
        if let Some(deadlines) = object(self.conf, "deadlines") {
            inside("deadlines", &deadlines, &deadlines::KEYS);
        }
        if let Some(options) = object(self.conf, "logOptions") {
            inside("logOptions", &options, &log::OPTIONS);
        }
        if let Some(policy) = object(self.conf, "policy") {
            inside("policy", &policy, &["namespaces", "node"]);
            if let Some(rule) = object(&policy, "node") {
                inside("policy.node", &rule, &policy::NODE_KEYS);
            }
            let namespaces = object(&policy, "namespaces").unwrap_or_default();
            for (namespace, rule) in namespaces.iter() {
                let rule: RawObject = serde_json::from_str(rule.get()).unwrap_or_default();
                inside(
                    &format!("policy.namespaces.{namespace}"),
                    &rule,
                    &policy::KEYS,
                );
            }
        }
        let omitted = warnings.len().saturating_sub(MOST_WARNINGS);
        if omitted > 0 {
            warnings.truncate(MOST_WARNINGS);
            warnings.push(format!(
                "{omitted} more keys of the node configuration are unknown; they are ignored"
            ));
        }
        warnings
    }

    fn top_level_warnings(&self) -> Vec<String> {
        self.conf
            .iter()
            .filter(|(key, _)| !is_known(key))
            .map(|(key, _)| {
                if MULTUS_ONLY
                    .iter()
                    .any(|name| name.eq_ignore_ascii_case(key))
                {
                    format!("key {key:?} of the node configuration has no effect here")
                } else {
                    format!("unknown key {key:?} in the node configuration; it is ignored")
                }
            })
            .collect()
    }
}
