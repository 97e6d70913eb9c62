//! Which networks the pods of a namespace may select (NPWG 1.3 §7.4).

use serde_json::value::RawValue;

use super::error::Reason;
use crate::cni::json::same_key;
use crate::cni::{NetworkConfig, RawObject};
use crate::npwg::ObjectRef;
use crate::request::NodeConfig;

/// Keys below which some plugins have the configurations of further ones.
const DELEGATES: [&str; 3] = ["delegate", "delegates", "plugins"];
/// How many lists in one another are looked through for a denied key; host-local's `ranges` are two.
/// Each is read anew, so deeper ones are refused.
const LISTS: usize = 4;
/// How many plugins that execute one another are looked through; each level is read anew.
const LEVELS: usize = 8;

/// Checks the policy for one network that a pod of `namespace` selects by annotation, with the
/// pod's own `cni-args`, which become `args.cni` of every plugin.
///
/// # Errors
/// [`Reason::Restricted`]: code 108.
pub(super) fn check(
    node: &NodeConfig,
    namespace: &str,
    object: &ObjectRef,
    config: &NetworkConfig,
    cni_args: Option<&RawObject>,
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
    let sets = |key: &&String| cni_args.is_some_and(|args| sets(args, key));
    if let Some(key) = rule.deny_keys.iter().find(sets) {
        return Err(Reason::Restricted(format!(
            "the pod's annotation sets {key}, which the policy of namespace {namespace} denies; remove it there"
        )));
    }
    check_plugins(
        &rule.types,
        &rule.deny_keys,
        config,
        &format!("the policy of namespace {namespace}"),
    )
}

/// Checks `policy.node` for one network of the node configuration, wherever its configuration
/// comes from.
///
/// # Errors
/// [`Reason::Restricted`]: code 108.
pub(super) fn check_node(node: &NodeConfig, config: &NetworkConfig) -> Result<(), Reason> {
    let rule = node.policy.node();
    check_plugins(&rule.types, &rule.deny_keys, config, "policy.node")
}

fn check_plugins(
    types: &[String],
    deny_keys: &[String],
    config: &NetworkConfig,
    policy: &str,
) -> Result<(), Reason> {
    for plugin in config.plugins() {
        let mut executed = vec![(plugin.body().clone(), false, 0)];
        while let Some((object, is_part, level)) = executed.pop() {
            let name = object.read::<String>("type").ok().flatten();
            let name = name.filter(|name| !name.is_empty());
            if let Some(name) = name.filter(|name| !types.is_empty() && !types.contains(name)) {
                return Err(Reason::Restricted(format!(
                    "{policy} does not list plugin {name} under types; add it there"
                )));
            }
            let mut denied = deny_keys.iter().filter(|_| !is_part);
            if let Some(key) = denied.find(|key| holds(&object, key)) {
                return Err(Reason::Restricted(format!(
                    "plugin {} has the key {key}, which {policy} denies; remove it",
                    plugin.plugin_type()
                )));
            }
            let further = below(&object).filter(|_| level < LEVELS).ok_or_else(|| {
                Reason::Restricted(format!(
                    "plugin {} has configurations of others deeper than {policy} can check \
                     ({LEVELS} levels, {LISTS} lists in one another); flatten it",
                    plugin.plugin_type()
                ))
            })?;
            executed.extend(
                further
                    .into_iter()
                    .map(|(it, is_part)| (it, is_part, level + 1)),
            );
        }
    }
    Ok(())
}

/// The configurations of the plugins that a plugin executes itself, as flannel does that in
/// `delegate` and most do that in `ipam`; of each, whether it is a mere part of the plugin's own.
/// `None` where lists are nested deeper than anybody looks.
fn below(object: &RawObject) -> Option<Vec<(RawObject, bool)>> {
    let mut found = Vec::new();
    for (key, raw) in object.iter() {
        let is_ipam = same_key(key, "ipam");
        if is_ipam || is_of_delegates(key) {
            let mut configurations = Vec::new();
            objects(raw, LISTS, &mut configurations)?;
            for configuration in configurations {
                if !is_ipam && configuration.get("type").is_none() {
                    // Not one configuration, but several by their names.
                    let mut named = Vec::new();
                    let others = configuration.iter();
                    for (_, raw) in others.filter(|(key, _)| !is_of_delegates(key)) {
                        objects(raw, LISTS, &mut named)?;
                    }
                    found.extend(named.into_iter().map(|it| (it, false)));
                }
                found.push((configuration, is_ipam));
            }
        }
    }
    Some(found)
}

fn is_of_delegates(key: &str) -> bool {
    DELEGATES.iter().any(|delegates| same_key(key, delegates))
}

/// Every object in a value and in the lists in it. What else is there hides none of them: Go skips
/// `null` in a list.
fn objects(raw: &RawValue, lists: usize, found: &mut Vec<RawObject>) -> Option<()> {
    if let Ok(one) = serde_json::from_str(raw.get()) {
        found.push(one);
    } else if let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
        let lists = lists.checked_sub(1)?;
        for element in list {
            objects(element, lists, found)?;
        }
    }
    Some(())
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

/// Whether the pod's `cni-args` put something at `path`, be it only below it: they become
/// `args.cni`.
fn sets(cni_args: &RawObject, path: &str) -> bool {
    if cni_args.is_empty() {
        return false;
    }
    let mut keys = path.splitn(3, '.');
    let leads = |key: Option<&str>, to| key.is_none_or(|key| same_key(key, to));
    leads(keys.next(), "args")
        && leads(keys.next(), "cni")
        && keys.next().is_none_or(|below| holds(cni_args, below))
}

/// Whether an object holds the dotted `path`, be it in an element of a list on the way. Keys are
/// compared as plugins written in Go read them, so that no other spelling of a key gets past the policy; nor does a value beside it that only
/// some parsers bear, since values are not looked into.
fn holds(object: &RawObject, path: &str) -> bool {
    let (first, rest) = path
        .split_once('.')
        .map_or((path, None), |(first, rest)| (first, Some(rest)));
    let values = object.iter().filter(|(key, _)| same_key(key, first));
    let mut values = values.map(|(_, raw)| raw);
    match rest {
        None => values.next().is_some(),
        Some(rest) => values.any(|raw| is_below(raw, rest, LISTS)),
    }
}

/// Whether a value holds `path`, or has more lists in one another than anybody looks through.
fn is_below(raw: &RawValue, path: &str, lists: usize) -> bool {
    if let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
        let mut elements = list.into_iter();
        return lists == 0 || elements.any(|element| is_below(element, path, lists - 1));
    }
    let object = serde_json::from_str::<RawObject>(raw.get());
    object.is_ok_and(|object| holds(&object, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denied_key_is_found_however_it_is_spelt_and_whatever_stands_beside_it() {
        let object = RawObject::parse(
            br#"{"type":"ptp","IPAM":{"n":1e400,"\u0064ataDir":"/"},"ipam":{},"list":[[7,{"a":1}],{"b":null}],"deep":[[[[[{"y":1}]]]]],"ny\u017fctl":null}"#,
        )
        .unwrap();
        for (path, held) in [
            ("type", true),
            ("ipam", true),
            ("ipam.dataDir", true),
            ("ipam.datadir", true),
            ("ipam.n", true),
            ("ipam.dataDir.x", false),
            ("list.a", true),
            ("LIST.b", true),
            ("list.c", false),
            ("nysctl", true),
            ("dataDir", false),
            ("", false),
            ("deep.x", true),
        ] {
            assert_eq!(holds(&object, path), held, "{path}");
        }
    }

    #[test]
    fn what_a_pod_puts_into_args_is_found_by_every_path_that_leads_there() {
        let args = RawObject::parse(br#"{"zz":{"q":1}}"#).unwrap();
        for (path, found) in [
            ("args", true),
            ("Args.CNI", true),
            ("args.cni.zz", true),
            ("args.cni.zz.q", true),
            ("args.cni.zz.r", false),
            ("args.other", false),
            ("ipam", false),
        ] {
            assert_eq!(sets(&args, path), found, "{path}");
            assert!(!sets(&RawObject::default(), path), "{path}");
        }
    }
}
