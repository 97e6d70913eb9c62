use serde_json::{Value, json};

use super::*;

const CONTAINER: &str = "0123abcd";

fn key() -> Key {
    Key {
        container: CONTAINER.parse().unwrap(),
        ifname: "eth0".parse().unwrap(),
    }
}

fn encoded(config: &Value) -> String {
    BASE64.encode(config.to_string())
}

fn list() -> Value {
    json!({ "cniVersion": "1.0.0", "name": "default", "plugins": [
        { "type": "bridge", "ipam": { "type": "host-local" } }, { "type": "tuning" } ] })
}

fn macvlan(name: &str) -> Value {
    json!({ "cniVersion": "1.0.0", "name": name, "type": "macvlan" })
}

/// A complete cache with the interfaces `eth0`, `net1` and `data0`. The pod requested the name
/// `data0`.
fn cache() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let delegates = json!([
        { "Conf": {"ipam": {}}, "Name": "default", "Bytes": encoded(&list()) },
        { "Name": "demo/net-a", "macRequest": "02:00:00:00:0a:01", "ipRequest": ["10.9.0.5/24"],
          "Bytes": encoded(&macvlan("net-a")) },
        { "Name": "demo/net-b", "ifnameRequest": "data0", "Bytes": encoded(&macvlan("net-b")) },
    ]);
    fs::write(dir.path().join(CONTAINER), delegates.to_string()).unwrap();
    fs::create_dir(dir.path().join("results")).unwrap();
    result(&dir, "default", "eth0", &list());
    result(&dir, "net-a", "net1", &macvlan("net-a"));
    result(&dir, "net-b", "data0", &macvlan("net-b"));
    dir
}

fn result(dir: &tempfile::TempDir, network: &str, ifname: &str, config: &Value) {
    let text = json!({
        "kind": "cniCacheV1", "containerId": CONTAINER, "config": encoded(config),
        "ifName": ifname, "networkName": network, "netns": "/run/netns/mcx",
        "cniArgs": [["IgnoreUnknown", "true"], ["K8S_POD_NAME", "web"], ["K8S_POD_NAME", "web"]],
        "capabilityArgs": { "mac": "02:00:00:00:0a:09" },
        "result": { "cniVersion": "1.0.0", "interfaces": [{ "name": ifname, "sandbox": "/x" }],
                    "ips": [{ "address": "10.9.0.5/24", "interface": 0 }] },
    });
    let name = format!("results/{network}-{CONTAINER}-{ifname}");
    fs::write(dir.path().join(name), text.to_string()).unwrap();
}

fn names(sandbox: &CachedSandbox) -> Vec<String> {
    sandbox
        .attachments
        .iter()
        .map(|one| format!("{} {}", one.attachment.ifname, one.attachment.network))
        .collect()
}

const ALL: [&str; 3] = ["eth0 default", "net1 net-a", "data0 net-b"];

#[test]
fn both_cache_files_together_describe_every_attachment() {
    let dir = cache();
    let sandbox = MultusCache::new(dir.path()).read(&key());
    assert_eq!(names(&sandbox), ALL);
    assert!(sandbox.damage.is_empty(), "{:?}", sandbox.damage);
    assert_eq!(sandbox.netns.as_deref(), Some("/run/netns/mcx"));
    let [eth0, net1, _] = sandbox.attachments.as_slice() else {
        panic!("not three attachments");
    };
    assert!(eth0.attachment.is_cluster && !net1.attachment.is_cluster);
    assert_eq!(eth0.attachment.config.plugins().len(), 2);
    assert_eq!(net1.attachment.label, "demo/net-a");
    assert_eq!(
        net1.args,
        "IgnoreUnknown=true;K8S_POD_NAME=web;K8S_POD_NAME=web"
    );
    let mac = net1.attachment.capability_args.get("mac").unwrap();
    assert_eq!(
        mac.get(),
        "\"02:00:00:00:0a:09\"",
        "`capabilityArgs` in the result file replace `macRequest`"
    );
    assert_eq!(net1.result.as_ref().unwrap().ips.len(), 1);
}

#[test]
fn the_list_of_delegates_alone_tells_what_the_pod_requested() {
    let dir = cache();
    fs::remove_dir_all(dir.path().join("results")).unwrap();
    let sandbox = MultusCache::new(dir.path()).read(&key());
    assert_eq!(names(&sandbox), ALL);
    let net1 = &sandbox.attachments[1];
    assert_eq!(
        net1.attachment.capability_args.get("ips").unwrap().get(),
        r#"["10.9.0.5/24"]"#
    );
    let args = net1
        .attachment
        .args(crate::cni::CniArgs::default())
        .unwrap();
    assert_eq!(
        args.to_string(),
        "MAC=02:00:00:00:0a:01;IP=10.9.0.5/24;IgnoreUnknown=1"
    );
    assert!(net1.result.is_none());
}

#[test]
fn the_cached_results_alone_lack_only_the_order_of_the_networks() {
    let dir = cache();
    fs::remove_file(dir.path().join(CONTAINER)).unwrap();
    let sandbox = MultusCache::new(dir.path()).read(&key());
    assert_eq!(
        names(&sandbox),
        ["eth0 default", "net1 net-a", "data0 net-b"]
    );
    assert!(sandbox.attachments[0].attachment.is_cluster);
    result(&dir, "net-a", "net10", &macvlan("net-a"));
    result(&dir, "net-a", "net2", &macvlan("net-a"));
    let sandbox = MultusCache::new(dir.path()).read(&key());
    let order: Vec<String> = names(&sandbox);
    assert_eq!(order[1..3], ["net1 net-a", "net2 net-a"], "{order:?}");
}

#[test]
fn a_damaged_file_is_reported_and_hides_no_attachment() {
    let delegates: [(&str, usize); 6] = [
        ("", 3),
        ("[", 3),
        ("{}", 3),
        ("[null]", 3),
        (r#"[{"Bytes":"%"}]"#, 3),
        (r#"[{"Bytes":null,"ifnameRequest":7}]"#, 3),
    ];
    for (text, left) in delegates {
        let dir = cache();
        fs::write(dir.path().join(CONTAINER), text).unwrap();
        let sandbox = MultusCache::new(dir.path()).read(&key());
        assert_eq!(sandbox.attachments.len(), left, "{text}");
        assert_eq!(sandbox.damage.len(), 1, "{text}: {:?}", sandbox.damage);
        assert!(sandbox.damage[0].to_string().contains(CONTAINER));
    }
    let dir = cache();
    fs::write(
        dir.path().join(format!("results/net-a-{CONTAINER}-net1")),
        "{",
    )
    .unwrap();
    let sandbox = MultusCache::new(dir.path()).read(&key());
    assert_eq!(names(&sandbox), ALL);
    assert_eq!(sandbox.damage.len(), 1);
    let deep = "[".repeat(100_000);
    fs::write(dir.path().join(CONTAINER), deep).unwrap();
    assert!(MultusCache::new(dir.path()).read(&key()).is_known());
}

#[test]
fn a_sandbox_that_multus_never_attached_is_unknown() {
    let dir = cache();
    let cache = MultusCache::new(dir.path());
    for other in ["0123abc", "123abcd", "net", "results"] {
        let key = Key {
            container: other.parse().unwrap(),
            ifname: "eth0".parse().unwrap(),
        };
        assert!(!cache.read(&key).is_known(), "{other}");
        assert!(!cache.has(&key.container), "{other}");
    }
    assert_eq!(cache.containers(), [key().container]);
    let absent = dir.path().join("absent");
    assert!(!MultusCache::new(&absent).read(&key()).is_known());
    assert!(MultusCache::new(&absent).containers().is_empty());
}

#[test]
fn forgetting_a_container_removes_only_the_files_of_that_container() {
    let dir = cache();
    let other = dir
        .path()
        .join("results")
        .join(format!("x-9{CONTAINER}-eth0"));
    fs::write(&other, r#"{"containerId":"90123abcd"}"#).unwrap();
    fs::write(dir.path().join(format!("9{CONTAINER}")), "[]").unwrap();
    let cache = MultusCache::new(dir.path());
    cache.forget(&key().container);
    assert!(!cache.has(&key().container));
    assert!(other.exists());
    assert_eq!(cache.containers(), ["90123abcd".parse().unwrap()]);
    cache.forget(&key().container);
}

/// Multus 4.3 writes a configuration list in two forms. `CNINetworkConfigList` is complete. `Bytes`
/// contains only the keys that Multus' Go types define.
#[test]
fn the_complete_form_of_a_configuration_list_takes_precedence() {
    let dir = cache();
    let full = json!({ "type": "bridge", "bridge": "b0",
                       "ipam": { "type": "host-local", "ranges": [[{ "subnet": "10.0.0.0/24" }]] } });
    let delegates = json!([{ "Name": "default", "Bytes": encoded(&list()), "CNINetworkConfigList": {
        "Name": "default", "CNIVersion": "1.0.0", "DisableCheck": false, "Bytes": null,
        "Plugins": [{ "Network": { "type": "bridge" }, "Bytes": encoded(&full) }] } }]);
    fs::write(dir.path().join(CONTAINER), delegates.to_string()).unwrap();
    let sandbox = MultusCache::new(dir.path()).read(&key());
    let config = &sandbox.attachments[0].attachment.config;
    assert_eq!(config.plugins().len(), 1);
    assert_eq!(config.version().as_str(), "1.0.0");
    let body = config.plugins()[0].body().to_string();
    assert!(body.contains("10.0.0.0/24"), "{body}");
    let bare = delegates.to_string().replace(&encoded(&full), "%");
    fs::write(dir.path().join(CONTAINER), bare).unwrap();
    let sandbox = MultusCache::new(dir.path()).read(&key());
    assert_eq!(sandbox.damage.len(), 1, "{:?}", sandbox.damage);
    assert_eq!(
        sandbox.attachments.len(),
        3,
        "the result file of `eth0` also contains the configuration"
    );
}
