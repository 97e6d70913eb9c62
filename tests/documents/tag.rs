//! The tests' own words about what they show.

use std::fs;
use std::path::Path;

use crate::document::root;

/// Where tests are.
const FOLDERS: [&str; 4] = ["src", "tests", "device-info", "hw-tests"];
const MARK: &str = "// clause:";
/// How many lines may be between a tag and its test: other tags, attributes.
const REACH: usize = 40;

/// `// clause: NPWG-1.3 §4.1.2.1.3 valid: one element at least` above a test.
#[derive(Debug)]
pub(crate) struct Tag {
    /// `NPWG-1.3`.
    pub(crate) specification: String,
    /// `4.1.2.1.3`.
    pub(crate) section: String,
    /// Everything behind it.
    pub(crate) words: String,
    /// The test below it.
    pub(crate) test: String,
    /// The file, from the repository's root.
    pub(crate) file: String,
    /// Where in the file.
    pub(crate) line: usize,
}

/// Every tag in the tree, and what is wrong with those that are none.
pub(crate) fn all() -> (Vec<Tag>, Vec<String>) {
    let mut files = Vec::new();
    for folder in FOLDERS {
        collect(&root().join(folder), &mut files);
    }
    files.sort();
    let (mut tags, mut wrong) = (Vec::new(), Vec::new());
    for file in files {
        for tag in read(&file) {
            match tag {
                Ok(tag) => tags.push(tag),
                Err(problem) => wrong.push(problem),
            }
        }
    }
    (tags, wrong)
}

fn collect(folder: &Path, files: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "target" {
            collect(&path, files);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let name = path.strip_prefix(root()).unwrap();
            files.push(name.to_str().unwrap().to_owned());
        }
    }
}

fn read(file: &str) -> Vec<Result<Tag, String>> {
    let text = fs::read_to_string(root().join(file)).unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let tagged = lines.iter().enumerate();
    tagged
        .filter_map(|(index, line)| Some((index, line.strip_prefix(MARK)?)))
        .map(|(index, words)| {
            let below = lines.get(index + 1..).unwrap_or_default();
            tag(file, index + 1, words.trim(), below)
                .map_err(|problem| format!("{file}:{}: {problem}", index + 1))
        })
        .collect()
}

fn tag(file: &str, line: usize, words: &str, below: &[&str]) -> Result<Tag, String> {
    let (specification, rest) = words
        .split_once(" §")
        .ok_or("write it as: // clause: NPWG-1.3 §4.2 entry: some words")?;
    let (section, words) = rest.split_once([' ', ':']).unwrap_or((rest, ""));
    let words = words.trim_start_matches(':').trim();
    Ok(Tag {
        specification: specification.to_owned(),
        section: section.trim_end_matches(['.', ':']).to_owned(),
        words: words.to_owned(),
        test: test(file, below).ok_or("no test is directly below this tag")?,
        file: file.to_owned(),
        line,
    })
}

/// The test that follows. In `hw-tests` a test is a function, elsewhere it says `#[test]`.
fn test(file: &str, below: &[&str]) -> Option<String> {
    let mut is_test = file.starts_with("hw-tests/");
    for line in below.iter().take(REACH) {
        if line.starts_with("#[test]") || line.ends_with("test]") {
            is_test = true;
        }
        let start = [
            "fn ",
            "pub fn ",
            "pub(crate) fn ",
            "pub(super) fn ",
            "async fn ",
        ]
        .iter()
        .find_map(|start| line.strip_prefix(start));
        if let Some(name) = start {
            let name = name.split(['(', '<']).next()?.trim();
            return is_test.then(|| name.to_owned());
        }
    }
    None
}
