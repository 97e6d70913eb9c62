//! Which keys there are, for the documentation and for the warning about others.

use super::keys::Keys;

/// The keys that [`NodeConfig::parse`](super::NodeConfig::parse) reads, for the documentation and for the warning.
pub const KEYS: [&str; 31] = [
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
    "undeclared",
    "npwgVersion",
    "statusAddresses",
    "deadlines",
    "policy",
    "cniVersion",
    "cniVersions",
    "name",
];

fn is_known(key: &str) -> bool {
    key.starts_with("cni.dev/")
        || KEYS
            .iter()
            .chain(&ACCEPTED)
            .any(|known| known.eq_ignore_ascii_case(key))
}

/// Keys of the CNI protocol and of Multus that are taken without a word.
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

/// Keys that Multus has for its own process; they have no effect here.
pub const MULTUS_ONLY: [&str; 6] = [
    "logFile",
    "logLevel",
    "logToStderr",
    "logOptions",
    "retryDeleteOnError",
    "socketDir",
];

impl Keys<'_> {
    /// A line for each key that does nothing.
    pub(super) fn warnings(&self) -> Vec<String> {
        self.conf
            .iter()
            .filter(|(key, _)| !is_known(key))
            .map(|(key, _)| {
                if MULTUS_ONLY
                    .iter()
                    .any(|known| known.eq_ignore_ascii_case(key))
                {
                    format!("key {key:?} of the node configuration has no effect here")
                } else {
                    format!("unknown key {key:?} in the node configuration; it is ignored")
                }
            })
            .collect()
    }
}
