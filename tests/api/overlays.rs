//! `deploy/` under names that an administrator gave it, as the real kustomize makes them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::lab::{Admin, Server, manifests, token};
use crate::rights::refused::Victim;

/// An overlay, and where it puts the agent's account.
struct Overlay {
    kustomization: &'static str,
    namespace: &'static str,
    account: &'static str,
}

const OVERLAYS: [Overlay; 4] = [
    Overlay {
        kustomization: "",
        namespace: "kube-system",
        account: "jackfield-agent",
    },
    Overlay {
        kustomization: "namespace: networking",
        namespace: "networking",
        account: "jackfield-agent",
    },
    Overlay {
        kustomization: "namePrefix: edge-\nnameSuffix: -b",
        namespace: "kube-system",
        account: "edge-jackfield-agent-b",
    },
    Overlay {
        kustomization: r#"
namespace: networking
namePrefix: edge-
patches:
  - target: {kind: ServiceAccount}
    patch: '[{"op": "replace", "path": "/metadata/name", "value": "patching"}]'
    options: {allowNameChange: true}
"#,
        namespace: "networking",
        account: "edge-patching",
    },
];

/// The objects that kustomize makes of `deploy/` with more in an overlay's kustomization.
fn built(kustomization: &str) -> Vec<Value> {
    let dir = tempfile::tempdir().unwrap();
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    // kustomize takes relative paths alone.
    let copied = Command::new("cp")
        .arg("-r")
        .args([&deploy, &dir.path().join("deploy")])
        .status();
    assert!(copied.unwrap().success());
    let overlay = dir.path().join("overlay");
    fs::create_dir(&overlay).unwrap();
    let text = format!("resources: [../deploy]\n{kustomization}\n");
    fs::write(overlay.join("kustomization.yaml"), text).unwrap();
    let program = std::env::var("KUSTOMIZE").expect("KUSTOMIZE: run scripts/test --only api");
    let child = Command::new(program)
        .arg("build")
        .arg(&overlay)
        .stdout(Stdio::piped())
        .spawn();
    let output = child.unwrap().wait_with_output().unwrap();
    assert!(output.status.success(), "{kustomization}");
    manifests::of_text(&String::from_utf8(output.stdout).unwrap())
}

/// Without the policies an agent writes to every node's pods; with them it does not, whatever an
/// overlay calls its account and the policies.
#[test]
fn an_agent_is_confined_to_its_node_whatever_an_overlay_calls_it() {
    let server = Server::with_kinds_alone();
    let admin = Admin::new(&server, "admin");
    let namespaces = "/api/v1/namespaces";
    admin.create(namespaces, &json!({"metadata": {"name": "networking"}}));
    for (number, overlay) in OVERLAYS.iter().enumerate() {
        let Overlay {
            kustomization,
            namespace,
            account,
        } = overlay;
        let is_policy = |object: &Value| {
            let kind = object["kind"].as_str().unwrap();
            kind.starts_with("ValidatingAdmissionPolicy")
        };
        let (policies, rest): (Vec<_>, Vec<_>) =
            built(kustomization).into_iter().partition(is_policy);
        assert_eq!((policies.len(), rest.len()), (6, 5), "{kustomization}");
        server.apply(&rest);
        server.wait_for_no_policies(namespace, account);
        server.apply(&policies);
        server.wait_for_policies(namespace, account);

        let pods = format!("pods-{number}");
        admin.create(namespaces, &json!({"metadata": {"name": pods}}));
        let node = format!("node-{number}");
        let victim = Victim::new(&admin, &pods, &node);
        let agent = token::of_agent(&admin, namespace, account, &node);
        let agent = Admin::new(&server, &agent);
        victim.takes(&agent);
        victim.refuses(&agent, namespace, account);
        server.delete(&policies);
        server.delete(&rest);
    }
}
