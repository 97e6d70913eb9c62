//! Each module imports only modules above it in `src/lib.rs`, so no two of them need each other.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The modules of the crate, in the order in which `lib.rs` declares them.
fn order(lib: &str) -> Vec<String> {
    let declared = lib.lines().filter_map(|line| {
        let name = line.strip_prefix("pub ").unwrap_or(line);
        name.strip_prefix("mod ")?.strip_suffix(';')
    });
    declared.map(str::to_owned).collect()
}

/// The modules that a file names as `crate::module` or in `crate::{...}`, outside comments and
/// tests.
fn imports(text: &str) -> BTreeSet<String> {
    let end = text.find("#[cfg(test)]\nmod tests").unwrap_or(text.len());
    let code: String = text[..end]
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| format!("{line}\n"))
        .collect();
    let mut found = BTreeSet::new();
    for (start, named) in code.match_indices("crate::") {
        let before = code[..start].chars().next_back();
        if before.is_some_and(|it| it.is_alphanumeric() || it == '_') {
            continue;
        }
        let rest = &code[start + named.len()..];
        let name = |text: &str| -> String {
            let is_name = |it: &char| it.is_ascii_lowercase() || *it == '_';
            text.trim_start().chars().take_while(is_name).collect()
        };
        match rest
            .strip_prefix('{')
            .and_then(|list| list.split_once("};"))
        {
            Some((list, _)) => found.extend(list.split(',').map(name)),
            None => drop(found.insert(name(rest))),
        }
    }
    found.retain(|name| !name.is_empty());
    found
}

/// Every import that goes down the order, as `file imports module`.
fn against_the_order(root: &Path) -> Vec<String> {
    let order = order(&fs::read_to_string(root.join("lib.rs")).unwrap());
    let rank = |module: &str| order.iter().position(|it| it == module);
    let mut wrong = Vec::new();
    for file in sources(root) {
        let path = file.strip_prefix(root).unwrap();
        let module = path.iter().next().unwrap().to_str().unwrap();
        let Some(own) = rank(module.trim_end_matches(".rs")) else {
            assert!(
                matches!(module, "lib.rs" | "main.rs"),
                "{module} is not in lib.rs"
            );
            continue;
        };
        for import in imports(&fs::read_to_string(&file).unwrap()) {
            if rank(&import).is_some_and(|its| its > own) {
                wrong.push(format!("{} imports {import}", path.display()));
            }
        }
    }
    wrong
}

/// The source files below a folder, without those of tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        match name {
            "tests" | "tests.rs" => {}
            _ if path.is_dir() => found.extend(sources(&path)),
            _ if name.ends_with(".rs") => found.push(path),
            _ => {}
        }
    }
    found.sort();
    found
}

#[test]
fn modules_import_only_those_above_them() {
    let wrong = against_the_order(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert_eq!(wrong, [""; 0], "see the order in src/lib.rs");
}

#[test]
fn an_import_against_the_order_is_found_however_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("lib.rs", "mod first;\npub mod second;\nmod third;\n");
    write(
        "first.rs",
        "use crate::{second::A, third};\n// crate::third::B\n",
    );
    write(
        "second.rs",
        "fn f() { crate::first::g(); crate::third::h(); }\n",
    );
    write(
        "third.rs",
        "use crate::first;\n#[cfg(test)]\nmod tests { use crate::third; }\n",
    );
    let expected = [
        "first.rs imports second",
        "first.rs imports third",
        "second.rs imports third",
    ];
    assert_eq!(against_the_order(dir.path()), expected);
}
