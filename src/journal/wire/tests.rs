//! What the golden files do not show.

use super::*;
use crate::baseline::DeviceState;
use crate::plan;

// clause: CNI-1.1.0 §3 same configuration: it is kept byte for byte
#[test]
fn an_attachment_reads_back_as_it_was() {
    let config = r#"{"cniVersion":"1.0.0","name":"n","type":"macvlan","x":9007199254740993,"y":1.10,"z":1e400}"#;
    let attachment = plan::Attachment::for_tests(config);
    let text = serde_json::to_string(&Attachment::from(&attachment)).unwrap();
    let read: Attachment<'_> = serde_json::from_str(&text).unwrap();
    let back = plan::Attachment::from(read);
    assert_eq!(back.config.raw(), config);
    assert_eq!(
        serde_json::to_string(&Attachment::from(&back)).unwrap(),
        text
    );
}

#[test]
fn what_is_not_known_of_a_device_has_no_key() {
    let text = r#"{"device":"0000:01:10.0"}"#;
    let read: Device<'_> = serde_json::from_str(text).unwrap();
    let state = DeviceState::from(read);
    assert_eq!((&state.driver, &state.function), (&None, &None));
    assert_eq!(serde_json::to_string(&Device::from(&state)).unwrap(), text);
}

/// A route that is put back without an attribute is another route.
#[test]
fn a_route_with_a_key_of_a_newer_release_is_refused() {
    let route = |more: &str| {
        let text = format!(r#"{{"family":"v4","next_hops":[{{{more}}}],"protocol":4}}"#);
        serde_json::from_str::<Route<'_>>(&text).is_ok()
    };
    assert!(route(""));
    assert!(!route(r#""new":1"#));
}
