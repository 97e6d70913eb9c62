//! What is wrong with a policy.

use std::fmt;

use crate::cni::JsonError;

/// What is wrong with a policy.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PolicyError {
    /// `namespaces` is not an object.
    #[error("{0}; correct it")]
    Namespaces(#[from] JsonError),
    /// A rule is invalid.
    #[error("{rule}: {source}")]
    Rule {
        /// The rule.
        rule: RuleName,
        /// What is wrong.
        source: RuleError,
    },
}

/// A rule of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleName {
    /// The rule of a namespace.
    Namespace(String),
    /// The rule for the networks of the node configuration.
    Node,
}

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleName::Namespace(name) => write!(f, "namespace {name}"),
            RuleName::Node => f.write_str("node"),
        }
    }
}

/// What is wrong with a rule.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RuleError {
    /// The rule is not an object of lists of strings.
    #[error("{0}; correct it")]
    Json(#[from] JsonError),
    /// The rule's key is not a namespace.
    #[error("it is not a valid namespace; write the name of a namespace, or *")]
    Namespace,
    /// An element of `types` is not a plugin type.
    #[error("types: {0:?} is not a plugin; write it as \"macvlan\"")]
    Type(String),
    /// An element of `networks` is not a definition.
    #[error("networks: {0:?} is not a definition; write it as \"namespace/name\"")]
    Network(String),
    /// An element of `denyKeys` is not the path of a key.
    #[error("denyKeys: {0:?} is not a key; write it as \"ipam.dataDir\"")]
    DenyKey(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_names_rule_value_and_remedy() {
        let of = |rule, source| PolicyError::Rule { rule, source }.to_string();
        let namespace = || RuleName::Namespace("telco".to_owned());
        let table = [
            (
                of(namespace(), RuleError::Namespace),
                "namespace telco: it is not a valid namespace; write the name of a namespace, or *",
            ),
            (
                of(RuleName::Node, RuleError::Type("a/b".to_owned())),
                r#"node: types: "a/b" is not a plugin; write it as "macvlan""#,
            ),
            (
                of(namespace(), RuleError::Network("a".to_owned())),
                r#"namespace telco: networks: "a" is not a definition; write it as "namespace/name""#,
            ),
            (
                of(namespace(), RuleError::DenyKey("a..b".to_owned())),
                r#"namespace telco: denyKeys: "a..b" is not a key; write it as "ipam.dataDir""#,
            ),
        ];
        for (text, expected) in table {
            assert_eq!(text, expected);
        }
    }
}
