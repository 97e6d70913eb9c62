//! Links between documents lead to a file, and to a heading in it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::document::root;

/// Folders with documents. Only files directly in them count.
const FOLDERS: [&str; 5] = ["", "docs", "deploy", "hw-tests", "device-info"];
/// Quotes specifications, with links that lead to places in these.
const QUOTES: &str = "CONFORMANCE.md";

fn documents() -> Vec<PathBuf> {
    let entries = FOLDERS
        .iter()
        .flat_map(|folder| std::fs::read_dir(root().join(folder)).unwrap().flatten());
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "md") && !path.ends_with(QUOTES))
        .collect();
    found.sort();
    found
}

/// The lines outside of fenced blocks.
fn prose(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut is_code = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    lines.map(str::to_owned).collect()
}

/// The headings as GitHub's anchors.
fn anchors(path: &Path) -> BTreeSet<String> {
    let headings = prose(path).into_iter();
    let headings = headings.filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
            kept.collect::<String>().replace(' ', "-")
        })
        .collect()
}

fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target)
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut broken = Vec::new();
    let documents = documents();
    for document in &documents {
        for line in prose(document) {
            for target in targets(&line).filter(|target| !target.contains("://")) {
                let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
                let path = match file {
                    "" => document.clone(),
                    file => document.with_file_name(file),
                };
                let leads = path.exists() && (anchor.is_empty() || anchors(&path).contains(anchor));
                if !leads {
                    broken.push(format!("{}: {target}", document.display()));
                }
            }
        }
    }
    assert!(documents.len() > 12, "{documents:?}");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
