//! The flags in the tables of `docs/install.md` against the command line.
#![allow(
    clippy::disallowed_methods,
    reason = "a command that prints its help ends by itself"
)]

use std::collections::BTreeSet;
use std::process::Command;

use crate::document::Document;

const NAME: &str = "docs/install.md";
/// The commands whose flags the document lists.
const COMMANDS: [&str; 3] = ["install", "uninstall", "agent"];
const EVERY_COMMANDS: &str = "--help";

/// The flags that begin a word of `text`.
fn flags(text: &str) -> BTreeSet<String> {
    let is_in_name = |letter: char| letter == '-' || letter.is_ascii_alphanumeric();
    text.split(|letter: char| !is_in_name(letter))
        .filter(|word| word.starts_with("--") && word.len() > 2)
        .map(str::to_owned)
        .collect()
}

fn in_help(command: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_jackfield"))
        .args([command, "--help"])
        .output()
        .unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    // A flag's own line begins with it; its description may name others.
    let lines = help.lines().map(str::trim_start);
    let lines = lines.filter(|line| line.starts_with('-'));
    let words = lines.flat_map(|line| line.split_whitespace().take(2));
    let own = words.flat_map(flags);
    let own: BTreeSet<String> = own.filter(|flag| flag != EVERY_COMMANDS).collect();
    assert!(!own.is_empty(), "{help}");
    own
}

#[test]
fn every_flag_of_the_installation_is_documented_and_no_other() {
    let rows = Document::of(NAME).rows().into_iter();
    let documented: BTreeSet<String> = rows
        .filter(|row| row.len() == 3)
        .flat_map(|row| flags(&row[0]))
        .collect();
    let known: BTreeSet<String> = COMMANDS.into_iter().flat_map(in_help).collect();
    assert_eq!(documented, known);
}
