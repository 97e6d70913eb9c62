//! What the pods of a namespace may select (key `policy`; NPWG 1.3 §7.4).

use std::collections::BTreeMap;

use serde::Deserialize;

/// Which namespaces may select what by annotation. The cluster network and `defaultNetworks` are
/// the administrator's own and exempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    namespaces: BTreeMap<String, Rule>,
}

/// What one namespace may select; an empty list allows everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Rule {
    /// Plugin types (the IPAM plugin's included) that may run.
    #[serde(deserialize_with = "null_as_empty")]
    pub types: Vec<String>,
    /// Definitions as `namespace/name` that may be named.
    #[serde(deserialize_with = "null_as_empty")]
    pub networks: Vec<String>,
    /// Keys (`ipam.dataDir`, `sysctl`) that no plugin's configuration may hold.
    #[serde(deserialize_with = "null_as_empty")]
    pub deny_keys: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Wire {
    #[serde(deserialize_with = "rules")]
    namespaces: Option<BTreeMap<String, Rule>>,
}

/// A rule is an object; what derives its reading would take a list for one, too.
fn rules<'de, D: serde::Deserializer<'de>>(
    input: D,
) -> Result<Option<BTreeMap<String, Rule>>, D::Error> {
    use serde::de::Error;
    let raw: Option<BTreeMap<String, Option<crate::cni::RawObject>>> = Option::deserialize(input)?;
    raw.map(|raw| {
        let rule = |(namespace, rule): (String, Option<crate::cni::RawObject>)| {
            let text = rule.unwrap_or_default().to_string();
            let rule = serde_json::from_str(&text)
                .map_err(|cause| D::Error::custom(format!("namespace {namespace}: {cause}")))?;
            Ok((namespace, rule))
        };
        raw.into_iter().map(rule).collect()
    })
    .transpose()
}

impl From<Wire> for Policy {
    fn from(wire: Wire) -> Self {
        Policy {
            namespaces: wire.namespaces.unwrap_or_default(),
        }
    }
}

impl Policy {
    /// The rule for pods of `namespace`: its own, which replaces that of `*`, else that of `*`.
    pub fn rule(&self, namespace: &str) -> Option<&Rule> {
        self.namespaces
            .get(namespace)
            .or_else(|| self.namespaces.get("*"))
    }
}

fn null_as_empty<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::<Vec<String>>::deserialize(input)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespaces_own_rule_replaces_the_one_for_all() {
        let wire: Wire = serde_json::from_str(
            r#"{"namespaces": {"*": {"types": ["macvlan"], "denyKeys": null},
                               "telco": {"networks": ["telco/a"]}}}"#,
        )
        .unwrap();
        let policy = Policy::from(wire);
        assert_eq!(policy.rule("other").unwrap().types, ["macvlan"]);
        assert!(policy.rule("telco").unwrap().types.is_empty());
        assert!(Policy::default().rule("telco").is_none());
    }
}
