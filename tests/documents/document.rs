//! A document of the project.

use std::path::{Path, PathBuf};

/// The repository's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A document by its path in the repository.
pub(crate) struct Document {
    name: &'static str,
    path: PathBuf,
}

impl Document {
    /// The document `name`, which need not be there yet.
    pub(crate) fn of(name: &'static str) -> Document {
        let path = root().join(name);
        Document { name, path }
    }

    /// What it says.
    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(&self.path)
            .unwrap_or_else(|cause| panic!("{}: {cause}", self.path.display()))
    }

    /// It says `text`; with `WRITE_DOCS` in the environment it says so from now on.
    pub(crate) fn is(&self, text: &str) {
        if std::env::var_os("WRITE_DOCS").is_some() {
            return std::fs::write(&self.path, text).unwrap();
        }
        let found = std::fs::read_to_string(&self.path).unwrap_or_default();
        let same = found.lines().zip(text.lines()).take_while(|(a, b)| a == b);
        let line = same.count();
        assert!(
            found == text,
            "{} is out of date from line {} on; run WRITE_DOCS=1 cargo test --test documents\n\
             it says:  {}\nbut it is: {}",
            self.name,
            line + 1,
            found.lines().nth(line).unwrap_or_default(),
            text.lines().nth(line).unwrap_or_default(),
        );
    }

    /// The rows of every table in it, cell by cell, without the heads.
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let text = self.text();
        let lines: Vec<&str> = text.lines().collect();
        let is_rule = |line: &str| line.starts_with("|--") || line.starts_with("|:-");
        let rows = lines.iter().enumerate().filter(|(index, line)| {
            let head = lines.get(index + 1).is_some_and(|next| is_rule(next));
            line.starts_with('|') && !is_rule(line) && !head
        });
        rows.map(|(_, line)| cells(line)).collect()
    }
}

/// Every file of `src` by its path, with what is before its tests.
pub(crate) fn sources() -> Vec<(String, String)> {
    let (mut folders, mut found) = (vec![root().join("src")], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs")
            {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                found.push((path.display().to_string(), code.to_owned()));
            }
        }
    }
    found
}

fn cells(line: &str) -> Vec<String> {
    let line = line.trim().trim_start_matches('|').trim_end_matches('|');
    let line = line.replace("\\|", "\u{0}");
    line.split('|')
        .map(|cell| cell.trim().replace('\u{0}', "|"))
        .collect()
}

/// A text as a cell of a table shows it, to the letter.
pub(crate) fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '|' | '[' | ']' | '*' | '_' | '\\' => out.extend(['\\', letter]),
            _ => out.push(letter),
        }
    }
    out
}
