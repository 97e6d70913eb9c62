//! `docs/CONFORMANCE.md`: every clause with the tests that show it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::clause::Clause;
use crate::document::{Document, cell};
use crate::specification::{self, Specification};
use crate::tag::{self, Tag};

/// What the document says before the first table.
const PREFACE: &str = "# Conformance

This page quotes every clause of the specifications that binds, or seems to bind, Jackfield. In a
quote, square brackets mark words that this page adds or leaves out. Beside each clause, the page
names the tests that prove that Jackfield meets the clause. The page is generated from
[the lists of clauses](conformance) and from the tags of the tests. A test fails if the page is out
of date, if a tag names no clause, or if a clause has neither a test nor an explanation. To generate
the page, run:

```sh
WRITE_DOCS=1 cargo test --profile fast --test documents
```

A test has a tag for each clause that it proves. A tag is a comment directly above the test:

```text
// clause: NPWG-1.3 §4.1.2.1.3 valid: one element at least, each an address
```

A tag contains the specification, the section, the clause's name within the section (`valid` in this
example), and free text after a colon. In the tables below, the column `Clause` has the section and the
clause's name. If a section has only one clause, that clause may have no name. A second line in this
column names the party that the clause binds.

| Word | Meaning |
|---|---|
| shown | the named tests prove that Jackfield meets the clause |
| **deviation** | Jackfield deviates from the clause on purpose |
| in part | the named tests prove only a part of the clause. The text explains the rest |
| **not yet** | no test proves the clause |
| *not ours* | the clause does not bind Jackfield. The text gives the reason |
| as NPWG-1.3 §… | stands in place of a quote. Version 1.3 of the specification has the same clause. A test of either clause counts for both |
| MUST, SHOULD | how binding the clause is. SHALL and REQUIRED count as MUST, RECOMMENDED as SHOULD |
| says | the clause describes a behaviour without MUST or SHOULD |

";

/// The tests of every clause, by its full name.
type Shown = BTreeMap<String, Vec<Tag>>;

/// How a clause stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Shown,
    Partly,
    Deviation,
    NotYet,
    NotOurs,
}

impl Standing {
    const ALL: [(Standing, &'static str); 5] = [
        (Standing::Shown, "shown"),
        (Standing::Partly, "in part"),
        (Standing::Deviation, "deviation"),
        (Standing::NotYet, "not yet"),
        (Standing::NotOurs, "not ours"),
    ];
}

/// Everything that the document is made from.
struct Conformance {
    specifications: Vec<Specification>,
    shown: Shown,
    problems: Vec<String>,
}

impl Conformance {
    fn collect() -> Conformance {
        let specifications = specification::all();
        let (tags, problems) = tag::all();
        let mut conformance = Conformance {
            specifications,
            shown: Shown::new(),
            problems,
        };
        for tag in tags {
            match conformance.clause_of(&tag) {
                Ok(name) => conformance.shown.entry(name).or_default().push(tag),
                Err(problem) => {
                    let place = format!("{}:{}", tag.file, tag.line);
                    conformance.problems.push(format!("{place}: {problem}"));
                }
            }
        }
        conformance.check_table();
        conformance
    }

    /// The clause that a tag means: its slug, or the only one of its section.
    fn clause_of(&self, tag: &Tag) -> Result<String, String> {
        let specification = self
            .specifications
            .iter()
            .find(|known| known.id == tag.specification)
            .ok_or_else(|| format!("no specification {}", tag.specification))?;
        let section: Vec<&Clause> = specification
            .clauses
            .iter()
            .filter(|clause| clause.section() == tag.section)
            .collect();
        let slug = tag.words.split(':').next().unwrap_or_default().trim();
        let clause = match section.as_slice() {
            [] => {
                return Err(format!(
                    "no clause of {} is in §{}",
                    specification.id, tag.section
                ));
            }
            [only] if only.slug().is_empty() => *only,
            several => several
                .iter()
                .find(|clause| clause.slug() == slug)
                .copied()
                .ok_or_else(|| {
                    let slugs: Vec<&str> = several.iter().map(|clause| clause.slug()).collect();
                    format!(
                        "{slug:?} is no clause of {} §{}; begin the words with one of: {}",
                        specification.id,
                        tag.section,
                        slugs.join(", ")
                    )
                })?,
        };
        Ok(specification.name_of(clause))
    }

    fn clauses(&self) -> impl Iterator<Item = (String, &Clause)> {
        let named =
            |specification: &'_ Specification, clause: &Clause| specification.name_of(clause);
        self.specifications.iter().flat_map(move |specification| {
            let clauses = specification.clauses.iter();
            clauses.map(move |clause| (named(specification, clause), clause))
        })
    }

    fn find(&self, name: &str) -> Option<&Clause> {
        self.clauses()
            .find(|(known, _)| known == name)
            .map(|(_, clause)| clause)
    }

    fn check_table(&mut self) {
        let mut problems = Vec::new();
        let mut names = BTreeSet::new();
        for (name, clause) in self.clauses() {
            let same = clause.same.as_deref().map(|same| (same, self.find(same)));
            match same {
                Some((same, None)) => problems.push(format!("{name}: there is no {same}")),
                Some((_, Some(other))) if other.same.is_some() => {
                    problems.push(format!("{name}: name the clause itself that is the same"));
                }
                _ => {}
            }
            if clause.quoted().is_none() && same.is_none() {
                problems.push(format!("{name} is not quoted"));
            }
            if !names.insert(name.clone()) {
                problems.push(format!("{name} is there twice"));
            }
            if self.standing(&name, clause).is_none() {
                problems.push(format!("{name}: no test shows it, and nothing says why"));
            }
        }
        self.problems.extend(problems);
    }

    /// The clause itself, and the one that says the same.
    fn both<'a>(&'a self, name: &'a str, clause: &'a Clause) -> Vec<(&'a str, &'a Clause)> {
        let mut both = vec![(name, clause)];
        if let Some(same) = &clause.same
            && let Some(other) = self.find(same)
        {
            both.push((same, other));
        }
        both
    }

    /// How a clause stands, and why; `None` when that is neither shown nor said.
    fn standing(&self, name: &str, clause: &Clause) -> Option<(Standing, String)> {
        let both = self.both(name, clause);
        let reason = |pick: fn(&Clause) -> &Option<String>| {
            both.iter().find_map(|(_, clause)| pick(clause).clone())
        };
        let is_shown = both.iter().any(|(name, _)| self.shown.contains_key(*name));
        if let Some(why) = reason(|clause| &clause.deviation) {
            return Some((Standing::Deviation, why));
        }
        if let Some(why) = reason(|clause| &clause.not_ours) {
            return Some((Standing::NotOurs, why));
        }
        if is_shown {
            return Some(match reason(|clause| &clause.partly) {
                Some(why) => (Standing::Partly, why),
                None => (Standing::Shown, String::new()),
            });
        }
        reason(|clause| &clause.not_yet).map(|why| (Standing::NotYet, why))
    }

    fn tests(&self, name: &str, clause: &Clause) -> String {
        let mut links = Vec::new();
        for (name, _) in self.both(name, clause) {
            for tag in self.shown.get(name).into_iter().flatten() {
                let link = format!("[{}](../{})", tag.test.replace('_', "\\_"), tag.file);
                if !links.contains(&link) {
                    links.push(link);
                }
            }
        }
        links.join(", ")
    }

    fn document(&self) -> String {
        let mut out = PREFACE.to_owned();
        self.write_counts(&mut out).unwrap();
        for (standing, title) in [
            (Standing::Deviation, "Deviations on purpose"),
            (Standing::NotYet, "Not yet"),
            (Standing::Partly, "In part"),
        ] {
            self.write_reasons(&mut out, standing, title).unwrap();
        }
        for specification in &self.specifications {
            self.write_table(&mut out, specification).unwrap();
        }
        out
    }

    fn write_counts(&self, out: &mut String) -> std::fmt::Result {
        let heads: Vec<&str> = Standing::ALL.iter().map(|(_, name)| *name).collect();
        writeln!(out, "| Specification | clauses | {} |", heads.join(" | "))?;
        writeln!(out, "|---|---|{}", "---|".repeat(heads.len()))?;
        for specification in &self.specifications {
            let clauses = &specification.clauses;
            write!(out, "| {} | {} |", specification.title, clauses.len())?;
            for (standing, _) in Standing::ALL {
                let of_it = clauses.iter().filter(|clause| {
                    let found = self.standing(&specification.name_of(clause), clause);
                    found.is_some_and(|(found, _)| found == standing)
                });
                write!(out, " {} |", of_it.count())?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    fn write_reasons(&self, out: &mut String, of: Standing, title: &str) -> std::fmt::Result {
        let mut rows = String::new();
        for (name, clause) in self.clauses().filter(|(_, clause)| clause.same.is_none()) {
            match self.standing(&name, clause) {
                Some((standing, why)) if standing == of => {
                    writeln!(rows, "| {} | {} |", cell(&name), cell(&why))?;
                }
                _ => {}
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        write!(
            out,
            "\n## {title}\n\n| Clause | Reason |\n|---|---|\n{rows}"
        )
    }

    fn write_table(&self, out: &mut String, specification: &Specification) -> std::fmt::Result {
        write!(
            out,
            "\n## {}\n\n<{}>\n\n| Clause | In its words | Shown by |\n|---|---|---|\n",
            specification.title, specification.source
        )?;
        for clause in &specification.clauses {
            let name = specification.name_of(clause);
            let standing = match self.standing(&name, clause) {
                Some((Standing::Deviation, why)) => format!("**deviation**: {}. ", cell(&why)),
                Some((Standing::NotOurs, why)) => format!("*not ours*: {}. ", cell(&why)),
                Some((Standing::NotYet, why)) => format!("**not yet**: {}. ", cell(&why)),
                Some((Standing::Partly, why)) => format!("in part: {}. ", cell(&why)),
                Some((Standing::Shown, _)) | None => String::new(),
            };
            let whom = match &clause.whom {
                Some(whom) => format!("<br>{whom}"),
                None => String::new(),
            };
            let words = match (clause.quoted(), &clause.same) {
                (Some((kind, words)), _) => format!("{kind}: “{}”", cell(words)),
                (None, Some(same)) => format!("as {}", cell(same)),
                (None, None) => String::new(),
            };
            let tests = self.tests(&name, clause);
            writeln!(
                out,
                "| §{}{whom} | {words} | {} |",
                cell(&clause.at),
                format!("{standing}{tests}").trim()
            )?;
        }
        Ok(())
    }
}

#[test]
fn every_clause_is_shown_or_explained_and_every_tag_names_one() {
    let problems = Conformance::collect().problems;
    assert!(
        problems.is_empty(),
        "{} problems:\n{}",
        problems.len(),
        problems.join("\n")
    );
}

#[test]
fn the_document_is_what_lists_and_tests_say() {
    Document::of("docs/CONFORMANCE.md").is(&Conformance::collect().document());
}
