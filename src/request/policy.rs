//! The key `policy`. It restricts the networks that the pods of a namespace may select (NPWG 1.3
//! §7.4), and the plugins and keys of these networks. A separate rule restricts the plugins and
//! keys of the networks in the node configuration.

use std::collections::BTreeMap;
use std::fmt;

use super::node_config::{Keys, NodeConfigError, ValueError};
use crate::cni::PluginType;
use crate::npwg::ObjectRef;

/// The rules for networks that pods select by annotation, and for networks of the node
/// configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    namespaces: BTreeMap<String, Rule>,
    /// The rule for the networks of the node configuration: the cluster network, `delegates`,
    /// `defaultNetworks` and the plugins of `auxiliaryCNIChainName`.
    pub node: Rule,
}

/// A rule. An empty list restricts nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// The plugin types that may run, including IPAM plugins.
    pub types: Vec<String>,
    /// The definitions that pods may select, as `namespace/name`.
    pub networks: Vec<String>,
    /// Keys, such as `ipam.dataDir` or `sysctl`, that neither a network's configuration nor the
    /// pod's `cni-args` may contain.
    pub deny_keys: Vec<String>,
    /// Whether the rule has `dynamicAttachment: false`. A changed annotation then does not change
    /// the networks of a running pod.
    pub denies_changes: bool,
}

/// The name of a rule in messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleName {
    /// The rule for the pods of a namespace.
    Namespace(String),
    /// The rule for the networks of the node configuration.
    Node,
}

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleName::Namespace(name) => write!(f, "the policy of namespace {name}"),
            RuleName::Node => f.write_str("policy.node"),
        }
    }
}

impl Rule {
    /// Reads the rule for the networks of the node configuration. This rule has no `networks`,
    /// because the node configuration names its networks itself.
    fn of_node(keys: &Keys<'_>) -> Result<Rule, NodeConfigError> {
        Ok(Rule {
            types: list(keys, "types", ValueError::PluginType, |name| {
                name.parse::<PluginType>().is_ok()
            })?,
            networks: Vec::new(),
            deny_keys: list(keys, "denyKeys", ValueError::DeniedKey, |path| {
                !path.split('.').any(str::is_empty)
            })?,
            denies_changes: false,
        })
    }

    /// Reads the rule for the pods of a namespace.
    fn of_namespace(keys: &Keys<'_>) -> Result<Rule, NodeConfigError> {
        Ok(Rule {
            networks: list(keys, "networks", ValueError::Definition, |name| {
                name.parse::<ObjectRef>().is_ok()
            })?,
            denies_changes: keys.read("dynamicAttachment")? == Some(false),
            ..Rule::of_node(keys)?
        })
    }
}

/// Reads a list of a rule. Refuses an invalid value, because it would match nothing.
fn list<'a>(
    keys: &Keys<'a>,
    key: &'a str,
    cause: ValueError,
    is_valid: fn(&str) -> bool,
) -> Result<Vec<String>, NodeConfigError> {
    let values: Vec<String> = keys.read(key)?.unwrap_or_default();
    match values.iter().find(|value| !is_valid(value)) {
        Some(invalid) => Err(keys.invalid(key, invalid, cause)),
        None => Ok(values),
    }
}

impl Policy {
    /// Reads `policy`.
    pub(super) fn read(keys: &Keys<'_>) -> Result<Policy, NodeConfigError> {
        Ok(Policy {
            node: keys.inside("node", Rule::of_node)?,
            namespaces: keys.inside("namespaces", |keys| {
                let rule = |(namespace, raw)| {
                    if namespace != "*" {
                        keys.check_namespace(namespace, namespace)?;
                    }
                    let rule = keys.inside_value(namespace, raw, Rule::of_namespace)?;
                    Ok((namespace.to_owned(), rule))
                };
                keys.written().map(rule).collect()
            })?,
        })
    }

    /// Returns the rule of `namespace`, or the rule of `*` if `namespace` has no rule.
    pub fn rule(&self, namespace: &str) -> Option<&Rule> {
        self.namespaces
            .get(namespace)
            .or_else(|| self.namespaces.get("*"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cni::RawObject;
    use crate::cost::linear;

    fn read(policy: &str) -> Result<Policy, NodeConfigError> {
        let wire = RawObject::parse(policy.as_bytes()).unwrap();
        Policy::read(&Keys::of(&wire, "policy".to_owned()))
    }

    #[test]
    fn the_rule_of_a_namespace_replaces_the_rule_for_all_namespaces() {
        let policy = read(
            r#"{"Namespaces": {"*": {"types": ["macvlan"], "denyKeys": null},
                               "telco": {"Networks": ["telco/a"]}, "free": null,
                               "fixed": {"dynamicAttachment": false}}}"#,
        )
        .unwrap();
        assert_eq!(policy.rule("telco").unwrap().networks, ["telco/a"]);
        assert_eq!(policy.rule("free").unwrap(), &Rule::default());
        assert_eq!(policy.rule("other").unwrap().types, ["macvlan"]);
        assert!(policy.rule("telco").unwrap().types.is_empty());
        assert!(policy.rule("fixed").unwrap().denies_changes);
        assert!(!policy.rule("telco").unwrap().denies_changes);
        assert!(Policy::default().rule("telco").is_none());
    }

    /// A search through all other namespaces for each namespace would take quadratic time.
    #[test]
    fn reading_the_namespaces_takes_linear_time() {
        let rules: Vec<String> = (0..50_000).map(|it| format!("\"n{it}\":{{}}")).collect();
        let text = format!("{{\"namespaces\":{{{}}}}}", rules.join(","));
        let policy = linear(|| read(&text).unwrap());
        assert_eq!(policy.namespaces.len(), 50_000);
    }

    #[test]
    fn a_value_that_can_match_nothing_is_refused() {
        let namespace = "it is not a valid namespace; write the name of a namespace";
        let plugin = r#"it is not a plugin; write the type of a plugin, such as "macvlan""#;
        let definition = r#"it is not a definition; write it as "namespace/name""#;
        let path = r#"it is not a key; write the path of a key, such as "ipam.dataDir""#;
        let of = |namespace: &str, key: &str| format!("namespaces.{namespace}.{key}");
        for (rule, key, value, cause) in [
            (
                of("Bad_NS", "types"),
                "namespaces.Bad_NS",
                "macvlan",
                namespace,
            ),
            (of("*", "types"), "", "a/b", plugin),
            (of("*", "networks"), "", "a/b/c", definition),
            (of("*", "networks"), "", "bare", definition),
            (of("a", "denyKeys"), "", "", path),
            (of("a", "denyKeys"), "", "a..b", path),
            ("node.types".to_owned(), "", "a/b", plugin),
            ("node.denyKeys".to_owned(), "", "a..b", path),
        ] {
            let value_of_rule = format!(r#"["{value}"]"#);
            let policy = rule.rsplit('.').fold(value_of_rule, |inner, key| {
                format!(r#"{{"{key}":{inner}}}"#)
            });
            let error = read(&policy).unwrap_err();
            let (key, value) = match key {
                "" => (rule.as_str(), value),
                key => (key, "Bad_NS"),
            };
            assert_eq!(
                error.to_string(),
                format!("key policy.{key} of the node configuration is {value}: {cause}")
            );
            assert_eq!(error.code(), 7);
        }
    }

    #[test]
    fn a_rule_or_a_policy_of_the_wrong_type_is_refused() {
        for policy in [
            r#"{"node":[]}"#,
            r#"{"node":7}"#,
            r#"{"node":{"types":"macvlan"}}"#,
            r#"{"namespaces":[]}"#,
        ] {
            let error = read(policy).unwrap_err();
            assert!(
                matches!(&error, NodeConfigError::Value { cause, .. }
                    if matches!(**cause, ValueError::Type(_))),
                "{error}"
            );
        }
    }
}
