//! The known keys of the node configuration, and warnings about keys that have no effect.

use super::NodeConfig;
use super::keys::Keys;
use crate::cni::{RawObject, Version};

/// Keys of the CNI protocol that cause no warning, even if Jackfield does not use them.
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

/// Keys that Multus' plugin uses, but that have no effect in Jackfield.
pub const MULTUS_ONLY: [&str; 2] = ["retryDeleteOnError", "socketDir"];

/// The maximum number of warnings about single keys. If there are more, one further warning counts
/// the omitted ones.
const MOST_WARNINGS: usize = 32;

/// Returns the keys that [`NodeConfig::parse`] reads, except `cniVersion` and `cniVersions`.
pub fn keys() -> Vec<String> {
    let smallest = br#"{"name": "n", "clusterNetwork": "n"}"#;
    let smallest = RawObject::parse(smallest).unwrap_or_default();
    let keys = Keys::of(&smallest, String::new());
    drop(NodeConfig::read(Version::LATEST, &keys));
    let (known, _) = keys.into_known();
    known.into_iter().map(str::to_owned).collect()
}

/// Returns a warning for each unknown key and each key of [`MULTUS_ONLY`], up to [`MOST_WARNINGS`].
/// Includes unknown keys of nested objects. Keys of [`ACCEPTED`] and keys that begin with
/// `cni.dev/` cause no warning.
pub(super) fn warnings(keys: Keys<'_>) -> Vec<String> {
    let is = |key: &str, names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(key));
    let unknown = keys.unknown();
    let unknown = unknown.filter(|key| !key.starts_with("cni.dev/") && !is(key, &ACCEPTED));
    let mut warnings: Vec<String> = unknown
        .map(|key| match is(key, &MULTUS_ONLY) {
            true => format!("key {key:?} of the node configuration has no effect in Jackfield"),
            false => format!("unknown key {key:?} in the node configuration; it is ignored"),
        })
        .collect();
    warnings.extend(keys.into_known().1);
    let omitted = warnings.len().saturating_sub(MOST_WARNINGS);
    if omitted > 0 {
        warnings.truncate(MOST_WARNINGS);
        warnings.push(format!(
            "{omitted} more keys of the node configuration have no effect"
        ));
    }
    warnings
}
