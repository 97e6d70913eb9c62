//! One clause of a specification.

use serde::Deserialize;

/// One clause. Exactly one of `must`, `should` and `says` quotes it, unless `same` names another
/// clause that has its words.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Clause {
    /// Its section, and a slug where the section has several.
    pub(crate) at: String,
    /// Whom it binds.
    #[serde(rename = "for")]
    pub(crate) whom: Option<String>,
    /// Its words, if it says MUST, MUST NOT, SHALL or REQUIRED.
    pub(crate) must: Option<String>,
    /// Its words, if it says SHOULD, SHOULD NOT or RECOMMENDED.
    pub(crate) should: Option<String>,
    /// Its words, if none of these is in them.
    pub(crate) says: Option<String>,
    /// Another clause that says the same: what shows that one shows this one.
    pub(crate) same: Option<String>,
    /// Why Jackfield does otherwise on purpose.
    pub(crate) deviation: Option<String>,
    /// Why it does not bind Jackfield.
    pub(crate) not_ours: Option<String>,
    /// What is missing, as long as no test shows it.
    pub(crate) not_yet: Option<String>,
    /// What is missing, although tests show the rest.
    pub(crate) partly: Option<String>,
}

impl Clause {
    /// The section without the slug.
    pub(crate) fn section(&self) -> &str {
        self.at
            .split_once(' ')
            .map_or(&*self.at, |(section, _)| section)
    }

    /// What tells it from the other clauses of its section; empty where there is none.
    pub(crate) fn slug(&self) -> &str {
        self.at.split_once(' ').map_or("", |(_, slug)| slug)
    }

    /// How binding it is, and its words.
    pub(crate) fn quoted(&self) -> Option<(&'static str, &str)> {
        let mut all = [
            ("MUST", &self.must),
            ("SHOULD", &self.should),
            ("says", &self.says),
        ]
        .into_iter()
        .filter_map(|(kind, words)| Some((kind, words.as_deref()?)));
        let first = all.next();
        assert!(all.next().is_none(), "{} is quoted twice", self.at);
        first
    }
}
