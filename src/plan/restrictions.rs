//! Which networks the pods of a namespace may select (NPWG 1.3 §7.4).

use serde_json::value::RawValue;

use super::error::Reason;
use crate::cni::json::same_key;
use crate::cni::{NetworkConfig, RawObject};
use crate::npwg::ObjectRef;
use crate::plan::Attachment;
use crate::request::NodeConfig;

/// Keys below which some plugins have the configurations of further ones.
const DELEGATES: [&str; 3] = ["delegate", "delegates", "plugins"];
/// How many lists in one another are looked through for a denied key; host-local's `ranges` are two.
/// Each is read anew, so deeper ones are refused.
const LISTS: usize = 4;
/// How many plugins that execute one another are looked through; each level is read anew.
const LEVELS: usize = 8;
/// What a configuration of another plugin takes besides its text, in bytes.
const OBJECT: usize = 64;
/// How long a configuration may be of which every part may be read at every level, in bytes.
const SHORT: usize = 4 << 10;

/// Checks the policy for one network that a pod of `namespace` selects by annotation, with the
/// pod's own `cni-args`, which become `args.cni` of every plugin.
///
/// # Errors
/// [`Reason::Restricted`]: code 108.
pub(super) fn check(
    config: &NodeConfig,
    namespace: &str,
    object: &ObjectRef,
    network: &NetworkConfig,
    cni_args: Option<&RawObject>,
) -> Result<(), Reason> {
    let Some(rule) = config.policy.rule(namespace) else {
        return Ok(());
    };
    let label = object.to_string();
    if !rule.networks.is_empty() && !rule.networks.contains(&label) {
        return Err(Reason::Restricted(format!(
            "the policy of namespace {namespace} does not list it under networks; add it there or select another"
        )));
    }
    if let Some(key) = cni_args.and_then(|args| set(args, &rule.deny_keys)) {
        return Err(Reason::Restricted(format!(
            "the pod's annotation sets {key}, which the policy of namespace {namespace} denies; remove it there"
        )));
    }
    check_plugins(
        &rule.types,
        &rule.deny_keys,
        network,
        &format!("the policy of namespace {namespace}"),
    )
}

/// Refuses a selected network that has the cluster network's name and is another one, where a policy
/// restricts its namespace: IPAM plugins keep addresses by that name.
///
/// # Errors
/// [`Reason::Restricted`]: code 108.
pub(super) fn check_name(
    config: &NodeConfig,
    namespace: &str,
    cluster: &Attachment,
    selected: &Attachment,
) -> Result<(), Reason> {
    let rule = config.policy.rule(namespace);
    let restricts = rule.is_some_and(|rule| {
        !(rule.types.is_empty() && rule.deny_keys.is_empty() && rule.networks.is_empty())
    });
    let is_same = cluster.config.raw() == selected.config.raw();
    if !restricts || cluster.network != selected.network || is_same {
        return Ok(());
    }
    Err(Reason::Restricted(format!(
        "its name {} is the cluster network's, whose addresses it would use up; give it a name of its own",
        selected.network
    )))
}

/// Checks `policy.node` for one network of the node configuration, wherever its configuration
/// comes from.
///
/// # Errors
/// [`Reason::Restricted`]: code 108.
pub(super) fn check_node(config: &NodeConfig, network: &NetworkConfig) -> Result<(), Reason> {
    let rule = config.policy.node();
    check_plugins(&rule.types, &rule.deny_keys, network, "policy.node")
}

fn check_plugins(
    types: &[String],
    deny_keys: &[String],
    config: &NetworkConfig,
    policy: &str,
) -> Result<(), Reason> {
    let list = RawObject::parse(config.raw().as_bytes()).unwrap_or_default();
    let denied: Vec<Denied<'_>> = deny_keys.iter().map(|key| (&**key, &**key)).collect();
    // Of a single plugin it is said below.
    if !list.contains("type")
        && let Some(key) = held(&list, &denied)
    {
        return Err(Reason::Restricted(format!(
            "its list of plugins has the key {key}, which {policy} denies; remove it"
        )));
    }
    for plugin in config.plugins() {
        let mut executed = vec![(plugin.body().clone(), false, 0)];
        let mut room = LEVELS * (config.raw().len() + SHORT);
        while let Some((object, is_part, level)) = executed.pop() {
            let name = object.read::<String>("type").map_err(|error| {
                Reason::Restricted(format!("plugin {}: {error}", plugin.plugin_type()))
            });
            match name {
                Err(unreadable) if !types.is_empty() => return Err(unreadable),
                Ok(Some(name))
                    if !name.is_empty() && !types.is_empty() && !types.contains(&name) =>
                {
                    return Err(Reason::Restricted(format!(
                        "{policy} does not list plugin {name} under types; add it there"
                    )));
                }
                _ => {}
            }
            let denied = deny_keys.iter().map(|key| (key.as_str(), key.as_str()));
            let denied: Vec<Denied<'_>> = denied.filter(|_| !is_part).collect();
            if let Some(key) = held(&object, &denied) {
                return Err(Reason::Restricted(format!(
                    "plugin {} has the key {key}, which {policy} denies; remove it",
                    plugin.plugin_type()
                )));
            }
            let further = below(&object, &mut room).filter(|_| level < LEVELS);
            let further = further.ok_or_else(|| {
                Reason::Restricted(format!(
                    "plugin {} has more configurations of others, or deeper ones, than {policy} can \
                     check ({LEVELS} levels, {LISTS} lists in one another); flatten it",
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
/// `None` where lists are nested deeper than anybody looks, and where there is no more `room`: some
/// parts can be read in two ways, and twice as many at each level.
fn below(object: &RawObject, room: &mut usize) -> Option<Vec<(RawObject, bool)>> {
    let mut found = Vec::new();
    for (key, raw) in object.iter() {
        let is_ipam = same_key(key, "ipam");
        if is_ipam || is_of_delegates(key) {
            let mut configurations = Vec::new();
            objects(raw, LISTS, room, &mut configurations)?;
            for configuration in configurations {
                if !is_ipam && configuration.get("type").is_none() {
                    // Not one configuration, but several by their names.
                    let mut named = Vec::new();
                    let others = configuration.iter();
                    for (_, raw) in others.filter(|(key, _)| !is_of_delegates(key)) {
                        objects(raw, LISTS, room, &mut named)?;
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
fn objects(
    raw: &RawValue,
    lists: usize,
    room: &mut usize,
    found: &mut Vec<RawObject>,
) -> Option<()> {
    if raw.get().starts_with('{') {
        let one = serde_json::from_str(raw.get()).ok()?;
        *room = room.checked_sub(raw.get().len() + OBJECT)?;
        found.push(one);
    } else if raw.get().starts_with('[') {
        let list = serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok()?;
        let lists = lists.checked_sub(1)?;
        for element in list {
            objects(element, lists, room, found)?;
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
    config: &NodeConfig,
    namespace: &str,
    object: &ObjectRef,
) -> Result<(), Reason> {
    let global = config
        .global_namespaces
        .iter()
        .any(|global| global == object.namespace());
    if !config.namespace_isolation || object.namespace() == namespace || global {
        return Ok(());
    }
    Err(Reason::Restricted(format!(
        "namespaceIsolation keeps pods of namespace {namespace} from definitions of namespace {}; \
         define it in {namespace} or in one of globalNamespaces {}",
        object.namespace(),
        config.global_namespaces.join(", ")
    )))
}

/// The first of the paths at which the pod's `cni-args` put something, be it only below it: they
/// become `args.cni`.
fn set<'k>(cni_args: &RawObject, paths: &'k [String]) -> Option<&'k str> {
    if cni_args.is_empty() {
        return None;
    }
    let mut below = Vec::new();
    for path in paths {
        let mut keys = path.splitn(3, '.');
        let leads = |key: Option<&str>, to| key.is_none_or(|key| same_key(key, to));
        if leads(keys.next(), "args") && leads(keys.next(), "cni") {
            match keys.next() {
                None => return Some(path),
                Some(rest) => below.push((path.as_str(), rest)),
            }
        }
    }
    held(cni_args, &below)
}

/// A denied key, and what is left of its path.
type Denied<'k> = (&'k str, &'k str);

/// The first denied key that an object has by what is left of its dotted path, be it in an element of a
/// list on the way. Keys are compared as plugins written in Go read them, so that no other spelling of a
/// key gets past the policy; nor does a value beside it that only some parsers bear, since values are
/// not looked into. All are looked for at once: a value may be long.
fn held<'k>(object: &RawObject, denied: &[Denied<'k>]) -> Option<&'k str> {
    object.iter().find_map(|(key, raw)| {
        let mut below = Vec::new();
        for (denied, path) in denied {
            match path.split_once('.') {
                None if same_key(key, path) => return Some(*denied),
                Some((first, rest)) if same_key(key, first) => below.push((*denied, rest)),
                _ => {}
            }
        }
        held_below(raw, &below, LISTS)
    })
}

/// The first denied key that a value has; any of them where it has more lists in one another than anybody
/// looks through.
fn held_below<'k>(raw: &RawValue, denied: &[Denied<'k>], lists: usize) -> Option<&'k str> {
    let (first, _) = denied.first()?;
    match raw.get().as_bytes().first() {
        Some(b'[') if lists == 0 => Some(first),
        Some(b'[') => {
            let list: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
            let mut elements = list.into_iter();
            elements.find_map(|element| held_below(element, denied, lists - 1))
        }
        Some(b'{') => {
            let object: RawObject = serde_json::from_str(raw.get()).ok()?;
            held(&object, denied)
        }
        _ => None,
    }
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
            let found = super::held(&object, &[("another", "x.y"), (path, path)]);
            assert_eq!(found, held.then_some(path), "{path}");
        }
    }

    #[test]
    fn a_type_that_only_some_parsers_read_is_refused() {
        for hidden in [
            r#""delegate":{"type":["evil"]}"#,
            r#""delegates":[{"type":{"a":"evil"}}]"#,
            r#""ipam":{"type":7}"#,
        ] {
            let text = format!(r#"{{"cniVersion":"1.0.0","name":"n","type":"ptp",{hidden}}}"#);
            let Ok(config) = NetworkConfig::parse(text.as_bytes()) else {
                continue;
            };
            let check = |types: &[String]| check_plugins(types, &[], &config, "the policy");
            let refused = check(&["ptp".to_owned()]).unwrap_err().to_string();
            assert!(refused.contains("type"), "{refused}");
            assert_eq!(
                check(&[]),
                Ok(()),
                "without a policy it is the plugin's matter"
            );
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
            let paths = ["other".to_owned(), path.to_owned()];
            assert_eq!(set(&args, &paths), found.then_some(path), "{path}");
            assert_eq!(set(&RawObject::default(), &paths), None, "{path}");
        }
    }

    /// Each level could be read in two ways, and each denied key would read it anew.
    #[test]
    fn what_is_checked_grows_with_the_text_and_not_with_keys_or_levels() {
        let mut inner = format!(r#"{{"q":[{}]}}"#, vec!["{}"; 100_000].join(","));
        for key in ["ipam", "delegates"].repeat(4) {
            inner = format!(r#"{{"{key}":{inner}}}"#);
        }
        let both = |text: &str| {
            let text = format!(
                r#"{{"cniVersion":"1.0.0","name":"n","type":"ptp",{}"#,
                &text[1..]
            );
            let config = NetworkConfig::parse(text.as_bytes()).unwrap();
            let keys: Vec<String> = (0..1000).map(|key| format!("ipam.k{key}")).collect();
            check_plugins(&["ptp".to_owned()], &keys, &config, "the policy")
        };
        let begun = std::time::Instant::now();
        let refused = both(&inner).unwrap_err().to_string();
        assert!(refused.contains("flatten it"), "{refused}");
        let list = format!(r#"{{"ipam":[[[{}]]]}}"#, vec!["{}"; 100_000].join(","));
        assert!(both(&list).is_err());
        let ranges = vec![r#"{"subnet":"10.0.0.0/24","rangeStart":"10.0.0.7"}"#; 2000].join(",");
        assert_eq!(
            both(&format!(r#"{{"ipam":{{"ranges":[[{ranges}]]}}}}"#)),
            Ok(())
        );
        assert!(
            begun.elapsed() < std::time::Duration::from_secs(10),
            "{:?}",
            begun.elapsed()
        );
    }
}
