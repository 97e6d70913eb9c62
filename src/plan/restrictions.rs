//! Decides which networks the pods of a namespace may select (NPWG 1.3 §7.4), and which plugins and
//! keys a network may use. `policy.node` applies to the networks of the node configuration.

mod denied_keys;
mod nested_plugins;

use denied_keys::{denied_key, denied_pod_key};
pub(super) use nested_plugins::{LEVELS, LISTS};
use nested_plugins::{NestedPlugin, room};

use super::Attachment;
use super::problem::Restriction;
use crate::cni::{NetworkConfig, PluginConfig, RawObject};
use crate::npwg::ObjectRef;
use crate::request::{NodeConfig, Rule, RuleName};

/// Checks whether the policy of `namespace` lets the pods of `namespace` select this network.
/// `cni_args` are the pod's `cni-args`, which every plugin gets as `args.cni`.
///
/// # Errors
/// [`Restriction`], with the CNI code 108.
pub(super) fn check(
    config: &NodeConfig,
    namespace: &str,
    object: &ObjectRef,
    network: &NetworkConfig,
    cni_args: Option<&RawObject>,
) -> Result<(), Restriction> {
    let Some(rule) = config.policy.rule(namespace) else {
        return Ok(());
    };
    if !rule.networks.is_empty() && !rule.networks.contains(&object.to_string()) {
        return Err(Restriction::Network(namespace.to_owned()));
    }
    if let Some(key) = cni_args.and_then(|args| denied_pod_key(args, &rule.deny_keys)) {
        return Err(Restriction::PodArgs {
            key: key.to_owned(),
            namespace: namespace.to_owned(),
        });
    }
    check_plugins(rule, &RuleName::Namespace(namespace.to_owned()), network)
}

/// If a policy restricts the pod's namespace, refuses a selected network that has the cluster
/// network's name but a different configuration. IPAM plugins allocate addresses by network name,
/// so the selected network would take addresses of the cluster network.
///
/// # Errors
/// [`Restriction`], with the CNI code 108.
pub(super) fn check_name(
    config: &NodeConfig,
    namespace: &str,
    cluster: &Attachment,
    selected: &Attachment,
) -> Result<(), Restriction> {
    let rule = config.policy.rule(namespace);
    let restricts = rule.is_some_and(|rule| *rule != Rule::default());
    let is_same = cluster.config.raw() == selected.config.raw();
    if !restricts || cluster.network != selected.network || is_same {
        return Ok(());
    }
    Err(Restriction::ClusterName(selected.network.clone()))
}

/// Checks a network of the node configuration against `policy.node`.
///
/// # Errors
/// [`Restriction`], with the CNI code 108.
pub(super) fn check_node(config: &NodeConfig, network: &NetworkConfig) -> Result<(), Restriction> {
    check_plugins(&config.policy.node, &RuleName::Node, network)
}

fn check_plugins(rule: &Rule, name: &RuleName, config: &NetworkConfig) -> Result<(), Restriction> {
    if rule.types.is_empty() && rule.deny_keys.is_empty() {
        return Ok(());
    }
    // Check the keys beside `plugins`. A configuration that is not a list has no such keys: all its
    // keys belong to its plugin, and `check_plugin` checks them.
    let list = RawObject::parse(config.raw().as_bytes()).unwrap_or_default();
    if !config.is_single()
        && let Some(key) = denied_key(&list, &rule.deny_keys)
    {
        return Err(Restriction::ListKey {
            key: key.to_owned(),
            rule: name.clone(),
        });
    }
    let mut plugins = config.plugins().iter();
    plugins.try_for_each(|plugin| check_plugin(rule, name, config, plugin))
}

/// Checks a plugin of the chain, and every further plugin that this plugin executes.
fn check_plugin(
    rule: &Rule,
    name: &RuleName,
    config: &NetworkConfig,
    plugin: &PluginConfig,
) -> Result<(), Restriction> {
    let mut room = room(config.raw().len());
    let mut pending = vec![(NestedPlugin::new(plugin.body().clone()), 0)];
    while let Some((nested, level)) = pending.pop() {
        check_type(rule, name, plugin, &nested.config)?;
        // `is_part` is set for `ipam`. The check of the plugin that contains `ipam` has already
        // covered the keys in `ipam`.
        if !nested.is_part
            && let Some(key) = denied_key(&nested.config, &rule.deny_keys)
        {
            return Err(Restriction::PluginKey {
                plugin: plugin.plugin_type().clone(),
                key: key.to_owned(),
                rule: name.clone(),
            });
        }
        let below = nested.below(&mut room).filter(|_| level < LEVELS);
        let below = below.ok_or_else(|| Restriction::TooDeep {
            plugin: plugin.plugin_type().clone(),
            rule: name.clone(),
        })?;
        pending.extend(below.into_iter().map(|it| (it, level + 1)));
    }
    Ok(())
}

fn check_type(
    rule: &Rule,
    name: &RuleName,
    plugin: &PluginConfig,
    executed: &RawObject,
) -> Result<(), Restriction> {
    if rule.types.is_empty() {
        return Ok(());
    }
    let executed = executed.read_text("type");
    let executed = executed.map_err(|error| Restriction::UnreadableType {
        plugin: plugin.plugin_type().clone(),
        error,
    })?;
    match executed {
        Some(executed) if !rule.types.contains(&executed) => Err(Restriction::PluginType {
            name: executed,
            rule: name.clone(),
        }),
        _ => Ok(()),
    }
}

/// Checks whether `namespaceIsolation` lets the pods of `namespace` select the definition `object`.
///
/// # Errors
/// [`Restriction`], with the CNI code 108.
pub(super) fn isolation(
    config: &NodeConfig,
    namespace: &str,
    object: &ObjectRef,
) -> Result<(), Restriction> {
    let global = &config.global_namespaces;
    let is_global = global.iter().any(|global| global == object.namespace());
    if !config.namespace_isolation || object.namespace() == namespace || is_global {
        return Ok(());
    }
    Err(Restriction::Isolated {
        namespace: namespace.to_owned(),
        definition: object.namespace().to_owned(),
        global: global.clone(),
    })
}

#[cfg(test)]
mod tests;
