//! Tests that a JSON object keeps the text of its values, and that errors quote keys and values.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn object(text: &str) -> RawObject {
    RawObject::parse(text.as_bytes()).unwrap()
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

// clause: CNI-1.1.0 §3 unaltered: the text of every value stays unchanged
#[test]
fn the_text_of_values_stays_unchanged() {
    let text = r#"{"big":9007199254740993,"exact":1.10,"huge":1e400,"tiny":-0.0,"esc":"\u00e9\/","nested":{"b": 1 ,"a":[ ]},"a\"b":null,"big":1}"#;
    assert_eq!(object(text).to_string(), text);
    let spaced = object(" {\n \"a\" : [ 1,  2 ] ,\"b\":1.50 }\r\n");
    assert_eq!(spaced.to_string(), r#"{"a":[ 1,  2 ],"b":1.50}"#);
}

#[test]
fn keys_are_looked_up_as_in_go() {
    let table = [
        (r#"{"type":"a"}"#, Some(r#""a""#)),
        (r#"{"TYPE":"a"}"#, Some(r#""a""#)),
        (r#"{"type":"a","Type":"b"}"#, Some(r#""b""#)),
        (r#"{"Type":"b","type":"a"}"#, Some(r#""a""#)),
        (r#"{"type":"a","type":null}"#, None),
        (r#"{"type":null}"#, None),
        (r#"{"typ":"a","types":"b"}"#, None),
        (r#"{"t\u0079pe":"a"}"#, Some(r#""a""#)),
        ("{}", None),
    ];
    for (text, expected) in table {
        assert_eq!(
            object(text).get("type").map(RawValue::get),
            expected,
            "{text}"
        );
    }
    assert!(object(r#"{"\u017fYSCTL":1}"#).get("sysctl").is_some());
    assert!(
        object(r#"{"deni\u0065d\u212Aeys":1}"#)
            .get("deniedKeys")
            .is_some()
    );
    assert!(object(r#"{"prevReſult":{}}"#).contains("prevResult"));
    assert!(object(r#"{"tÿpe":1}"#).get("type").is_none());
    assert!(object(r#"{"a":null}"#).contains("A"));
}

#[test]
fn setting_a_key_is_case_sensitive_but_removing_is_not() {
    let mut config = object(r#"{"a":1,"A":2,"b":3,"a":4}"#);
    config.set("a", raw("5.0"));
    assert_eq!(config.to_string(), r#"{"a":5.0,"A":2,"b":3}"#);
    config.set("c", raw("[]"));
    assert!(config.remove("a"));
    assert!(!config.remove("a"));
    assert_eq!(config.to_string(), r#"{"b":3,"c":[]}"#);
    assert_eq!((config.len(), config.is_empty()), (2, false));
    assert_eq!(RawObject::new().to_string(), "{}");
}

#[test]
fn an_error_about_a_wrong_type_quotes_key_and_value() {
    let config = object(r#"{"Mtu":"big","name":"net","none":null}"#);
    assert_eq!(
        config.read::<String>("name").unwrap().as_deref(),
        Some("net")
    );
    assert_eq!(config.read::<u32>("none"), Ok(None));
    assert_eq!(config.read::<u32>("absent"), Ok(None));
    assert_eq!(
        config.read::<u32>("mtu").unwrap_err().to_string(),
        r#"key "mtu": "big" is not valid: invalid type: string "big", expected u32"#
    );
    let long = object(&format!(r#"{{"mtu":["{}"]}}"#, "x".repeat(100_000)));
    assert!(long.read::<u32>("mtu").unwrap_err().to_string().len() < 300);
}

#[test]
fn each_invalid_object_has_its_own_message() {
    let table = [
        ("", "empty input"),
        (" \r\n\t", "empty input"),
        ("null", "expected an object"),
        ("[]", "expected an object"),
        ("7", "expected an object"),
        ("{", "EOF"),
        ("{}{}", "trailing characters"),
        ("{\"a\":1,}", "trailing comma"),
        ("{\"a\":01}", "invalid number"),
        ("{a:1}", "key must be a string"),
        ("}", "invalid JSON"),
    ];
    for (text, expected) in table {
        let error = RawObject::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    let error = RawObject::parse(b"{\"a\":\"\xff\"}").unwrap_err();
    assert_eq!(error.to_string(), "invalid JSON: not UTF-8 after byte 6");
}

#[test]
fn deep_nesting_is_refused_without_using_the_stack() {
    let nested = |open: &str, close: &str, levels: usize| {
        format!("{{\"a\":{}1{}}}", open.repeat(levels), close.repeat(levels))
    };
    for (open, close) in [("[", "]"), ("{\"b\":", "}")] {
        assert!(RawObject::parse(nested(open, close, MAX_DEPTH - 1).as_bytes()).is_ok());
        for levels in [MAX_DEPTH, 100_000] {
            let text = nested(open, close, levels);
            assert_eq!(
                RawObject::parse(text.as_bytes()).unwrap_err(),
                JsonError::TooDeep(5 + (MAX_DEPTH - 1) * open.len())
            );
        }
    }
    // Brackets in strings and brackets side by side do not nest.
    let text = format!(
        "{{\"a\":\"\\\"{}\",\"b\":[{}]}}",
        "[".repeat(1_000),
        vec!["[]"; 1_000].join(",")
    );
    assert!(RawObject::parse(text.as_bytes()).is_ok());
}

#[test]
fn an_object_in_a_record_keeps_its_text() {
    let text = r#"{"config":{"a":1.10,"b":9007199254740993}}"#;
    let record: std::collections::BTreeMap<String, RawObject> = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&record).unwrap(), text);
}

/// Any JSON value, with white space and numbers that a parser would not reproduce.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("1.10".to_owned()),
        Just("1e400".to_owned()),
        any::<i64>().prop_map(|number| format!("{number}00000")),
        any::<String>().prop_map(|text| Value::from(text).to_string()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|list| format!("[ {} ]", list.join(" ,"))),
            prop::collection::vec((any::<String>(), inner), 0..4).prop_map(|members| {
                let members: Vec<String> = members
                    .into_iter()
                    .map(|(key, value)| format!("{}: {value}", Value::from(key)))
                    .collect();
                format!("{{{}\n}}", members.join(", "))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn every_value_survives_byte_for_byte(
        members in prop::collection::vec((any::<String>(), json()), 0..6),
    ) {
        let text = members
            .iter()
            .map(|(key, value)| format!("{} : {value}", Value::from(key.as_str())))
            .collect::<Vec<_>>()
            .join(" , ");
        let first = object(&format!("{{ {text} }}"));
        let kept: Vec<_> = first.iter().map(|(key, value)| (key.to_owned(), value.get().to_owned())).collect();
        prop_assert_eq!(kept, members);
        prop_assert_eq!(object(&first.to_string()), first);
    }

    #[test]
    fn parsing_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = RawObject::parse(&bytes);
    }

    #[test]
    fn parsing_brackets_never_panics(text in "[\\[\\]{}\":,a0\\\\ ]{0,64}") {
        if let Ok(parsed) = RawObject::parse(text.as_bytes()) {
            prop_assert!(serde_json::from_str::<Value>(&parsed.to_string()).is_ok());
        }
    }

    #[test]
    fn a_string_is_written_as_json(text: String) {
        let mut out = String::new();
        push_string(&mut out, &text);
        prop_assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
    }
}

#[test]
fn a_long_text_is_shortened_in_an_error() {
    let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(100_000));
    let of_key = object(&long).read::<u32>("name").unwrap_err();
    let of_text = serde_json::from_str::<u32>(&format!("{:?}", "x".repeat(100_000)));
    for error in [of_key, JsonError::from(of_text.unwrap_err())] {
        let said = error.to_string();
        assert!(said.len() < 500, "{} bytes", said.len());
    }
}
