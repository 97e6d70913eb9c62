//! The tests' own words about what they show.

use std::fs;
use std::path::Path;

use crate::document::root;

/// Where tests are.
const FOLDERS: [&str; 4] = ["src", "tests", "device-info", "hw-tests"];
const MARK: &str = "// clause:";

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
        // What makes this document speaks of tags, and has none.
        let skipped = ["target", "documents"];
        if path.is_dir() && !skipped.iter().any(|name| entry.file_name() == *name) {
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
            let test = test(file, &lines, index);
            tag(file, index + 1, words.trim(), test)
                .map_err(|problem| format!("{file}:{}: {problem}", index + 1))
        })
        .collect()
}

fn tag(file: &str, line: usize, words: &str, test: Option<String>) -> Result<Tag, String> {
    let (specification, rest) = words
        .split_once(" §")
        .ok_or("write it as: // clause: NPWG-1.3 §4.2 entry: some words")?;
    let (section, words) = rest.split_once([' ', ':']).unwrap_or((rest, ""));
    let words = words.trim_start_matches(':').trim();
    Ok(Tag {
        specification: specification.to_owned(),
        section: section.trim_end_matches(['.', ':']).to_owned(),
        words: words.to_owned(),
        test: test.ok_or("no test is directly below this tag")?,
        file: file.to_owned(),
        line,
    })
}

/// The test below the line `index`. In `hw-tests` a test is a function, elsewhere it says
/// `#[test]`, above the tag or below it.
fn test(file: &str, lines: &[&str], index: usize) -> Option<String> {
    let says_so = |line: &&str| line.starts_with("#[") && line.ends_with("test]");
    let belongs = |line: &&&str| line.starts_with("#[") || line.starts_with("//");
    let above = lines.iter().take(index).rev().take_while(belongs);
    let below = lines.iter().skip(index + 1);
    let between = below.clone().take_while(belongs);
    let is_test = file.starts_with("hw-tests/") || above.chain(between.clone()).any(says_so);
    let line = below.clone().nth(between.count())?;
    let name = line.split_once("fn ")?.1.split(['(', '<']).next()?;
    is_test.then(|| name.trim().to_owned())
}
