//! The networks that the pods of a namespace may select: the key `policy`, NPWG 1.3 §7.4.

mod error;

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::cni::{JsonError, PluginType, RawObject};
use crate::npwg::ObjectRef;

pub use error::{PolicyError, RuleError, RuleName};

/// The rules for selections by annotation, and for the networks of the node configuration, whose
/// definitions may come from the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    namespaces: BTreeMap<String, Rule>,
    node: Rule,
}

/// A rule; an empty list allows everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// The plugin types that may run, including IPAM plugins.
    pub types: Vec<String>,
    /// The definitions that pods may select, as `namespace/name`.
    pub networks: Vec<String>,
    /// Keys that no plugin's configuration may contain, such as `ipam.dataDir` or `sysctl`.
    pub deny_keys: Vec<String>,
}

/// The keys of a rule for a namespace.
pub(super) const KEYS: [&str; 3] = ["types", "networks", "denyKeys"];
/// The keys of the rule for the node configuration, which names its networks itself.
pub(super) const NODE_KEYS: [&str; 2] = ["types", "denyKeys"];

impl TryFrom<&RawObject> for Policy {
    type Error = PolicyError;

    fn try_from(wire: &RawObject) -> Result<Self, Self::Error> {
        let namespaces: RawObject = wire.read("namespaces")?.unwrap_or_default();
        let rule = |(namespace, raw): (&str, &RawValue)| {
            let rule = check_namespace(namespace).and_then(|()| Rule::read(raw.get()));
            let rule = rule.map_err(|source| PolicyError::Rule {
                rule: RuleName::Namespace(namespace.to_owned()),
                source,
            })?;
            Ok((namespace.to_owned(), rule))
        };
        let node = match wire.get("node") {
            Some(raw) => Rule::read(raw.get()).map_err(|source| PolicyError::Rule {
                rule: RuleName::Node,
                source,
            })?,
            None => Rule::default(),
        };
        Ok(Policy {
            node,
            namespaces: namespaces
                .iter()
                .map(rule)
                .collect::<Result<_, PolicyError>>()?,
        })
    }
}

fn check_namespace(namespace: &str) -> Result<(), RuleError> {
    // The name of the object does not matter.
    if namespace != "*" && ObjectRef::new(namespace, "any").is_err() {
        return Err(RuleError::Namespace);
    }
    Ok(())
}

impl Rule {
    fn read(text: &str) -> Result<Rule, RuleError> {
        if text == "null" {
            return Ok(Rule::default());
        }
        let wire = RawObject::parse(text.as_bytes())?;
        let list = |key| Ok::<_, JsonError>(wire.read(key)?.unwrap_or_default());
        let rule = Rule {
            types: list("types")?,
            networks: list("networks")?,
            deny_keys: list("denyKeys")?,
        };
        rule.check()?;
        Ok(rule)
    }

    /// Refuses values that match nothing, since they would allow what they are meant to deny.
    fn check(&self) -> Result<(), RuleError> {
        let invalid = |name: &&String| name.parse::<PluginType>().is_err();
        if let Some(name) = self.types.iter().find(invalid) {
            return Err(RuleError::Type(name.clone()));
        }
        let invalid = |name: &&String| !name.contains('/') || name.parse::<ObjectRef>().is_err();
        if let Some(name) = self.networks.iter().find(invalid) {
            return Err(RuleError::Network(name.clone()));
        }
        let invalid = |path: &&String| path.split('.').any(str::is_empty);
        if let Some(path) = self.deny_keys.iter().find(invalid) {
            return Err(RuleError::DenyKey(path.clone()));
        }
        Ok(())
    }
}

impl Policy {
    /// The rule for the cluster network, `defaultNetworks`, `delegates` and the auxiliary chain.
    pub fn node(&self) -> &Rule {
        &self.node
    }

    /// The rule for pods of `namespace`: its own rule, or else that of `*`.
    pub fn rule(&self, namespace: &str) -> Option<&Rule> {
        self.namespaces
            .get(namespace)
            .or_else(|| self.namespaces.get("*"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespaces_own_rule_replaces_the_one_for_all() {
        let wire = RawObject::parse(
            br#"{"Namespaces": {"*": {"types": ["macvlan"], "denyKeys": null},
                               "telco": {"Networks": ["telco/a"]}, "free": null}}"#,
        )
        .unwrap();
        let policy = Policy::try_from(&wire).unwrap();
        assert_eq!(policy.rule("telco").unwrap().networks, ["telco/a"]);
        assert_eq!(policy.rule("free").unwrap(), &Rule::default());
        assert_eq!(policy.rule("other").unwrap().types, ["macvlan"]);
        assert!(policy.rule("telco").unwrap().types.is_empty());
        assert!(Policy::default().rule("telco").is_none());
    }

    fn refusal(policy: &str) -> PolicyError {
        let wire = RawObject::parse(policy.as_bytes()).unwrap();
        Policy::try_from(&wire).unwrap_err()
    }

    #[test]
    fn a_value_that_matches_nothing_is_refused() {
        let table = [
            ("Bad_NS", "types", "macvlan", RuleError::Namespace),
            ("*", "types", "a/b", RuleError::Type("a/b".into())),
            ("*", "networks", "a/b/c", RuleError::Network("a/b/c".into())),
            ("*", "networks", "bare", RuleError::Network("bare".into())),
            ("a", "denyKeys", "", RuleError::DenyKey(String::new())),
            ("a", "denyKeys", "a..b", RuleError::DenyKey("a..b".into())),
        ];
        for (namespace, key, value, source) in table {
            let policy = format!(r#"{{"namespaces":{{"{namespace}":{{"{key}":["{value}"]}}}}}}"#);
            let rule = RuleName::Namespace(namespace.to_owned());
            assert_eq!(refusal(&policy), PolicyError::Rule { rule, source });
        }
        for (rule, source) in [
            (r#"{"types":["a/b"]}"#, RuleError::Type("a/b".into())),
            (
                r#"{"denyKeys":["a..b"]}"#,
                RuleError::DenyKey("a..b".into()),
            ),
        ] {
            let rule = format!(r#"{{"node":{rule}}}"#);
            let expected = PolicyError::Rule {
                rule: RuleName::Node,
                source,
            };
            assert_eq!(refusal(&rule), expected);
        }
    }

    #[test]
    fn a_rule_or_a_policy_of_another_type_is_refused() {
        for rule in ["[]", "7", r#"{"types":"macvlan"}"#] {
            let error = refusal(&format!(r#"{{"node":{rule}}}"#));
            assert!(
                matches!(
                    error,
                    PolicyError::Rule {
                        rule: RuleName::Node,
                        source: RuleError::Json(_)
                    }
                ),
                "{error}"
            );
        }
        assert!(matches!(
            refusal(r#"{"namespaces":[]}"#),
            PolicyError::Namespaces(_)
        ));
    }
}
