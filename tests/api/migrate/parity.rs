//! Multus' own examples and end-to-end tests: what the real Multus attaches by each of their manifests, what
//! takes over from it attaches too.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use super::host::{Host, ip};
use super::{MULTUS_CONF, multus_conf, node_of_multus};
use crate::lab::{Lab, NETWORKS, STATUS};

/// Manifests that are applied together, in their order.
const SCENARIOS: [&[&str]; 9] = [
    &["examples/macvlan-pod.yml"],
    &["examples/sriov-pod.yml"],
    &["e2e/static-pod-nad.yml", "e2e/simple-static-pod.yml"],
    &[
        "e2e/templates/simple-pod.yml.j2",
        "e2e/templates/many-pods.yml.j2",
    ],
    &["e2e/templates/simple-macvlan1.yml.j2"],
    &["e2e/templates/default-route1.yml.j2"],
    &["e2e/templates/dra-integration.yml.j2"],
    &[
        "e2e/templates/subdirectory-chaining.yml.j2",
        "e2e/templates/subdirectory-chaining-pod.yml.j2",
    ],
    &[
        "e2e/templates/subdirectory-chain-passthru-configupdate.yml.j2",
        "e2e/templates/subdirectory-chaining-passthru.yml.j2",
        "e2e/templates/subdirectory-chaining-pod.yml.j2",
    ],
];

/// Files that attach nothing, by how their names end, and what they are.
const NOTHING_TO_ATTACH: [(&str, &str); 5] = [
    (".md", "a text"),
    (
        ".sh",
        "a script, which does to a cluster what this test does to a node",
    ),
    (
        "cni-install.yml.j2",
        "puts plugins onto nodes, by pods in the host's network",
    ),
    (
        "multus-daemonset.yml.j2",
        "installs Multus, by pods in the host's network",
    ),
    (
        "multus-daemonset-thick.yml.j2",
        "installs Multus, by pods in the host's network",
    ),
];

/// Pods that Jackfield attaches otherwise on purpose, and why.
const DIFFERENT: [(&str, &str); 1] = [(
    "default-route-worker1",
    "it gets the default route that it asks for; Multus 4.3 leaves the cluster network's in its place, since it \
     looks for routes without a destination, and adds none beside it",
)];

/// Pods that neither attaches here.
const REFUSED: [(&str, &str); 2] = [
    (
        "testpod1",
        "no kubelet gives it the device that it asks for",
    ),
    ("dra-integration", "no kubelet says what its claim is"),
];

/// What `sed_generate_yaml.sh` puts into the templates.
const VERSION: (&str, &str) = ("{{ CNI_VERSION }}", "0.4.0");

/// The cluster network of kind, for which the end-to-end tests are written.
const KINDNET: &str = "/etc/cni/net.d/10-kindnet.conflist";

/// Where the examples say nothing of a namespace, as for `default/dra-net`.
const NAMESPACE: &str = "default";

#[test]
fn every_example_of_multus_is_attached_as_multus_attaches_it() {
    let examples = Examples::find();
    examples.are_all_known();
    let (lab, host) = node_of_multus();
    let host = host.in_namespace(NAMESPACE);
    let _masters = Masters::new();
    kindnet(&host);
    let mut wrong = Vec::new();
    let (exit, out) = host.shell("install -m 755 target/jackfield /usr/local/sbin/jackfield");
    assert_eq!(exit, Some(0), "{out}");
    for files in SCENARIOS {
        let objects = files.iter().flat_map(|file| examples.objects(file));
        let scenario = Scenario::of(&lab, objects.collect());
        scenario.prepare(&host);
        let by_multus = scenario.attach(&host);
        let (exit, out) = host.shell("jackfield install --from-multus --force");
        assert_eq!(exit, Some(0), "{files:?}: {out}");
        let by_jackfield = scenario.attach(&host);
        let (exit, out) = host.shell("jackfield uninstall --force");
        assert_eq!(exit, Some(0), "{files:?}: {out}");
        scenario.clear(&host);
        for ((pod, theirs), (_, ours)) in by_multus.iter().zip(&by_jackfield) {
            let is_named = |table: &[(&str, &str)]| table.iter().any(|(name, _)| name == pod);
            let is_same = theirs.attached == ours.attached;
            if is_same == is_named(&DIFFERENT) || theirs.attached.is_none() != is_named(&REFUSED) {
                wrong.push(format!("{files:?} {pod}: {theirs:#?} {ours:#?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A list by that name, since plugins are put behind it.
fn kindnet(host: &Host) {
    let files = host.files("/etc/cni/net.d");
    let mut plugin: Value = serde_json::from_slice(&files["10-cluster.conf"]).unwrap();
    plugin["isDefaultGateway"] = json!(true);
    plugin["ipam"]["ranges"] = json!([[{ "subnet": "10.244.1.0/24" }]]);
    let list = json!({ "cniVersion": "0.4.0", "name": "kindnet", "plugins": [plugin] });
    host.write(KINDNET, &list);
}

/// The files of Multus' module.
struct Examples {
    root: PathBuf,
}

impl Examples {
    fn find() -> Examples {
        let multus = std::env::var_os("MULTUS").expect("MULTUS: run scripts/test --only api");
        let root = Path::new(&multus).parent().unwrap().to_owned();
        Examples { root }
    }

    /// A release of Multus may bring more.
    fn are_all_known(&self) {
        let mut files = BTreeSet::new();
        let mut folders = vec![self.root.join("examples"), self.root.join("e2e")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                match entry.path() {
                    path if path.is_dir() => folders.push(path),
                    path => drop(
                        files.insert(path.strip_prefix(&self.root).unwrap().display().to_string()),
                    ),
                }
            }
        }
        assert!(files.len() > 20, "{files:?}");
        let known: Vec<&str> = SCENARIOS.into_iter().flatten().copied().collect();
        for file in &files {
            let ends = |(ending, _): &(&str, &str)| file.ends_with(ending);
            let is_left_out = NOTHING_TO_ATTACH.iter().any(ends);
            assert!(
                is_left_out != known.contains(&file.as_str()),
                "{file} is compared, or has a reason against it"
            );
        }
    }

    /// The objects of a file, with its placeholders filled in.
    fn objects(&self, file: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.root.join(file)).unwrap();
        let text = text.replace(VERSION.0, VERSION.1);
        assert!(!text.contains("{{"), "{file} has another placeholder");
        let documents = format!("\n{text}").replace("\n---\n", "\0");
        let documents = documents.split('\0').filter(|it| !it.trim().is_empty());
        documents
            .map(|document| serde_norway::from_str(document).unwrap())
            .filter(|object: &Value| !object.is_null())
            .collect()
    }
}

/// What came of an ADD.
#[derive(Debug)]
#[allow(dead_code, reason = "shown where two differ")]
struct Outcome {
    /// What the pod has, if the ADD succeeded.
    attached: Option<String>,
    said: String,
}

/// What an example wants of a node, and its pods.
struct Scenario<'a> {
    lab: &'a Lab,
    definitions: Vec<Value>,
    pods: Vec<Value>,
    /// Files in the runtime's directory.
    files: Vec<(String, Value)>,
    /// Keys of Multus' configuration.
    keys: Map<String, Value>,
}

impl Scenario<'_> {
    fn of(lab: &Lab, objects: Vec<Value>) -> Scenario<'_> {
        let mut scenario = Scenario {
            lab,
            definitions: Vec::new(),
            pods: Vec::new(),
            files: Vec::new(),
            keys: Map::new(),
        };
        for object in objects {
            match object["kind"].as_str().unwrap() {
                "NetworkAttachmentDefinition" => scenario.definitions.push(object),
                "Pod" => scenario.pods.push(object),
                "Deployment" | "DaemonSet" => {
                    let mut pod = object["spec"]["template"].clone();
                    pod["metadata"]["name"] = object["metadata"]["name"].clone();
                    scenario.pods.push(pod);
                }
                "ConfigMap" => scenario.read(&object["data"]),
                // What the pod asks of kubelet, who is not here.
                "ResourceClaimTemplate" => {}
                other => panic!("what to do with a {other}?"),
            }
        }
        scenario
    }

    /// The files that a script writes with `cat`, and what Multus' daemon is told.
    fn read(&mut self, data: &Value) {
        if let Some(daemon) = data["daemon-config.json"].as_str() {
            let daemon: Value = serde_json::from_str(daemon).unwrap();
            let key = "auxiliaryCNIChainName";
            self.keys.insert(key.to_owned(), daemon[key].clone());
        }
        let Some(script) = data["setup.sh"].as_str() else {
            return;
        };
        let (_, name) = script.split_once("DEFAULT_NETWORK_CNI_NAME=\"").unwrap();
        let (name, _) = name.split_once('"').unwrap();
        let (_, file) = script
            .split_once("cat <<EOF > /host/etc/cni/net.d/")
            .unwrap();
        let (path, text) = file.split_once('\n').unwrap();
        let (text, _) = text.split_once("\nEOF").unwrap();
        let path = path.replace("${DEFAULT_NETWORK_CNI_NAME}", name);
        self.files.push((path, serde_json::from_str(text).unwrap()));
    }

    fn prepare(&self, host: &Host) {
        let mut conf = multus_conf();
        conf["clusterNetwork"] = json!(KINDNET);
        conf.as_object_mut().unwrap().extend(self.keys.clone());
        host.write(MULTUS_CONF, &conf);
        for (path, value) in &self.files {
            host.write(&format!("/etc/cni/net.d/{path}"), value);
        }
        for definition in &self.definitions {
            self.lab.admin.create(&definitions(), definition);
        }
    }

    fn clear(&self, host: &Host) {
        for (path, _) in &self.files {
            let (exit, out) = host.shell(&format!("rm /etc/cni/net.d/{path}"));
            assert_eq!(exit, Some(0), "{out}");
        }
        for definition in &self.definitions {
            let name = definition["metadata"]["name"].as_str().unwrap();
            self.lab.admin.delete(&format!("{}/{name}", definitions()));
        }
    }

    /// Attaches each pod by whatever is installed, and says what it got.
    fn attach(&self, host: &Host) -> Vec<(String, Outcome)> {
        self.pods
            .iter()
            .map(|pod| self.attach_one(host, pod))
            .collect()
    }

    fn attach_one(&self, host: &Host, pod: &Value) -> (String, Outcome) {
        let name = pod["metadata"]["name"].as_str().unwrap();
        let mut pod = pod.clone();
        pod["spec"]["nodeName"] = json!(self.lab.node);
        // This API server allows no privileged ones, and no network asks.
        for container in pod["spec"]["containers"].as_array_mut().unwrap() {
            container.as_object_mut().unwrap().remove("securityContext");
        }
        let created = self.lab.admin.create(&pods(), &pod);
        host.sandbox(name, created["metadata"]["uid"].as_str().unwrap());
        let (exit, said) = host.try_cni("add", name);
        let attached = (exit == Some(0)).then(|| self.seen(&created).to_string());
        // Multus 4.3 cannot detach a list that a file holds.
        host.try_cni("del", name);
        host.forget(name);
        self.lab.admin.delete(&format!("{}/{name}", pods()));
        // The next one gets the same addresses.
        host.shell("rm -rf /var/lib/cni");
        (name.to_owned(), Outcome { attached, said })
    }

    /// What the kernel shows in the pod, and what the cluster was told.
    fn seen(&self, pod: &Value) -> Value {
        let name = pod["metadata"]["name"].as_str().unwrap();
        let netns = format!("{NAMESPACE}-{name}");
        let asked = pod["metadata"]["annotations"][NETWORKS].as_str();
        let asked = asked.unwrap_or_default();
        let links: Vec<Value> = shown(&netns, "-details address show")
            .iter()
            .map(|link| {
                let addresses = link["addr_info"].as_array().unwrap().iter();
                let addresses = addresses.filter(|it| it["scope"] == "global");
                let mac = link["address"].as_str().unwrap_or_default();
                json!({
                    "name": link["ifname"], "kind": link["linkinfo"]["info_kind"],
                    "up": link["flags"].as_array().unwrap().contains(&json!("UP")),
                    "addresses": addresses.map(|it| json!([it["local"], it["prefixlen"]])).collect::<Vec<_>>(),
                    "mac": Some(mac).filter(|mac| asked.contains(mac)),
                })
            })
            .collect();
        let path = format!("{}/{name}", pods());
        let told = self.lab.admin.get(&path).unwrap();
        let told = told["metadata"]["annotations"][STATUS].as_str().unwrap();
        let told: Vec<Value> = serde_json::from_str(told).unwrap();
        let told = told.iter().map(|entry| {
            json!([
                entry["name"],
                entry["interface"],
                entry["ips"],
                entry["default"] == true
            ])
        });
        let filter = [
            "netns",
            "exec",
            &netns,
            "cat",
            "/proc/sys/net/ipv4/conf/eth0/arp_filter",
        ];
        json!({
            "links": links, "routes": shown(&netns, "route show"), "status": told.collect::<Vec<_>>(),
            "arp_filter": output(&filter),
        })
    }
}

fn definitions() -> String {
    format!("/apis/k8s.cni.cncf.io/v1/namespaces/{NAMESPACE}/network-attachment-definitions")
}

fn pods() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/pods")
}

fn shown(netns: &str, words: &str) -> Vec<Value> {
    let words: Vec<&str> = words.split(' ').collect();
    let shown = output(&[&["-n", netns, "-json"], &words[..]].concat());
    serde_json::from_str(&shown).unwrap()
}

fn output(words: &[&str]) -> String {
    let output = Command::new("ip").args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The interfaces that the examples build on.
struct Masters;

impl Masters {
    fn new() -> Masters {
        for link in ["eth0", "eth1"] {
            let peer = format!("{link}-peer");
            ip(&["link", "add", link, "type", "veth", "peer", "name", &peer]);
            ip(&["link", "set", link, "up"]);
            ip(&["link", "set", &peer, "up"]);
        }
        Masters
    }
}

impl Drop for Masters {
    fn drop(&mut self) {
        for link in ["eth0", "eth1", "testnet0"] {
            let _ = Command::new("ip").args(["link", "del", link]).output();
        }
    }
}
