//! The specifications' clauses, as `docs/conformance/` lists them.

use serde::Deserialize;

use crate::clause::Clause;
use crate::document::Document;

/// Where the clauses are listed, in the order in which they are told.
const TABLES: [&str; 4] = [
    "docs/conformance/npwg-1.3.yaml",
    "docs/conformance/npwg-1.0.yaml",
    "docs/conformance/cni-1.1.0.yaml",
    "docs/conformance/device-info-1.1.0.yaml",
];

/// One specification.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Specification {
    /// What tags call it.
    pub(crate) id: String,
    /// What people call it.
    pub(crate) title: String,
    /// Where it can be read.
    pub(crate) source: String,
    /// Its clauses, in its order.
    pub(crate) clauses: Vec<Clause>,
}

/// All of them.
pub(crate) fn all() -> Vec<Specification> {
    let read = |name| {
        serde_saphyr::from_str(&Document::of(name).text())
            .unwrap_or_else(|cause| panic!("{name}: {cause}"))
    };
    TABLES.into_iter().map(read).collect()
}

impl Specification {
    /// What the clause is called in the whole project: `NPWG-1.3 §4.1.2.1.3 valid`.
    pub(crate) fn name_of(&self, clause: &Clause) -> String {
        format!("{} §{}", self.id, clause.at)
    }
}
