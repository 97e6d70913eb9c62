//! Tests properties of the journal's JSON that the golden files cannot show.

use super::*;
use crate::plan;

fn json<F: Form>(value: &F::Of) -> String {
    serde_json::to_string(&Written::<F>(value)).unwrap()
}

fn read<F: Form>(text: &str) -> serde_json::Result<F::Of> {
    serde_json::from_str::<Read<F>>(text).map(|read| read.0)
}

// clause: CNI-1.1.0 §3 same configuration: the recorded configuration is kept byte for byte
#[test]
fn an_attachment_reads_back_as_it_was() {
    let config = r#"{"cniVersion":"1.0.0","name":"n","type":"macvlan","x":9007199254740993,"y":1.10,"z":1e400}"#;
    let attachment = plan::Attachment::for_tests(config);
    let text = json::<Attachment>(&attachment);
    let back = read::<Attachment>(&text).unwrap();
    assert_eq!(back.config.raw(), config);
    assert_eq!(json::<Attachment>(&back), text);
}

#[test]
fn a_device_property_without_a_value_is_not_written() {
    let text = r#"{"device":"0000:01:10.0"}"#;
    let state = read::<Device>(text).unwrap();
    assert_eq!((&state.driver, &state.function), (&None, &None));
    assert_eq!(json::<Device>(&state), text);
}

/// Restoring a route without one of its attributes would create a different route.
#[test]
fn a_route_with_a_key_of_a_newer_release_is_refused() {
    let route = |more: &str| {
        let text = format!(r#"{{"family":"v4","next_hops":[{{{more}}}],"protocol":4}}"#);
        read::<Route>(&text).is_ok()
    };
    assert!(route(""));
    assert!(!route(r#""new":1"#));
}
