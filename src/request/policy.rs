//! What the pods of a namespace may select (key `policy`; NPWG 1.3 §7.4).

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::cni::{JsonError, PluginType, RawObject};
use crate::npwg::ObjectRef;

/// Which namespaces may select what by annotation, and what the networks of the node configuration
/// may be, whose definitions come from the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    namespaces: BTreeMap<String, Rule>,
    node: Rule,
}

/// What one namespace may select; an empty list allows everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// Plugin types (the IPAM plugin's included) that may run.
    pub types: Vec<String>,
    /// Definitions as `namespace/name` that may be named.
    pub networks: Vec<String>,
    /// Keys (`ipam.dataDir`, `sysctl`) that no plugin's configuration may hold.
    pub deny_keys: Vec<String>,
}

/// The keys of a rule.
pub(super) const KEYS: [&str; 3] = ["types", "networks", "denyKeys"];
/// The keys of the rule for the node configuration's own networks, which names them itself.
pub(super) const NODE_KEYS: [&str; 2] = ["types", "denyKeys"];

impl TryFrom<&RawObject> for Policy {
    type Error = PolicyError;

    fn try_from(wire: &RawObject) -> Result<Self, Self::Error> {
        let namespaces: RawObject = wire
            .read("namespaces")
            .map_err(|cause| PolicyError(cause.to_string()))?
            .unwrap_or_default();
        let rule = |(namespace, raw): (&str, &RawValue)| {
            let wrong = |cause| PolicyError(format!("namespace {namespace}: {cause}"));
            // Any name will do for the object: what is asked is whether the namespace can be one.
            if namespace != "*" && ObjectRef::new(namespace, "any").is_err() {
                return Err(wrong(
                    "it cannot be one; name it as the cluster does, or *".into(),
                ));
            }
            let rule = Rule::read(raw.get()).map_err(|cause| wrong(cause.to_string()))?;
            rule.check().map_err(wrong)?;
            Ok((namespace.to_owned(), rule))
        };
        let node = match wire.get("node") {
            Some(raw) => {
                let wrong = |cause: String| PolicyError(format!("node: {cause}"));
                let rule = Rule::read(raw.get()).map_err(|cause| wrong(cause.to_string()))?;
                rule.check().map_err(wrong)?;
                rule
            }
            None => Rule::default(),
        };
        Ok(Policy {
            node,
            namespaces: namespaces.iter().map(rule).collect::<Result<_, _>>()?,
        })
    }
}

impl Rule {
    fn read(text: &str) -> Result<Rule, JsonError> {
        if text == "null" {
            return Ok(Rule::default());
        }
        let wire = RawObject::parse(text.as_bytes())?;
        let list = |key| Ok::<_, JsonError>(wire.read(key)?.unwrap_or_default());
        Ok(Rule {
            types: list("types")?,
            networks: list("networks")?,
            deny_keys: list("denyKeys")?,
        })
    }

    /// A value that can match nothing would allow what it was to deny.
    fn check(&self) -> Result<(), String> {
        let is_no_type = |name: &&String| name.parse::<PluginType>().is_err();
        if let Some(name) = self.types.iter().find(is_no_type) {
            return Err(format!(
                "types: {name:?} is no plugin; write it as \"macvlan\""
            ));
        }
        let is_none = |name: &&String| !name.contains('/') || name.parse::<ObjectRef>().is_err();
        if let Some(name) = self.networks.iter().find(is_none) {
            return Err(format!(
                "networks: {name:?} is no definition; write it as \"namespace/name\""
            ));
        }
        let is_no_path = |path: &&String| path.split('.').any(str::is_empty);
        if let Some(path) = self.deny_keys.iter().find(is_no_path) {
            return Err(format!(
                "denyKeys: {path:?} is no key; write it as \"ipam.dataDir\""
            ));
        }
        Ok(())
    }
}

/// A policy that cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}; correct it")]
pub struct PolicyError(String);

impl Policy {
    /// The rule for the cluster network, `defaultNetworks`, `delegates` and the auxiliary chain.
    pub fn node(&self) -> &Rule {
        &self.node
    }

    /// The rule for pods of `namespace`: its own, which replaces that of `*`, else that of `*`.
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

    #[test]
    fn what_can_match_nothing_is_refused() {
        for (namespace, key, value) in [
            ("Bad_NS", "types", "macvlan"),
            ("*", "types", "a/b"),
            ("*", "networks", "a/b/c"),
            ("*", "networks", "bare"),
            ("a", "denyKeys", ""),
            ("a", "denyKeys", "a..b"),
        ] {
            let text = format!(r#"{{"namespaces":{{"{namespace}":{{"{key}":["{value}"]}}}}}}"#);
            let wire = RawObject::parse(text.as_bytes()).unwrap();
            let error = Policy::try_from(&wire).unwrap_err().to_string();
            let named = if namespace == "Bad_NS" {
                namespace
            } else {
                value
            };
            assert!(error.contains(named), "{error}");
        }
        for node in [
            r#"{"types":["a/b"]}"#,
            r#"{"denyKeys":["a..b"]}"#,
            "[]",
            "7",
        ] {
            let wire = RawObject::parse(format!(r#"{{"node":{node}}}"#).as_bytes()).unwrap();
            let error = Policy::try_from(&wire).unwrap_err().to_string();
            assert!(error.starts_with("node: "), "{error}");
        }
    }
}
