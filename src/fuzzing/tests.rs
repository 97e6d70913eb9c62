//! Runs every fuzz target on its corpus, and checks that the list in `parsers.rs` contains every
//! parser in the source code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::TARGETS;
use super::parsers::{Door, PARSERS};

/// Returns the directory of this checkout, which contains the source code and the corpus.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn names(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).unwrap_or_else(|cause| panic!("{}: {cause}", dir.display()));
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn no_input_of_the_corpus_makes_a_fuzz_target_panic() {
    let corpus = root().join("tests/fuzz/corpus");
    let known: BTreeSet<String> = TARGETS.iter().map(|it| it.name.to_owned()).collect();
    assert_eq!(
        names(&corpus),
        known,
        "every target must have exactly one corpus"
    );
    for target in TARGETS {
        let dir = corpus.join(target.name);
        let inputs = names(&dir);
        assert!(!inputs.is_empty(), "{} has no inputs", target.name);
        for input in inputs {
            let path = dir.join(input);
            let bytes = fs::read(&path).unwrap();
            // Catches a panic, so that the failure names the input.
            let said = std::panic::catch_unwind(|| (target.run)(&bytes));
            assert!(said.is_ok(), "{}", path.display());
        }
    }
}

/// Calls that parse input.
const READS: [&str; 12] = [
    "serde_json::from_slice",
    "serde_json::from_str",
    "serde_json::from_value",
    "Deserializer::from_slice",
    "serde_norway::Deserializer::from_str",
    "RawObject::parse",
    "read_json(",
    "A::decode(",
    "::deserialize(",
    "NlasIterator::new(",
    "str::from_utf8(",
    "BASE64.decode(",
];

/// The names of parsers. A name may have a suffix after an underscore, such as `parse_list`. A
/// function with such a name is a parser if its signature contains one of the types in [`GIVEN`].
const NAMES: [&str; 6] = [
    "parse",
    "read",
    "from_str",
    "from_json",
    "from_slice",
    "decode",
];
const GIVEN: [&str; 6] = [
    "&str",
    "&[u8]",
    "&RawValue",
    "&RawObject",
    "&Value",
    "impl Read",
];

/// Returns the names of the parsers in the text of one source file: the functions that [`NAMES`]
/// describes, and the functions that make one of the calls in [`READS`].
fn parsers_of(text: &str) -> BTreeSet<String> {
    let text = text
        .split("#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or_default();
    let mut found = BTreeSet::new();
    let mut function = String::new();
    let mut signature = String::new();
    for line in text.lines() {
        let code = line.trim_start();
        if code.starts_with("//") {
            continue;
        }
        if let Some((before, after)) = code.split_once("fn ")
            && before.split_whitespace().all(|word| {
                word.starts_with("pub")
                    || word.starts_with("in")
                    || word.starts_with("crate::")
                    || ["const", "async", "unsafe"].contains(&word)
            })
        {
            let end = after.find(|c: char| !c.is_alphanumeric() && c != '_');
            after
                .get(..end.unwrap_or(after.len()))
                .unwrap_or_default()
                .clone_into(&mut function);
            signature.clear();
        }
        if !signature.ends_with('{') {
            signature.push_str(code);
            let is_named = NAMES.iter().any(|name| {
                function == *name
                    || function
                        .strip_prefix(name)
                        .is_some_and(|it| it.starts_with('_'))
            });
            if is_named && signature.ends_with('{') && GIVEN.iter().any(|it| signature.contains(it))
            {
                found.insert(function.clone());
            }
        }
        if READS.iter().any(|call| code.contains(call)) {
            found.insert(function.clone());
        }
    }
    found
}

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for name in names(dir) {
        let path = dir.join(&name);
        if path.is_dir() {
            if !["tests", "fixtures", "fuzzing", "simulation"].contains(&&*name) {
                sources(&path, out);
            }
        } else if name.ends_with(".rs") && !["tests.rs", "fuzzing.rs", "fake.rs"].contains(&&*name)
        {
            out.push(path);
        }
    }
}

#[test]
fn a_parser_without_a_fuzz_target_has_a_documented_reason() {
    let mut files = Vec::new();
    for dir in ["src", "device-info/src"] {
        sources(&root().join(dir), &mut files);
    }
    let mut in_source = BTreeSet::new();
    for file in files {
        let name = file.strip_prefix(root()).unwrap().display().to_string();
        let parsers = parsers_of(&fs::read_to_string(&file).unwrap());
        in_source.extend(parsers.into_iter().map(|parser| format!("{name} {parser}")));
    }
    let mut listed = BTreeSet::new();
    let mut reached = BTreeSet::new();
    for (file, functions, door) in PARSERS {
        for function in functions.split(' ') {
            assert!(
                listed.insert(format!("{file} {function}")),
                "{file} {function} is listed twice"
            );
        }
        match door {
            Door::By(name) => drop(reached.insert(*name)),
            Door::No(reason) => assert!(!reason.is_empty()),
        }
    }
    let new: Vec<&String> = in_source.difference(&listed).collect();
    assert!(
        new.is_empty(),
        "parsers without a target or a reason in src/fuzzing/parsers.rs: {new:#?}"
    );
    let gone: Vec<&String> = listed.difference(&in_source).collect();
    assert!(gone.is_empty(), "no such parsers: {gone:#?}");
    let targets: BTreeSet<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(reached, targets, "every target must reach a parser");
}

#[test]
fn a_parser_is_recognized_by_its_calls_or_its_signature() {
    let text = "
/// Uses serde_json::from_str nowhere.
pub(crate) fn parse(text: &str) -> u8 {
fn read_all(
    bytes: &[u8],
) -> u8 {
pub fn other(path: &Path) -> u8 {
    serde_json::from_slice(&fs::read(path)?)
}
fn reader(text: &str) {
fn read(path: &Path) {
#[cfg(test)]
mod tests {
    fn parse_more(text: &str) {
";
    let found: Vec<String> = parsers_of(text).into_iter().collect();
    assert_eq!(found, ["other", "parse", "read_all"]);
}
