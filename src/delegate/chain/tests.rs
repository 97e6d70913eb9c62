use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::cni::CniArgs;
use crate::delegate::{FindError, Ours};

/// Fake plugins that return prepared answers and store their calls.
#[derive(Default)]
struct Script {
    answers: RefCell<Vec<Result<&'static str, DelegateError>>>,
    calls: RefCell<Vec<RecordedCall>>,
}

struct RecordedCall {
    verb: Verb,
    plugin: String,
    attachment: Option<(String, Option<String>, String)>,
    stdin: Value,
    time: Duration,
}

impl Script {
    /// Returns fake plugins that give these answers, one for each call. After the last answer,
    /// every call gets `{}`.
    fn answering(answers: impl IntoIterator<Item = Result<&'static str, DelegateError>>) -> Self {
        let mut answers: Vec<_> = answers.into_iter().collect();
        answers.reverse();
        Self {
            answers: RefCell::new(answers),
            calls: RefCell::default(),
        }
    }

    fn plugins(&self) -> Vec<String> {
        self.calls
            .borrow()
            .iter()
            .map(|call| format!("{} {}", call.verb, call.plugin))
            .collect()
    }

    fn stdin(&self, call: usize) -> Value {
        self.calls.borrow()[call].stdin.clone()
    }
}

impl DelegateExec for Script {
    fn exec(&self, call: &DelegateCall<'_>) -> Result<Vec<u8>, DelegateError> {
        self.calls.borrow_mut().push(RecordedCall {
            verb: call.verb,
            plugin: call
                .binary
                .path()
                .file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .into(),
            attachment: call.attachment.map(|it| {
                let (id, ifname) = (it.container_id.to_string(), it.ifname.to_string());
                (id, it.netns.map(Into::into), ifname)
            }),
            stdin: serde_json::from_str(call.stdin).unwrap(),
            time: call.deadline.saturating_duration_since(Instant::now()),
        });
        let answer = self.answers.borrow_mut().pop().unwrap_or(Ok("{}"));
        answer.map(|text| text.as_bytes().to_vec())
    }
}

/// Runs `story` with a chain that has this configuration. Creates no binary for the plugins in
/// `absent`.
fn with_chain<T>(config: &Value, absent: &[&str], story: impl FnOnce(Chain<'_>) -> T) -> T {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"].iter().filter(|name| !absent.contains(name)) {
        let path = dir.path().join(name);
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let config = NetworkConfig::parse(config.to_string().as_bytes()).unwrap();
    let ours = Ours::this_process().unwrap();
    let binaries = Binaries::find(&[dir.path().to_owned()], &config, &ours);
    story(Chain {
        config: &config,
        name: &"net".parse().unwrap(),
        binaries: &binaries,
        cni_path: "/opt/cni/bin",
        time: Time {
            until: Instant::now() + Duration::from_secs(50),
            per_call: Duration::from_secs(30),
        },
    })
}

fn three(version: &str) -> Value {
    json!({ "cniVersion": version, "name": "net", "plugins": [
        { "type": "a", "capabilities": { "mac": true } }, { "type": "b" }, { "type": "c" },
    ]})
}

fn with_parameters<T>(story: impl FnOnce(&Parameters<'_>) -> T) -> T {
    let mut capability_args = CapabilityArgs::new();
    capability_args.insert("mac", "02:00:00:00:00:01").unwrap();
    story(&Parameters {
        container_id: &"pod-1".parse().unwrap(),
        netns: Some("/run/netns/pod-1"),
        ifname: &"net1".parse().unwrap(),
        args: &CniArgs::default(),
        capability_args: &capability_args,
        cni_args: None,
        inject: &[],
    })
}

fn refused(code: u32) -> DelegateError {
    DelegateError::Refused(cni::Error::new(code, "refused"))
}

const ONE: &str = r#"{"ips":[{"address":"10.0.0.1/24"}]}"#;
const TWO: &str = r#"{"ips":[{"address":"10.0.0.2/24"}]}"#;

fn result(text: &str) -> CniResult {
    CniResult::parse(text.as_bytes(), cni::Version::V1_0_0).unwrap()
}

// clause: CNI-1.1.0 §3 add order
// clause: CNI-1.1.0 §3 prevResult: each plugin gets the result of the previous plugin
#[test]
fn an_add_hands_each_result_to_the_next_plugin() {
    let script = Script::answering([Ok(ONE), Ok(TWO), Ok(TWO)]);
    let added = with_chain(&three("1.0.0"), &[], |chain| {
        with_parameters(|parameters| chain.add(&script, parameters, None))
    });
    assert_eq!(added.unwrap(), result(TWO));
    assert_eq!(script.plugins(), ["ADD a", "ADD b", "ADD c"]);
    assert_eq!(script.stdin(0).get("prevResult"), None);
    assert_eq!(
        script.stdin(1)["prevResult"]["ips"][0]["address"],
        "10.0.0.1/24"
    );
    assert_eq!(
        script.stdin(2)["prevResult"]["ips"][0]["address"],
        "10.0.0.2/24"
    );
    assert_eq!(
        script.stdin(0)["runtimeConfig"],
        json!({ "mac": "02:00:00:00:00:01" })
    );
    assert_eq!(script.stdin(1).get("runtimeConfig"), None);
    assert_eq!(script.stdin(1)["name"], "net");
    let attachment = (
        "pod-1".into(),
        Some("/run/netns/pod-1".into()),
        "net1".into(),
    );
    assert_eq!(script.calls.borrow()[0].attachment, Some(attachment));
}

// clause: CNI-1.1.0 §3 prevResult: the result has the version of the configuration
#[test]
fn a_previous_result_has_the_cni_version_of_the_configuration() {
    let script = Script::answering([Ok(
        r#"{"cniVersion":"1.1.0","interfaces":[{"name":"net1","sandbox":"/n","mtu":9000}]}"#,
    )]);
    with_chain(&three("0.4.0"), &[], |chain| {
        with_parameters(|parameters| chain.add(&script, parameters, None).unwrap());
    });
    let prev = script.stdin(1)["prevResult"].clone();
    assert_eq!(
        (&prev["cniVersion"], &prev["interfaces"][0]["mtu"]),
        (&json!("0.4.0"), &Value::Null)
    );
}

// Injects a fault: the second plugin fails.
// clause: CNI-1.1.0 §3 add halts
#[test]
fn an_add_stops_at_the_first_plugin_that_fails() {
    let script = Script::answering([Ok(ONE), Err(refused(11))]);
    let error = with_chain(&three("1.0.0"), &[], |chain| {
        with_parameters(|parameters| chain.add(&script, parameters, None)).unwrap_err()
    });
    assert_eq!(script.plugins(), ["ADD a", "ADD b"]);
    assert_eq!(error.to_string(), "plugin b: ADD: refused");
    assert_eq!(
        (error.index, error.cause.delegate_error().unwrap().code),
        (1, 11)
    );
}

// Injects a fault: the last plugin's binary is missing.
// clause: CNI-1.1.0 §3 executable: all binaries are looked up before any plugin of the chain runs
#[test]
fn an_add_runs_no_plugin_if_a_binary_is_missing() {
    let script = Script::default();
    let error = with_chain(&three("1.0.0"), &["c"], |chain| {
        with_parameters(|parameters| chain.add(&script, parameters, None)).unwrap_err()
    });
    assert!(script.plugins().is_empty());
    assert!(
        matches!(
            error.cause,
            DelegateError::Missing(FindError::NotFound { .. })
        ),
        "{error}"
    );
    assert_eq!(error.index, 2);
}

// Injects a fault: answers that are not results.
#[test]
fn an_add_refuses_an_answer_that_is_not_a_result() {
    let table = [
        (r#"{"code":7,"msg":"bad"}"#, "plugin a: ADD: bad"),
        (r#"{"ips":7}"#, "plugin a: ADD: the result cannot be read"),
        (
            r#"{"cniVersion":"9.0.0"}"#,
            "plugin a: ADD: the result cannot be read",
        ),
        ("[]", "plugin a: ADD: the result cannot be read"),
    ];
    for (answer, expected) in table {
        let script = Script::answering([Ok(answer)]);
        let error = with_chain(&three("1.0.0"), &[], |chain| {
            with_parameters(|parameters| chain.add(&script, parameters, None))
                .unwrap_err()
                .to_string()
        });
        assert!(error.starts_with(expected), "{answer}: {error}");
    }
}

// clause: CNI-1.1.0 §3 delete order
#[test]
fn a_del_calls_plugins_in_reverse_with_the_final_result() {
    let script = Script::default();
    with_chain(&three("1.0.0"), &[], |chain| {
        with_parameters(|parameters| chain.del(&script, parameters, Some(&result(TWO)))).unwrap();
    });
    assert_eq!(script.plugins(), ["DEL c", "DEL b", "DEL a"]);
    for call in 0..3 {
        assert_eq!(
            script.stdin(call)["prevResult"]["ips"][0]["address"],
            "10.0.0.2/24"
        );
    }
}

#[test]
fn a_del_may_run_without_a_previous_result() {
    for (version, given) in [("1.0.0", None), ("0.3.1", Some(result(ONE)))] {
        let script = Script::default();
        with_chain(&three(version), &[], |chain| {
            with_parameters(|parameters| chain.del(&script, parameters, given.as_ref())).unwrap();
        });
        assert_eq!(script.stdin(0).get("prevResult"), None, "{version}");
    }
}

// Injects faults: one binary is missing, and a different plugin fails.
// clause: CNI-1.1.0 §3 delete halts: deviation: a DEL goes on and reports every failure
#[test]
fn a_del_goes_on_after_failures_and_reports_them_all() {
    let script = Script::answering([Ok(""), Err(refused(5))]);
    let errors = with_chain(&three("1.0.0"), &["b"], |chain| {
        with_parameters(|parameters| chain.del(&script, parameters, None)).unwrap_err()
    });
    assert_eq!(script.plugins(), ["DEL c", "DEL a"]);
    assert_eq!(
        errors.iter().map(|error| error.index).collect::<Vec<_>>(),
        [1, 0]
    );
    let text = errors.to_string();
    assert!(
        text.starts_with("plugin b: DEL: no binary named b in "),
        "{text}"
    );
    assert!(text.ends_with("; also plugin a: DEL: refused"), "{text}");
}

#[test]
fn each_plugin_of_a_del_gets_a_share_of_the_time() {
    let script = Script::default();
    with_chain(&three("1.0.0"), &[], |chain| {
        with_parameters(|parameters| {
            chain.del(&script, parameters, None).unwrap();
            chain.add(&script, parameters, None).unwrap();
        });
    });
    let times: Vec<_> = script
        .calls
        .borrow()
        .iter()
        .map(|call| call.time.as_secs())
        .collect();
    // The chain has 50 s. The fake plugins take almost no time, so about 50 s remain at each call.
    // A DEL divides the remaining time by the number of remaining plugins: 3, 2 and 1. An ADD does
    // not divide the remaining time. The limit of one call is 30 s. `as_secs` rounds down.
    assert_eq!(times, [16, 24, 29, 29, 29, 29]);
}

// clause: CNI-1.1.0 §3 check order: each plugin gets the final result of the ADD
// clause: CNI-1.1.0 §3 check halts
// clause: CNI-1.1.0 §2 CHECK delegated: a plugin's error is returned
#[test]
fn a_check_calls_plugins_in_order_until_one_fails() {
    let script = Script::answering([Ok(""), Err(refused(100))]);
    let error = with_chain(&three("0.4.0"), &[], |chain| {
        with_parameters(|parameters| chain.check(&script, parameters, Some(&result(ONE))))
            .unwrap_err()
    });
    assert_eq!(script.plugins(), ["CHECK a", "CHECK b"]);
    assert_eq!(
        script.stdin(1)["prevResult"]["ips"][0]["address"],
        "10.0.0.1/24"
    );
    assert_eq!(error.index, 1);
}

// clause: CNI-1.1.0 §1 disableCheck: no plugin is called
// clause: CNI-1.1.0 §3 check disabled: a disabled CHECK succeeds
#[test]
fn an_unsupported_or_disabled_check_calls_no_plugin() {
    let mut disabled = three("1.0.0");
    disabled["disableCheck"] = json!(true);
    for config in [three("0.3.1"), disabled] {
        let script = Script::default();
        let ran = with_chain(&config, &[], |chain| {
            with_parameters(|parameters| chain.check(&script, parameters, Some(&result(ONE))))
        });
        assert_eq!((ran.unwrap(), script.plugins().len()), (Ran::None, 0));
    }
}

// clause: CNI-1.1.0 §2 CHECK gives prevResult
#[test]
fn a_check_without_a_recorded_result_fails() {
    let script = Script::default();
    let error = with_chain(&three("1.0.0"), &[], |chain| {
        with_parameters(|parameters| chain.check(&script, parameters, None)).unwrap_err()
    });
    assert!(matches!(error.cause, DelegateError::NoResult));
    assert!(script.plugins().is_empty());
}

// Injects a fault: the first plugin fails.
// clause: CNI-1.1.0 §3 gc goes on
// clause: CNI-1.1.0 §2 GC forwarded: each plugin gets the valid attachments
// clause: CNI-1.1.0 §2 GC valid attachments
#[test]
fn a_gc_passes_the_valid_attachments_to_every_plugin() {
    let script = Script::answering([Err(refused(100))]);
    let valid = [ValidAttachment {
        container_id: "pod-1".parse().unwrap(),
        ifname: "net1".parse().unwrap(),
    }];
    let errors = with_chain(&three("1.1.0"), &[], |chain| {
        chain.gc(&script, &valid).unwrap_err()
    });
    assert_eq!(script.plugins(), ["GC a", "GC b", "GC c"]);
    assert_eq!(errors.iter().count(), 1);
    let expected = json!([{ "containerID": "pod-1", "ifname": "net1" }]);
    assert_eq!(script.stdin(1)["cni.dev/valid-attachments"], expected);
    assert_eq!(script.calls.borrow()[0].attachment, None);
}

// clause: CNI-1.1.0 §1 version: GC and STATUS are new in 1.1.0
// clause: CNI-1.1.0 §1 disableGC
#[test]
fn an_unsupported_or_disabled_verb_calls_no_plugin() {
    let script = Script::default();
    with_chain(&three("1.0.0"), &[], |chain| {
        assert_eq!(chain.gc(&script, &[]).unwrap(), Ran::None);
        assert_eq!(chain.status(&script).unwrap(), Ran::None);
    });
    let mut disabled = three("1.1.0");
    disabled["disableGC"] = json!(true);
    with_chain(&disabled, &[], |chain| {
        assert_eq!(chain.gc(&script, &[]).unwrap(), Ran::None);
    });
    assert!(script.plugins().is_empty());
}

// Injects a fault: a plugin is not ready.
// clause: CNI-1.1.0 §2 STATUS error: the error has the code of the delegate
// clause: CNI-1.1.0 §2 STATUS delegated
#[test]
fn a_status_stops_at_the_first_plugin_that_is_not_ready() {
    let script = Script::answering([Ok(""), Err(refused(51))]);
    let error = with_chain(&three("1.1.0"), &[], |chain| chain.status(&script)).unwrap_err();
    assert_eq!(script.plugins(), ["STATUS a", "STATUS b"]);
    assert_eq!(error.cause.delegate_error().unwrap().code, 51);
}
