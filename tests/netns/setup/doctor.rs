//! `doctor`: every finding with what helps, whatever else is broken, and nothing is changed.

mod journal;
mod node;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::Setup;
use crate::lab::{Outcome, real_plugins};

/// A node on which Jackfield is installed, in front of a network and with a definition.
fn well() -> Setup {
    let setup = Setup::new();
    setup.installed();
    let ptp = setup.ptp();
    setup.lab.definition("demo/a", &ptp);
    setup.lab.selects("a");
    setup
}

impl Setup {
    /// A ptp plugin whose leases are the lab's.
    fn ptp(&self) -> Value {
        self.lab.ptp("10.20.0.0/24")
    }

    fn doctor(&self, more: &[&str]) -> Outcome {
        let before = self.everything();
        let plugins = real_plugins().display().to_string();
        let mut arguments = vec!["--cni-path", plugins.as_str(), "--node", "here"];
        arguments.extend(more);
        let outcome = self.command("doctor", &arguments).run();
        assert_eq!(self.everything(), before, "it changes nothing");
        outcome
    }

    /// The findings, as programs get them.
    #[track_caller]
    fn findings(&self) -> Vec<Value> {
        let outcome = self.doctor(&["-o", "json"]);
        let findings = outcome.json()["findings"].as_array().unwrap().clone();
        assert_eq!(outcome.exit, i32::from(!findings.is_empty()), "{outcome}");
        for finding in &findings {
            for key in ["about", "finding", "remedy"] {
                let text = finding[key].as_str().unwrap();
                assert!(!text.is_empty() && !text.contains('\n'), "{finding}");
            }
            assert_ne!(finding["remedy"], "look at it", "{finding}");
        }
        findings
    }

    /// One finding of `check` has all of `words`; it.
    #[track_caller]
    pub(super) fn finds(&self, check: &str, words: &[&str]) -> Value {
        let findings = self.findings();
        let found = findings.iter().find(|finding| {
            let line = format!(
                "{} {} {}",
                finding["about"], finding["finding"], finding["remedy"]
            );
            finding["check"] == check && words.iter().all(|word| line.contains(word))
        });
        found
            .unwrap_or_else(|| panic!("{check} {words:?} in {findings:#?}"))
            .clone()
    }

    /// The same, and nothing else is found.
    #[track_caller]
    fn finds_only(&self, check: &str, words: &[&str]) -> Value {
        let found = self.finds(check, words);
        assert_eq!(self.findings().len(), 1, "{:#?}", self.findings());
        found
    }

    #[track_caller]
    fn is_well(&self) {
        assert_eq!(self.findings(), Vec::<Value>::new());
    }

    /// Every file of the node with its bytes.
    fn everything(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.lab.path("")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if entry.file_type().unwrap().is_dir() {
                    folders.push(path);
                } else {
                    let bytes = fs::read(&path).unwrap_or_default();
                    found.insert(path, bytes);
                }
            }
        }
        found
    }

    /// Changes the installed configuration's own part.
    fn reconfigure(&self, key: &str, value: Value) {
        let path = self.lab.path("net.d").join(super::OURS);
        let mut conf: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        conf["plugins"][0][key] = value;
        fs::write(&path, conf.to_string()).unwrap();
    }
}

/// Makes a file look as if it was written a while ago.
fn age(path: &Path) {
    let then = SystemTime::now() - Duration::from_secs(3600);
    let file = File::options().append(true).open(path).unwrap();
    file.set_modified(then).unwrap();
}

#[test]
fn a_node_that_is_well_is_told_so_in_short() {
    let setup = well();
    setup.runs("add");
    let outcome = setup.doctor(&[]);
    assert_eq!(
        (outcome.exit, outcome.stderr.as_str()),
        (0, ""),
        "{outcome}"
    );
    for line in [
        "CHECK",
        "configuration",
        "installation",
        "1 pods, 1 definitions",
        "2 networks, with the plugins bridge, host-local, ptp",
        "1 sandboxes on record",
        "no detachment is owed",
    ] {
        assert!(outcome.stdout.contains(line), "{line}: {outcome}");
    }
    assert!(outcome.stdout.lines().count() <= 9, "{outcome}");
    setup.runs("del");
}

#[test]
fn what_is_printed_for_programs_keeps_its_keys() {
    let setup = well();
    setup.lab.definition("demo/b", &json!({ "type": "nope" }));
    let outcome = setup.doctor(&["-o", "json"]);
    let printed = outcome.json();
    let keys =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    assert_eq!(keys(&printed), ["version", "node", "fine", "findings"]);
    assert_eq!(printed["node"], "here");
    assert_eq!(keys(&printed["fine"][0]), ["check", "what"]);
    let finding = &printed["findings"][0];
    assert_eq!(keys(finding), ["check", "about", "finding", "remedy"]);
    assert_eq!(finding["check"], "programs");
    assert_eq!(finding["about"], "network demo/b");
    let outcome = setup.doctor(&[]);
    let header = outcome.stdout.lines().next().unwrap();
    let words: Vec<&str> = header.split_whitespace().collect();
    assert_eq!(words, ["CHECK", "ABOUT", "FINDING", "REMEDY"]);
}

#[test]
fn where_everything_is_broken_everything_is_said() {
    let setup = well();
    setup.runs("add");
    fs::rename(
        setup.lab.path("net.d").join(super::OURS),
        setup.lab.path("net.d/00-jackfield.conflist.cilium_bak"),
    )
    .unwrap();
    fs::remove_file(setup.lab.path("cni-bin/jackfield")).unwrap();
    fs::remove_dir_all(setup.lab.path("cluster")).unwrap();
    setup.lab.pod.delete();
    let checks: Vec<String> = setup
        .findings()
        .iter()
        .map(|finding| finding["check"].as_str().unwrap().to_owned())
        .collect();
    for check in ["configuration", "installation", "cluster", "journal"] {
        assert!(checks.iter().any(|it| it == check), "{check} in {checks:?}");
    }
    // An empty machine is one too.
    let bare = Setup::bare();
    fs::remove_dir(bare.lab.path("net.d")).unwrap();
    bare.finds("configuration", &["does not exist", "--conf-dir"]);
}
