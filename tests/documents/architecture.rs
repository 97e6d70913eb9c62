//! The documents for contributors: every file that they name exists.

use std::collections::BTreeSet;

use crate::document::{Document, root};

const NAME: &str = "docs/ARCHITECTURE.md";
const DOCUMENTS: [&str; 3] = [NAME, "CONTRIBUTING.md", "docs/SPECIFICATION.md"];
/// The table at the end maps at least so many behaviours to files.
const ROWS: usize = 40;

/// The texts in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn is_path(text: &str) -> bool {
    ["src/", "tests/", "device-info/src/"]
        .iter()
        .any(|top| text.starts_with(top))
}

#[test]
fn every_file_that_the_documents_name_exists() {
    for name in DOCUMENTS {
        let text = Document::of(name).text();
        let without_fences = text.split("```").step_by(2).collect::<String>();
        let missing: BTreeSet<&str> = quoted(&without_fences)
            .filter(|text| is_path(text) && !root().join(text).exists())
            .collect();
        assert!(
            missing.is_empty(),
            "{name} names missing files: {missing:?}"
        );
    }
}

#[test]
fn the_index_maps_each_behaviour_to_files() {
    let rows = Document::of(NAME).rows();
    let index: Vec<_> = rows
        .iter()
        .filter(|row| row.len() == 2 && row[1].starts_with("`src/"))
        .collect();
    assert!(index.len() >= ROWS, "{} rows", index.len());
    let behaviours: BTreeSet<&String> = index.iter().map(|row| &row[0]).collect();
    assert_eq!(behaviours.len(), index.len(), "a behaviour is there twice");
    for row in index {
        assert!(quoted(&row[1]).all(is_path), "{row:?}");
    }
}
