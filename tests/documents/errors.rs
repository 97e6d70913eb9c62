//! `docs/errors.md`: every code, from the table that the code itself uses; and what
//! `docs/troubleshooting.md` says about codes and events.

use std::fmt::Write;

use jackfield::cni::code::TABLE;

use crate::document::{Document, cell, sources};

const PREFACE: &str = "# Error codes

A failed call returns one JSON object. `code` is one of the codes below, or 999 for a defect in Jackfield. `msg` is one
line. It names network, interface, plugin and remedy, as far as they apply. Unless the code is 999, `msg` ends with the
code. `details` has the code of each delegate that failed. The codes 2 and 3 occur only in `details`.

Section 2 of CNI 1.1.0 (STATUS) defines the codes 50 and 51. Section 5 (Error) defines the other codes up to 99, except
code 8, which CNI's reference library defines. Jackfield defines the codes from 100. If a delegate fails ADD, CHECK or
STATUS with code 11, Jackfield returns code 11. If a delegate fails STATUS with code 51, Jackfield returns code 51. For
any other failure of a delegate, Jackfield returns code 106 on DEL, 50 on STATUS, and 100 on all other verbs.

[troubleshooting.md](troubleshooting.md#by-code) explains what to check for each code, with examples.

This table is generated from the code.

| Code | Name | What happened | What to do |
|---|---|---|---|
";

#[test]
fn the_document_has_every_code() {
    let mut text = PREFACE.to_owned();
    for code in TABLE {
        writeln!(
            text,
            "| {} | {} | {} | {} |",
            code.number,
            cell(code.name),
            cell(code.meaning),
            cell(code.remedy)
        )
        .unwrap();
    }
    Document::of("docs/errors.md").is(&text);
}

#[test]
fn troubleshooting_speaks_of_every_code() {
    let text = Document::of("docs/troubleshooting.md").text();
    for code in TABLE {
        let heading = format!("\n### {}: ", code.number);
        assert!(
            text.contains(&heading),
            "docs/troubleshooting.md has no section on {}: {}",
            code.number,
            code.name
        );
    }
}

#[test]
fn troubleshooting_speaks_of_every_event() {
    let text = Document::of("docs/troubleshooting.md").text();
    let mut reasons = 0;
    for (file, source) in sources() {
        for call in ["Event::warning(", "Event::normal("] {
            for rest in source.split(call).skip(1) {
                let Some(reason) = rest.trim_start().strip_prefix('"') else {
                    continue;
                };
                let reason = reason.split('"').next().unwrap();
                assert!(
                    text.contains(&format!("| `{reason}` |")),
                    "docs/troubleshooting.md does not explain the event {reason} of {file}"
                );
                reasons += 1;
            }
        }
    }
    assert!(reasons > 3, "no event was found in the sources");
}
