//! What the pods of a namespace may select (key `policy`; NPWG 1.3 §7.4).

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::cni::{JsonError, RawObject};

/// Which namespaces may select what by annotation. The cluster network and `defaultNetworks` are
/// the administrator's own and exempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    namespaces: BTreeMap<String, Rule>,
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

impl TryFrom<&RawObject> for Policy {
    type Error = PolicyError;

    fn try_from(wire: &RawObject) -> Result<Self, Self::Error> {
        let namespaces: RawObject = wire
            .read("namespaces")
            .map_err(|cause| PolicyError(cause.to_string()))?
            .unwrap_or_default();
        let rule = |(namespace, raw): (&str, &RawValue)| {
            let rule = Rule::read(raw.get())
                .map_err(|cause| PolicyError(format!("namespace {namespace}: {cause}")))?;
            Ok((namespace.to_owned(), rule))
        };
        Ok(Policy {
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
}

/// A policy that cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}; correct its type")]
pub struct PolicyError(String);

impl Policy {
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
}
