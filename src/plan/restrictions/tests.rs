use super::*;
use crate::cni::{JsonError, NetworkConfigError};

fn check(types: &[&str], deny_keys: Vec<String>, members: &str) -> Result<(), Restriction> {
    let config = config(members).unwrap();
    let rule = Rule {
        types: types.iter().map(|it| (*it).to_owned()).collect(),
        deny_keys,
        ..Rule::default()
    };
    check_plugins(&rule, &RuleName::Node, &config)
}

fn config(members: &str) -> Result<NetworkConfig, NetworkConfigError> {
    let text = format!(r#"{{"cniVersion":"1.0.0","name":"n","type":"ptp",{members}}}"#);
    NetworkConfig::parse(text.as_bytes())
}

#[test]
fn a_policy_refuses_a_type_that_is_not_a_string() {
    for hidden in [
        r#""delegate":{"type":["evil"]}"#,
        r#""delegates":[{"type":{"a":"evil"}}]"#,
        r#""ipam":{"type":7}"#,
    ] {
        if config(hidden).is_err() {
            continue;
        }
        let refused = check(&["ptp"], Vec::new(), hidden);
        let Err(Restriction::UnreadableType { plugin, error }) = refused else {
            panic!("{hidden}: {refused:?}");
        };
        assert_eq!(plugin.as_str(), "ptp");
        assert!(
            matches!(&error, JsonError::Key { key, .. } if key == "type"),
            "{error:?}"
        );
        assert_eq!(
            check(&[], Vec::new(), hidden),
            Ok(()),
            "a rule without `types` checks no type"
        );
    }
}

/// A check that took exponential time in the number of levels would exceed the time limit. So would
/// a check that parsed each level once for every denied key.
#[test]
fn a_policy_check_takes_linear_time() {
    let mut inner = format!(r#""q":[{}]"#, vec!["{}"; 100_000].join(","));
    for key in ["ipam", "delegates"].repeat(4) {
        inner = format!(r#""{key}":{{{inner}}}"#);
    }
    let keys: Vec<String> = (0..1000).map(|key| format!("ipam.k{key}")).collect();
    let check = |members: &str| check(&["ptp"], keys.clone(), members);
    let began = std::time::Instant::now();
    let refused = check(&inner);
    assert!(
        matches!(refused, Err(Restriction::TooDeep { .. })),
        "{refused:?}"
    );
    let list = format!(r#""ipam":[[[{}]]]"#, vec!["{}"; 100_000].join(","));
    assert!(check(&list).is_err());
    let ranges = vec![r#"{"subnet":"10.0.0.0/24","rangeStart":"10.0.0.7"}"#; 2000].join(",");
    assert_eq!(
        check(&format!(r#""ipam":{{"ranges":[[{ranges}]]}}"#)),
        Ok(())
    );
    assert!(
        began.elapsed() < std::time::Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
}
