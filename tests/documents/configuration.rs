//! `docs/configuration.md` against the code that reads the configuration.

use std::collections::BTreeSet;

use jackfield::cni::RawObject;
use jackfield::request::NodeConfig;
use jackfield::request::node_config::{self, ACCEPTED, MULTUS_ONLY};
use serde_json::{Map, Value, json};

use crate::document::Document;

const NAME: &str = "docs/configuration.md";

/// Keys without a default; absent they are nothing.
const NO_DEFAULT: [(&str, &str); 5] = [
    ("kubeconfig", "kubeconfig: None"),
    ("manifestDir", "source: Cluster"),
    ("readinessindicatorfile", "readiness_indicator: None"),
    ("logFile", "log: Log { file: None"),
    ("auxiliaryCNIChainName", "auxiliary_chain: None"),
];

/// Keys that have to be there.
const REQUIRED: [&str; 4] = ["cniVersion", "name", "clusterNetwork", "delegates"];

/// The keys that the code reads.
fn keys_in_code() -> BTreeSet<String> {
    let of_version = ["cniVersion", "cniVersions"].map(str::to_owned);
    node_config::keys().into_iter().chain(of_version).collect()
}

/// The smallest configuration with `more` over it, as it is understood.
fn read(more: &Value) -> Result<NodeConfig, String> {
    let mut keys: Map<String, Value> = serde_json::from_value(json!({
        "cniVersion": "1.0.0", "name": "jackfield", "type": "jackfield",
        "clusterNetwork": "/etc/cni/10-cluster.conflist",
    }))
    .unwrap();
    keys.extend(more.as_object().unwrap().clone());
    let text = Value::Object(keys).to_string();
    let object = RawObject::parse(text.as_bytes()).unwrap();
    NodeConfig::parse(&object).map_err(|error| error.to_string())
}

fn understood(more: &Value) -> String {
    format!("{:?}", read(more).unwrap())
}

/// The text between the first two backticks.
fn code(cell: &str) -> Option<&str> {
    cell.split('`').nth(1)
}

/// The rows that begin with a key.
fn keys() -> Vec<(String, Vec<String>)> {
    let rows = Document::of(NAME).rows().into_iter();
    rows.filter(|row| row.len() == 3)
        .map(|row| (code(&row[0]).unwrap().to_owned(), row))
        .collect()
}

#[test]
fn every_key_is_documented_and_no_other() {
    let documented: BTreeSet<String> = keys().into_iter().map(|(key, _)| key).collect();
    assert_eq!(documented, keys_in_code());
    let text = Document::of(NAME).text();
    for key in ACCEPTED.iter().chain(&MULTUS_ONLY) {
        assert!(text.contains(&format!("`{key}`")), "{key} is not in {NAME}");
    }
}

#[test]
fn every_default_is_what_its_absence_means() {
    let absent = understood(&json!({}));
    for (key, row) in keys() {
        let Some(default) = code(&row[1]) else {
            let is_none = NO_DEFAULT
                .iter()
                .any(|(known, shows)| *known == key && absent.contains(shows));
            assert!(
                is_none || REQUIRED.contains(&key.as_str()),
                "{key} has a default in the code that {NAME} does not say"
            );
            continue;
        };
        let value: Value = serde_json::from_str(default).unwrap();
        assert_eq!(understood(&json!({ key: value })), absent, "{default}");
    }
}

#[test]
fn every_choice_is_taken() {
    for (key, row) in keys() {
        let choices = [
            "invalidAnnotation",
            "verify",
            "verifyCluster",
            "delegateCheck",
            "undeclared",
        ];
        if !choices.contains(&key.as_str()) {
            continue;
        }
        for choice in row[2].split('`').skip(1).step_by(2) {
            let is_choice = choice.chars().all(|letter| letter.is_ascii_lowercase());
            if is_choice && !["ips", "mac"].contains(&choice) {
                read(&json!({ key.as_str(): choice })).unwrap();
            }
        }
    }
}

#[test]
fn wrong_values_are_answered_as_documented() {
    let rows = Document::of(NAME).rows().into_iter();
    let mut seen = 0;
    for row in rows.filter(|row| row.len() == 2 && row[0].starts_with("`{")) {
        let written: Value = serde_json::from_str(code(&row[0]).unwrap()).unwrap();
        assert_eq!(read(&written).unwrap_err(), row[1], "{written}");
        seen += 1;
    }
    assert!(seen > 5, "the table of wrong values is gone");
}

#[test]
fn a_value_of_a_wrong_type_is_answered_with_its_key_and_a_remedy() {
    for key in keys_in_code() {
        let wrong = if key == "delegates" {
            json!({ "clusterNetwork": null, "delegates": 7 })
        } else {
            json!({ key.as_str(): 7 })
        };
        let error = read(&wrong).unwrap_err();
        assert!(
            error.contains(&key) && error.contains('7'),
            "{key}: {error}"
        );
        assert!(error.contains(';') || error.contains(": "), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn keys_of_multus_own_process_are_warned_about() {
    for key in MULTUS_ONLY {
        let warnings = read(&json!({ key: "x" })).unwrap().warnings;
        assert_eq!(warnings.len(), 1, "{key}: {warnings:?}");
        assert!(warnings[0].contains("has no effect"), "{}", warnings[0]);
    }
    let known = keys_in_code();
    for key in ACCEPTED.into_iter().filter(|key| !known.contains(*key)) {
        let warnings = read(&json!({ key: null })).unwrap().warnings;
        assert!(warnings.is_empty(), "{key}: {warnings:?}");
    }
    assert!(read(&json!({"vrify": 1})).unwrap().warnings[0].contains("unknown key \"vrify\""));
}

#[test]
fn a_misspelt_key_inside_of_a_key_is_warned_about() {
    let inside = json!({
        "deadlines": {"ad": "5s", "DEL": "5s"},
        "policy": {"namespace": {}, "namespaces": {"*": {"denykeys": [], "deny_keys": ["sysctl"]}}},
    });
    let warnings = read(&inside).unwrap().warnings.join("\n");
    for (key, place) in [
        ("ad", "deadlines"),
        ("namespace", "policy"),
        ("deny_keys", "policy.namespaces.*"),
    ] {
        let line = format!("unknown key {key:?} in {place} of the node configuration");
        assert!(warnings.contains(&line), "{warnings}");
    }
    assert_eq!(warnings.lines().count(), 3, "{warnings}");
}
