use super::*;

fn refused(text: &str) -> String {
    match unambiguous(text, &[]) {
        Err(JsonError::Ambiguous(key)) => key,
        Err(error) => format!("{error}"),
        Ok(()) => String::new(),
    }
}

#[test]
fn a_repeated_key_is_refused_in_every_spelling_and_depth() {
    let table = [
        (r#"{"type":"a","ipam":{},"ipam":{}}"#, "ipam"),
        (r#"{"type":"a","type":null}"#, "type"),
        (r#"{"type":"a","Type":"b"}"#, "Type"),
        (r#"{"type":"a","t\u0079pe":"b"}"#, "type"),
        (r#"{"sysctl":1,"ſysctl":2}"#, "ſysctl"),
        (r#"{"denyKeys":1,"deny\u212aeys":2}"#, "deny\u{212a}eys"),
        (r#"{"σ":1,"ς":2}"#, "ς"),
        (r#"{"µ":1,"Μ":2}"#, "Μ"),
        (r#"{"ß":1,"ẞ":2}"#, "ẞ"),
        (r#"{"ǅ":1,"ǆ":2}"#, "ǆ"),
        (r#"{"":1,"":2}"#, ""),
        (
            r#"{"plugins":[{"a":[[{}]]},{"ipam":{"x":1,"X":2}}]}"#,
            "plugins[1].ipam.X",
        ),
        (r#"[1,[{"b":"{\"c\":1,\"c\":2}","B":1}]]"#, "[1][0].B"),
        (r#"{"a":{"b":1},"c":{"b":1},"b":[{"b":1},{"b":2}]}"#, ""),
        (r#"{"i":1,"ı":2,"İ":3,"ss":4,"ß":5,"k":6,"ĸ":7}"#, ""),
        (r#"{"a":"a\\","b":"\"","c":{}}"#, ""),
    ];
    for (text, key) in table {
        let found = unambiguous(text, &[]);
        assert_eq!(refused(text), key, "{text}");
        assert_eq!(found.is_ok(), key.is_empty() && !text.contains("\"\":"));
    }
    // Go decodes each unpaired surrogate as U+FFFD, so it would treat both keys as the same key.
    let halves = refused(r#"{"\ud800":1,"\udfff":2}"#);
    assert!(halves.starts_with("invalid JSON"), "{halves}");
}

#[test]
fn only_annotation_names_may_be_equal_except_for_case() {
    let path = ["runtimeConfig", "annotations"];
    let table = [
        (r#"{"runtimeConfig":{"annotations":{"a":1,"A":2}}}"#, true),
        (r#"{"RuntimeConfig":{"annotations":{"a":1,"A":2}}}"#, true),
        (r#"{"runtimeConfig":{"annotations":{"a":1,"a":2}}}"#, false),
        (
            r#"{"runtimeConfig":{"annotations":{"b":{"a":1,"A":2}}}}"#,
            false,
        ),
        (r#"{"runtimeConfig":{"other":{"a":1,"A":2}}}"#, false),
        (r#"{"x":{"annotations":{"a":1,"A":2}}}"#, false),
        (
            r#"{"runtimeConfig":[{"annotations":{"a":1,"A":2}}]}"#,
            false,
        ),
        (r#"{"a":1,"A":2}"#, false),
    ];
    for (text, fine) in table {
        assert_eq!(unambiguous(text, &path).is_ok(), fine, "{text}");
    }
}

#[test]
fn invalid_json_is_left_to_the_parser() {
    for text in [
        "",
        "}",
        "]}",
        "{\"a",
        "{\"a\\",
        "{,,\"a\":[}",
        "\"",
        "{\"\\",
    ] {
        let _ = unambiguous(text, &["a"]);
        each_key(text, |key| assert!(key.text().is_none(), "{text}"));
    }
}

#[test]
fn many_keys_take_one_pass() {
    use std::fmt::Write;
    let mut text = String::from("{");
    for number in 0..200_000 {
        let _ = write!(text, "\"k{number}\":0,");
    }
    text.push_str("\"K7\":1}");
    let begun = std::time::Instant::now();
    assert_eq!(refused(&text), "K7");
    // A comparison of every pair of keys would take much longer.
    assert!(begun.elapsed() < std::time::Duration::from_secs(20));
}

#[test]
fn values_are_found_under_their_keys_at_every_depth() {
    let text = r#"{"device" : "eth0","a":[{"d\u0065vice":"e\u0074h1"}],"b":{"DEVICE":7,"x":"device"},"device":null}"#;
    let mut found = Vec::new();
    each_key(text, |key| {
        let is_wanted = same_key(key.name, "device");
        found.extend(is_wanted.then(|| key.text()).flatten());
    });
    assert_eq!(found, ["eth0", "eth1"]);
}

#[test]
fn a_key_in_a_list_identifies_the_object_above_the_list() {
    let text =
        r#"{"links":[{"name":1},[{"name":2}],{"x":{"name":3}}],"l":[{"name":4}],"on": true}"#;
    let mut found = Vec::new();
    each_key(text, |key| {
        if key.name == "name" {
            found.push(key.above_list("links"));
        }
        assert_eq!(key.is_true(), key.name == "on");
    });
    assert_eq!(found, [Some(1), None, None, None]);
}
