//! Which networks the pods of a namespace may select (NPWG 1.3 §7.4).

use serde_json::Value;

use super::error::Reason;
use crate::cni::json::same_key;
use crate::cni::{NetworkConfig, PluginConfig};
use crate::npwg::ObjectRef;
use crate::request::NodeConfig;

/// Checks the policy for one network that a pod of `namespace` selects by annotation.
///
/// # Errors
/// [`Reason::Restricted`]: code 108.
pub(super) fn check(
    node: &NodeConfig,
    namespace: &str,
    object: &ObjectRef,
    config: &NetworkConfig,
) -> Result<(), Reason> {
    let Some(rule) = node.policy.rule(namespace) else {
        return Ok(());
    };
    let label = object.to_string();
    if !rule.networks.is_empty() && !rule.networks.contains(&label) {
        return Err(Reason::Restricted(format!(
            "the policy of namespace {namespace} does not list it under networks; add it there or select another"
        )));
    }
    for plugin in config.plugins() {
        let types = std::iter::once(plugin.plugin_type()).chain(plugin.ipam_type());
        for name in types.map(|plugin_type| plugin_type.as_str()) {
            if !rule.types.is_empty() && !rule.types.iter().any(|allowed| allowed == name) {
                return Err(Reason::Restricted(format!(
                    "the policy of namespace {namespace} does not list plugin {name} under types; add it there"
                )));
            }
        }
        if let Some(key) = rule.deny_keys.iter().find(|key| holds(plugin, key)) {
            return Err(Reason::Restricted(format!(
                "plugin {} has the key {key}, which the policy of namespace {namespace} denies; remove it",
                plugin.plugin_type()
            )));
        }
    }
    Ok(())
}

/// Checks `namespaceIsolation` for one definition that a pod of `namespace` names, in whichever
/// way.
///
/// # Errors
/// [`Reason::Restricted`]: code 108.
pub(super) fn isolation(
    node: &NodeConfig,
    namespace: &str,
    object: &ObjectRef,
) -> Result<(), Reason> {
    let global = node
        .global_namespaces
        .iter()
        .any(|global| global == object.namespace());
    if !node.namespace_isolation || object.namespace() == namespace || global {
        return Ok(());
    }
    Err(Reason::Restricted(format!(
        "namespaceIsolation keeps pods of namespace {namespace} from definitions of namespace {}; \
         define it in {namespace} or in one of globalNamespaces {}",
        object.namespace(),
        node.global_namespaces.join(", ")
    )))
}

/// Whether the plugin's configuration holds the dotted `path`. Keys are compared as plugins written
/// in Go read them, so that no other spelling of a key gets past the policy.
fn holds(plugin: &PluginConfig, path: &str) -> bool {
    let (first, rest) = path
        .split_once('.')
        .map_or((path, None), |(first, rest)| (first, Some(rest)));
    let values = plugin.body().iter().filter(|(key, _)| same_key(key, first));
    let mut values = values.map(|(_, raw)| raw);
    match rest {
        None => values.next().is_some(),
        Some(rest) => values.any(|raw| {
            serde_json::from_str(raw.get()).is_ok_and(|value| value_holds(&value, rest))
        }),
    }
}

fn value_holds(value: &Value, path: &str) -> bool {
    let (first, rest) = path
        .split_once('.')
        .map_or((path, None), |(first, rest)| (first, Some(rest)));
    let Value::Object(map) = value else {
        return false;
    };
    let mut values = map.iter().filter(|(key, _)| same_key(key, first));
    match rest {
        None => values.next().is_some(),
        Some(rest) => values.any(|(_, value)| value_holds(value, rest)),
    }
}
