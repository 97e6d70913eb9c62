//! Tests of the configuration that plugins get on stdin.

use super::*;
use crate::cni::NetworkConfig;
use crate::cost::linear;

fn plugins(text: &str) -> Vec<PluginConfig> {
    NetworkConfig::parse(text.as_bytes())
        .unwrap()
        .plugins()
        .to_vec()
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// An invocation with few values. Each test sets the fields that it needs.
#[derive(Default)]
struct Case {
    version: Option<Version>,
    prev_result: Option<CniResult>,
    capability_args: CapabilityArgs,
    cni_args: Option<RawObject>,
    inject: Vec<(String, Box<RawValue>)>,
    valid_attachments: Option<Vec<ValidAttachment>>,
}

impl Case {
    fn of(&self, plugin: &PluginConfig) -> Result<String, InvocationError> {
        plugin.request(&Invocation {
            name: &"dbnet".parse().unwrap(),
            version: self.version.unwrap_or(Version::V1_1_0),
            prev_result: self.prev_result.as_ref(),
            capability_args: &self.capability_args,
            cni_args: self.cni_args.as_ref(),
            inject: &self.inject,
            valid_attachments: self.valid_attachments.as_deref(),
        })
    }
}

fn result() -> CniResult {
    let text = br#"{"interfaces":[{"name":"eth0","sandbox":"/n"}],"ips":[{"address":"10.1.0.5/16","interface":0}]}"#;
    CniResult::parse(text, Version::V1_1_0).unwrap()
}

const CHAIN: &str = r#"{"name":"x","cniVersion":"1.1.0","plugins":[
  {"type":"bridge","bridge":"cni0","keyA":["some more", 1.10, 9007199254740993],"dns":{"nameservers":["10.1.0.1"]}},
  {"type":"tuning","capabilities":{"mac":true},"sysctl":{"net.core.somaxconn":"500"}},
  {"type":"portmap","capabilities":{"portMappings":true}}]}"#;

// clause: CNI-1.1.0 §3 derive
// clause: CNI-1.1.0 §3 inserted: Jackfield inserts cniVersion and name
// clause: CNI-1.1.0 §3 capabilities: a plugin does not get the key capabilities
// clause: CNI-1.1.0 §3 runtimeConfig: a plugin gets the capabilities that it declares
// clause: CNI-1.1.0 §3 declared capabilities: a plugin gets no capability that it does not declare
// clause: CNI-1.1.0 §3 first prevResult
// clause: CNI-1.1.0 §1 pass-through: every byte of a value is passed on
// clause: CNI-1.1.0 §1 preserve: every byte of a value is preserved
// clause: NPWG-1.3 §7.1 inject: Jackfield injects cniVersion and name
#[test]
fn each_plugin_gets_the_configuration_that_the_specification_shows() {
    let chain = plugins(CHAIN);
    let mut call = Case::default();
    call.capability_args
        .insert("mac", "00:11:22:33:44:66")
        .unwrap();
    call.capability_args
        .set("portMappings", raw(r#"[{"HostPort":8080}]"#));
    assert_eq!(
        call.of(&chain[0]).unwrap(),
        r#"{"cniVersion":"1.1.0","name":"dbnet","type":"bridge","bridge":"cni0","keyA":["some more", 1.10, 9007199254740993],"dns":{"nameservers":["10.1.0.1"]}}"#
    );
    call.prev_result = Some(result());
    assert_eq!(
        call.of(&chain[1]).unwrap(),
        r#"{"cniVersion":"1.1.0","name":"dbnet","type":"tuning","sysctl":{"net.core.somaxconn":"500"},"runtimeConfig":{"mac":"00:11:22:33:44:66"},"prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"eth0","sandbox":"/n"}],"ips":[{"interface":0,"address":"10.1.0.5/16"}]}}"#
    );
    call.version = Some(Version::V0_4_0);
    assert_eq!(
        call.of(&chain[2]).unwrap(),
        r#"{"cniVersion":"0.4.0","name":"dbnet","type":"portmap","runtimeConfig":{"portMappings":[{"HostPort":8080}]},"prevResult":{"cniVersion":"0.4.0","interfaces":[{"name":"eth0","sandbox":"/n"}],"ips":[{"version":"4","interface":0,"address":"10.1.0.5/16"}]}}"#
    );
}

// clause: CNI-1.1.0 §1 reserved keys: a definition cannot set a reserved key
#[test]
fn a_definition_cannot_set_keys_of_the_runtime() {
    let single = plugins(
        r#"{"type":"a","Name":"mine","CNIVERSION":"0.3.1","cniVersions":["1.0.0"],"capabilities":{"mac":true},"runtimeConfig":{"mac":"x"},"prevReſult":{},"cni.dev/attachments":[],"CNI.dev/x":1,"cni.devx":2,"disableCheck":true}"#,
    );
    let call = Case::default();
    assert_eq!(
        call.of(&single[0]).unwrap(),
        r#"{"cniVersion":"1.1.0","name":"dbnet","type":"a","cni.devx":2,"disableCheck":true}"#
    );
}

// clause: NPWG-1.3 §4.1.2.1.6.2 priority: arguments of the pod override those of the definition
// clause: NPWG-1.3 §4.1.2.1.6.2 args
// clause: NPWG-1.3 §4.1.2.1.6 passed
#[test]
fn arguments_of_the_pod_override_arguments_of_the_definition() {
    let table = [
        (
            r#""args":{"cni":{"a":1,"b":{"x":1}},"other":2},"#,
            r#"{"other":2,"cni":{"a":1,"b":{"y":2.50},"c":3}}"#,
        ),
        ("", r#"{"cni":{"b":{"y":2.50},"c":3}}"#),
        (r#""args":null,"#, r#"{"cni":{"b":{"y":2.50},"c":3}}"#),
        (
            r#""Args":{"CNI":{"a":1}},"#,
            r#"{"cni":{"a":1,"b":{"y":2.50},"c":3}}"#,
        ),
        (
            r#""args":{"cni":null},"#,
            r#"{"cni":{"b":{"y":2.50},"c":3}}"#,
        ),
        // `B` and `b` are the same key for a plugin in Go. If both keys remained, the plugin could
        // read the definition's value instead of the pod's value.
        (
            r#""args":{"cni":{"C":1,"B":2,"d":4}},"#,
            r#"{"cni":{"c":3,"b":{"y":2.50},"d":4}}"#,
        ),
    ];
    let call = Case {
        cni_args: Some(RawObject::parse(br#"{"b":{"y":2.50},"c":3}"#).unwrap()),
        ..Case::default()
    };
    for (args, merged) in table {
        let plugin = &plugins(&format!(r#"{{{args}"type":"a"}}"#))[0];
        assert_eq!(
            call.of(plugin).unwrap(),
            format!(r#"{{"cniVersion":"1.1.0","name":"dbnet","type":"a","args":{merged}}}"#)
        );
    }
    for args in [r#""args":[]"#, r#""args":{"cni":7}"#] {
        let plugin = &plugins(&format!(r#"{{{args},"type":"a"}}"#))[0];
        assert!(
            call.of(plugin)
                .unwrap_err()
                .to_string()
                .contains("is not valid")
        );
        // Without arguments of the pod, Jackfield passes `args` on unchecked.
        assert!(Case::default().of(plugin).unwrap().contains(args));
    }
}

#[test]
fn an_injected_key_replaces_the_key_of_the_definition() {
    let plugin = &plugins(r#"{"DeviceID":"0000:09:00.0","type":"sriov"}"#)[0];
    let call = Case {
        inject: vec![
            ("deviceID".to_owned(), raw(r#""0000:01:10.0""#)),
            ("pciBusID".to_owned(), raw(r#""0000:01:10.0""#)),
        ],
        ..Case::default()
    };
    assert_eq!(
        call.of(plugin).unwrap(),
        r#"{"cniVersion":"1.1.0","name":"dbnet","type":"sriov","deviceID":"0000:01:10.0","pciBusID":"0000:01:10.0"}"#
    );
}

// clause: CNI-1.1.0 §2 GC valid attachments: each attachment has a containerID and an ifname
#[test]
fn valid_attachments_are_passed_to_gc_under_both_keys() {
    let plugin = &plugins(r#"{"type":"a"}"#)[0];
    let attachments = vec![ValidAttachment {
        container_id: "c1".parse().unwrap(),
        ifname: "net1".parse().unwrap(),
    }];
    let list = r#"[{"containerID":"c1","ifname":"net1"}]"#;
    let call = Case {
        valid_attachments: Some(attachments.clone()),
        ..Case::default()
    };
    let text = call.of(plugin).unwrap();
    assert_eq!(
        text,
        format!(
            r#"{{"cniVersion":"1.1.0","name":"dbnet","type":"a","cni.dev/valid-attachments":{list},"cni.dev/attachments":{list}}}"#
        )
    );
    let read = ValidAttachment::read_list(&RawObject::parse(text.as_bytes()).unwrap());
    assert_eq!(read, Ok(Some(attachments)));
    let none = Case {
        valid_attachments: Some(Vec::new()),
        ..Case::default()
    };
    assert!(
        none.of(plugin)
            .unwrap()
            .contains(r#""cni.dev/valid-attachments":[]"#)
    );
}

#[test]
fn a_missing_list_of_attachments_differs_from_an_empty_list() {
    let table = [
        ("{}", Ok(None)),
        (r#"{"cni.dev/valid-attachments":null}"#, Ok(Some(0))),
        (r#"{"cni.dev/attachments":null}"#, Ok(Some(0))),
        (r#"{"cni.dev/valid-attachments":[]}"#, Ok(Some(0))),
        (
            r#"{"cni.dev/valid-attachments":null,"cni.dev/attachments":[{"containerID":"a","ifname":"eth0"}]}"#,
            Ok(Some(1)),
        ),
        (
            r#"{"cni.dev/attachments":[{"containerID":"a","ifname":"eth0"}]}"#,
            Ok(Some(1)),
        ),
        (r#"{"cni.dev/attachments":[{"containerID":"a"}]}"#, Err(())),
        (
            r#"{"cni.dev/attachments":[{"containerID":"../a","ifname":"eth0"}]}"#,
            Err(()),
        ),
        (r#"{"cni.dev/attachments":{}}"#, Err(())),
    ];
    for (text, expected) in table {
        let list = ValidAttachment::read_list(&RawObject::parse(text.as_bytes()).unwrap());
        let length = list.map(|list| list.map(|list| list.len())).map_err(|_| ());
        assert_eq!(length, expected, "{text}");
    }
}

#[test]
fn a_result_that_the_version_cannot_express_is_an_error() {
    let call = Case {
        version: Some(Version::V0_2_0),
        prev_result: Some(CniResult {
            interfaces: vec![crate::cni::Interface::default()],
            ..CniResult::default()
        }),
        ..Case::default()
    };
    let error = call
        .of(&plugins(r#"{"type":"a"}"#)[0])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("prevResult: the result has no address"),
        "{error}"
    );
}

#[test]
fn capability_values_keep_their_order_in_a_record() {
    let text = r#"{"portMappings":[{"HostPort":1}],"bandwidth":{"IngressRate":1e3},"mac":"x"}"#;
    let args: CapabilityArgs = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&args).unwrap(), text);
    assert_eq!(args.get("mac").map(RawValue::get), Some("\"x\""));
    assert_eq!(
        CapabilityArgs::from(&RawObject::parse(text.as_bytes()).unwrap()),
        args
    );
    let nulls = RawObject::parse(br#"{"mac":null}"#).unwrap();
    assert!(CapabilityArgs::from(&nulls).is_empty());
}

#[test]
fn writing_the_stdin_of_a_plugin_takes_linear_time() {
    let object = |count: usize, value: &str| {
        let member = |number: usize| format!(r#""k{number:05}":{value}"#);
        let members: Vec<String> = (0..count).map(member).collect();
        format!("{{{}}}", members.join(","))
    };
    let config = format!(
        r#"{{"type":"a","capabilities":{},"args":{{"cni":{}}}}}"#,
        object(60_000, "true"),
        object(60_000, "0")
    );
    let request = linear(|| {
        let runtime = RawObject::parse(object(60_000, "1").as_bytes()).unwrap();
        let call = Case {
            capability_args: CapabilityArgs::from(&runtime),
            cni_args: Some(RawObject::parse(object(28_000, "2").as_bytes()).unwrap()),
            ..Case::default()
        };
        let plugin = &plugins(&config)[0];
        plugin.check_args(call.cni_args.as_ref().unwrap()).unwrap();
        call.of(plugin).unwrap()
    });
    for part in [r#""k59999":1"#, r#""k27999":2,"k28000":0"#] {
        assert!(request.contains(part), "{part}");
    }
    let recorded = linear(|| serde_json::from_str::<CapabilityArgs>(&object(60_000, "1")));
    assert_eq!(recorded.unwrap().iter().count(), 60_000);
}
