//! What is in `deploy/`: the chart and the plain manifests are the same objects, and the API server
//! takes them.

use std::path::{Path, PathBuf};
use std::process::Command;

use http::Method;
use serde_json::{Value, json};

use crate::lab::{Admin, Server};

/// Runs a program of the node's: whether it succeeded, stdout, stderr.
fn run(program: &str, arguments: &[&str]) -> (bool, String, String) {
    let needed = |name| std::env::var(name).expect("run scripts/test --only node");
    let program = match program {
        "helm" => PathBuf::from(needed("HELM")),
        program => Path::new(&needed("NODE_BIN")).join(program),
    };
    let root = env!("CARGO_MANIFEST_DIR");
    // What they keep goes with it.
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .env("HOME", home.path())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.success(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[track_caller]
fn helm(arguments: &[&str]) -> String {
    // What Kubernetes it is for, where it asks no cluster.
    let arguments = &[arguments, &["--kube-version", "1.36.0"]].concat()[..];
    let (succeeded, out, err) = run("helm", arguments);
    assert!(succeeded, "helm {arguments:?}: {out}{err}");
    out
}

/// What the chart makes of these values.
#[track_caller]
pub(crate) fn rendered(values: &[&str]) -> Vec<Value> {
    let mut arguments = vec![
        "template",
        "jackfield",
        "deploy/chart",
        "--namespace",
        "kube-system",
    ];
    arguments.extend(values);
    objects(&helm(&arguments))
}

/// The objects of YAML documents, with JSON within them read as well: by kind and name.
fn objects(text: &str) -> Vec<Value> {
    let documents = text.split("\n---\n").filter(|it| it.contains("kind:"));
    let mut objects: Vec<Value> = documents
        .map(|document| {
            let mut object: Value = serde_saphyr::from_str(document).unwrap();
            if let Some(conf) = object.pointer_mut("/data/conf.json") {
                *conf = serde_json::from_str(conf.as_str().unwrap()).unwrap();
            }
            object
        })
        .collect();
    objects.sort_by_key(|it| format!("{} {}", it["kind"], it["metadata"]["name"]));
    objects
}

fn plain() -> Vec<Value> {
    let (succeeded, out, err) = run("kubectl", &["kustomize", "deploy"]);
    assert!(succeeded, "{err}");
    objects(&out)
}

pub(crate) fn find<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    objects.iter().find(|it| it["kind"] == kind).unwrap()
}

fn admin() -> String {
    let kubeconfig: PathBuf = Server::get().dir.join("admin.kubeconfig");
    kubeconfig.display().to_string()
}

#[test]
fn the_chart_and_the_plain_manifests_are_the_same_objects() {
    let (chart, plain) = (rendered(&[]), plain());
    assert_eq!(chart.len(), plain.len());
    for (chart, plain) in chart.iter().zip(&plain) {
        assert_eq!(chart, plain);
    }
    assert_eq!(chart.len(), 11, "nothing is lost");
}

/// Neither its name nor its namespace takes the agent's account out of the policies.
#[test]
fn every_release_of_the_chart_confines_its_agent_alike() {
    let chart = "deploy/chart";
    let other = objects(&helm(&["template", "other", chart, "--namespace", "edge"]));
    let confining = |object: &&Value| {
        let kind = object["kind"].as_str().unwrap();
        kind == "ClusterRole" || kind.starts_with("ValidatingAdmissionPolicy")
    };
    let plain = plain();
    let (other_ones, plain_ones) = (
        other.iter().filter(confining),
        plain.iter().filter(confining),
    );
    assert!(other_ones.clone().eq(plain_ones), "{other:#?}");
    assert_eq!(other_ones.count(), 7);
    let account = &find(&other, "ServiceAccount")["metadata"];
    let subject = &find(&other, "ClusterRoleBinding")["subjects"][0];
    assert_eq!(subject["namespace"], "edge");
    for key in ["name", "namespace"] {
        assert_eq!(subject[key], account[key]);
    }
}

#[test]
fn the_chart_is_without_fault_and_refuses_values_that_mean_nothing() {
    let lint = helm(&["lint", "--strict", "deploy/chart"]);
    assert!(lint.contains("0 chart(s) failed"), "{lint}");
    for (value, named) in [
        ("conf.verify=maybe", "verify"),
        ("image.repository=", "repository"),
        ("image.digest=latest", "digest"),
        ("image=null", "image"),
        ("agent.metrics=null", "metrics"),
        ("confDir=etc/cni", "confDir"),
        ("agents.resources=1", "agents"),
        ("agent.metrics=9321", "metrics"),
        ("agent.metrics=everywhere:9321", "metrics"),
        ("agent.metrics=0.0.0.0:65536", "metrics"),
        ("conf.journalDir=/srv/journal", "journalDir"),
        ("conf.agentSocket=/run/other.sock", "agentSocket"),
        ("conf.manifestDir=/srv/cluster", "manifestDir"),
        ("conf.deadlines.add=soon", "add"),
        ("conf.statusNeedsAgent=maybe", "statusNeedsAgent"),
        ("migration.back=true", "back"),
        ("migration.force=true", "force"),
        ("migration.from=multus", "from"),
    ] {
        let (succeeded, _, said) = run("helm", &["template", "j", "deploy/chart", "--set", value]);
        assert!(!succeeded && said.contains(named), "{value}: {said}");
    }
}

#[test]
fn values_change_what_they_name_and_nothing_else() {
    let objects = rendered(&[
        "--set",
        "image.repository=registry.test/j,image.tag=v9,seLinuxType=spc_t,openShift=true",
        "--set",
        "confDir=/etc/cni/runtime,clusterConfDir=/etc/cni/net.d,conf.invalidAnnotation=fail",
    ]);
    assert_eq!(
        find(&objects, "ConfigMap")["data"]["conf.json"],
        json!({"invalidAnnotation": "fail"})
    );
    let pod = &find(&objects, "DaemonSet")["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["seLinuxOptions"]["type"], "spc_t");
    for container in pod["containers"].as_array().unwrap() {
        assert_eq!(container["image"], "registry.test/j:v9");
    }
    let install = &pod["containers"][1];
    let args: Vec<&str> = install["args"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let said = args.join(" ");
    for words in [
        "--conf-dir /etc/cni/runtime",
        "--cluster-conf-dir /etc/cni/net.d",
    ] {
        assert!(said.contains(words), "{said}");
    }
    let mounts = install["volumeMounts"].to_string();
    for path in [
        "/host/etc/cni/runtime",
        "/host/etc/cni/net.d",
        "/host/opt/cni/bin",
    ] {
        assert!(mounts.contains(path), "{mounts}");
    }
    find(&objects, "SecurityContextConstraints");
    let digest = format!("sha256:{:064}", 7);
    let pinned = rendered(&["--set", &format!("image.tag=v9,image.digest={digest}")]);
    assert_eq!(
        find(&pinned, "DaemonSet")["spec"]["template"]["spec"]["containers"][0]["image"],
        format!("ghcr.io/jackfield-cni/jackfield@{digest}")
    );
    let elsewhere = helm(&["template", "j", "deploy/chart", "--namespace", "networking"]);
    assert!(!elsewhere.contains("kube-system"), "{elsewhere}");
}

#[test]
fn a_chart_that_moves_nodes_gives_the_installer_what_a_rehearsal_reads() {
    let install = |values: &str| {
        let objects = rendered(&["--set", values]);
        let pod = find(&objects, "DaemonSet")["spec"]["template"]["spec"].clone();
        (pod["containers"][1].clone(), pod["volumes"].to_string())
    };
    let last = |container: &Value, count: usize| {
        let args = container["args"].as_array().unwrap();
        let last = &args[args.len() - count..];
        last.iter()
            .map(|it| it.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let (container, volumes) = install("migration.fromMultus=true");
    assert_eq!(last(&container, 1), ["--from-multus"]);
    assert_eq!(container["env"][0]["name"], "NODE_NAME");
    let mounts = container["volumeMounts"].to_string();
    for path in ["/var/lib/kubelet/device-plugins", "/var/lib/cni/multus"] {
        assert!(mounts.contains(path) && volumes.contains(path), "{mounts}");
    }
    let (container, _) = install("migration.fromMultus=true,migration.back=true");
    assert_eq!(last(&container, 2), ["--from-multus", "--back"]);
    let thick = "migration.fromMultus=true,migration.force=true,migration.daemonConfigMap=multus-daemon-config";
    let (container, volumes) = install(thick);
    assert_eq!(
        last(&container, 4),
        [
            "--from-multus",
            "--force",
            "--multus-daemon-config",
            "/etc/multus-daemon/daemon-config.json"
        ]
    );
    assert!(
        volumes.contains(r#"{"name":"multus-daemon-config"}"#),
        "{volumes}"
    );
}

#[test]
fn the_agents_metrics_can_be_served_to_others_and_its_probes_follow() {
    for (address, probed, port, is_open) in [
        ("0.0.0.0:9400", "127.0.0.1", 9400, true),
        ("[::]:9321", "::1", 9321, true),
        ("10.1.2.3:80", "10.1.2.3", 80, true),
        ("127.0.0.1:9322", "127.0.0.1", 9322, false),
    ] {
        let objects = rendered(&["--set", &format!("agent.metrics={address}")]);
        let pod = &find(&objects, "DaemonSet")["spec"]["template"]["spec"];
        let agent = &pod["containers"][0];
        let args = agent["args"].as_array().unwrap();
        assert_eq!(args[args.len() - 2..], [json!("--metrics"), json!(address)]);
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            let asked = &agent[probe]["httpGet"];
            assert_eq!(asked["host"], probed, "{probe}");
            assert_eq!(asked["port"], port, "{probe}");
        }
        let ports = json!([{ "name": "metrics", "containerPort": port }]);
        assert_eq!(agent.get("ports"), is_open.then_some(&ports), "{address}");
    }
}

/// What is said after an installation is what works.
#[test]
fn the_chart_says_how_it_is_removed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let notes = std::fs::read_to_string(root.join("deploy/chart/templates/NOTES.txt")).unwrap();
    let first = notes.find("first run `helm uninstall`").unwrap();
    let then = notes.find("{{ .Values.binDir }}/jackfield uninstall");
    assert!(then.unwrap() > first, "{notes}");
}

#[test]
fn the_api_server_takes_all_of_it_and_a_kind_that_is_there_stays_as_it_is() {
    let admin = admin();
    let dry = [
        "--kubeconfig",
        &admin,
        "apply",
        "--server-side",
        "--force-conflicts",
        "--dry-run=server",
    ];
    let (succeeded, out, err) = run("kubectl", &[&dry[..], &["-k", "deploy"]].concat());
    assert!(succeeded, "{err}");
    assert_eq!(out.lines().count(), 11, "{out}");
    let chart = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        chart.path(),
        helm(&[
            "template",
            "j",
            "deploy/chart",
            "--namespace",
            "kube-system",
        ]),
    )
    .unwrap();
    let file = chart.path().display().to_string();
    let (succeeded, out, err) = run("kubectl", &[&dry[..], &["-f", &file]].concat());
    assert!(succeeded, "{err}");
    assert_eq!(out.lines().count(), 11, "{out}");
    let (succeeded, _, err) = run(
        "kubectl",
        &["--kubeconfig", &admin, "create", "-f", "deploy/crds"],
    );
    assert!(
        !succeeded && err.matches("AlreadyExists").count() == 2,
        "{err}"
    );
}

#[test]
fn a_definition_that_cannot_be_json_is_refused_by_the_api_server() {
    let server = Server::get();
    let admin = Admin::new(server, "admin");
    let path = "/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions";
    let create = |name: &str, config: &str| {
        let object = json!({"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": name}, "spec": {"config": config}});
        admin.request(Method::POST, path, "application/json", Some(&object))
    };
    for (name, config) in [
        ("text", "bridge"),
        ("list", "[]"),
        ("torn", r#"{"type": "bridge""#),
    ] {
        let (code, said) = create(name, config).unwrap_err();
        assert!(
            code == 422 && said.contains("a JSON object in braces"),
            "{said}"
        );
    }
    let spaced = "\n { \"cniVersion\": \"1.0.0\", \"type\": \"bridge\" }\n";
    for (name, config) in [("spaced", spaced), ("on-the-node", "")] {
        create(name, config).unwrap();
    }
}
