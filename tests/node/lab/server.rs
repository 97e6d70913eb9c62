//! The control plane, once for all nodes: etcd, API server, controller-manager, scheduler; and the
//! network between it and the nodes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use http::Method;
use serde_json::Value;

use super::{Admin, within};

/// How many nodes there can be.
const NODES: u32 = 60;
const BRIDGE: &str = "nodes0";
/// Where pods find the API server: the service `kubernetes`, which no kube-proxy makes here.
const SERVICE: &str = "10.96.0.1";

/// The control plane, with the manifests of `deploy/` applied but those that each node has of its
/// own.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) dir: PathBuf,
}

impl Server {
    /// The one that all tests share.
    pub(crate) fn get() -> &'static Server {
        static SERVER: OnceLock<Option<Server>> = OnceLock::new();
        // One that does not start fails each test at once, not each after its own attempt.
        let server = SERVER.get_or_init(|| std::panic::catch_unwind(Server::start).ok());
        server.as_ref().expect("the control plane did not start")
    }

    fn start() -> Server {
        for arguments in [
            format!("link add {BRIDGE} type bridge"),
            format!("address add 10.255.0.1/16 dev {BRIDGE}"),
            format!("link set {BRIDGE} up"),
            format!("address add {SERVICE}/32 dev lo"),
        ] {
            ip(&arguments);
        }
        let dir = PathBuf::from(format!("/run/jackfield/cluster-{}", std::process::id()));
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "TERM"])
            .arg(root.join("tests/api/cluster/run"))
            .arg(&dir)
            .args(["443", "2379", "2380"])
            .env("NODES", NODES.to_string())
            .stdin(Stdio::null());
        // The signal comes when the thread ends that started it: this one never does.
        std::thread::spawn(move || {
            let mut server = command.spawn().expect("setpriv of util-linux");
            let _ = server.wait();
            loop {
                std::thread::park();
            }
        });
        let server = Server { port: 443, dir };
        let certificate = server.dir.join("pki/apiserver.crt");
        let patience = Duration::from_secs(120);
        within(patience, "the API server has a certificate", || {
            certificate.exists()
        });
        let admin = Admin::new(&server, "admin");
        within(patience, "the API server is ready", || {
            admin.ready().is_ok()
        });
        server.apply(&root.join("deploy/crds"));
        server.apply(&root.join("deploy"));
        server
    }

    /// How the tests reach it.
    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// How nodes and pods reach it.
    pub(crate) fn url_of_nodes() -> String {
        format!("https://{SERVICE}:443")
    }

    /// The certificate that it shows.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.dir.join("pki/apiserver.crt")
    }

    /// Joins the network namespace of a process to the nodes' network, as `uplink0` in there.
    pub(crate) fn join(number: u32, process: u32) {
        let end = format!("node{number}");
        ip(&format!(
            "link add {end} type veth peer name uplink0 netns {process}"
        ));
        ip(&format!("link set {end} master {BRIDGE} up"));
    }

    fn apply(&self, folder: &Path) {
        let admin = Admin::new(self, "admin");
        let mut files: Vec<PathBuf> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
            .collect();
        files.sort();
        for object in files.iter().flat_map(|file| documents(file)) {
            if let Some(collection) = collection(&object) {
                within(Duration::from_secs(20), "deploy/ is applied", || {
                    admin
                        .request(Method::POST, collection, "application/json", Some(&object))
                        .is_ok()
                });
            }
        }
    }
}

/// The objects of a file of manifests.
pub(super) fn documents(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    let documents = text.split("\n---\n");
    documents
        .map(|document| serde_saphyr::from_str(document).unwrap())
        .collect()
}

/// Where objects of this kind go; those that each node gets for itself go nowhere yet.
fn collection(object: &Value) -> Option<&'static str> {
    Some(match object["kind"].as_str().unwrap() {
        "ServiceAccount" => "/api/v1/namespaces/kube-system/serviceaccounts",
        "ClusterRole" => "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "ClusterRoleBinding" => "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "CustomResourceDefinition" => "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "ValidatingAdmissionPolicy" => {
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
        }
        "ValidatingAdmissionPolicyBinding" => {
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
        }
        // Each node has its own; the others are for kubectl and for OpenShift.
        "ConfigMap" | "DaemonSet" | "Kustomization" | "SecurityContextConstraints" => return None,
        other => panic!("deploy/ has a {other}: say where it goes"),
    })
}

#[track_caller]
fn ip(arguments: &str) {
    let status = Command::new("ip")
        .args(arguments.split(' '))
        .status()
        .unwrap();
    assert!(status.success(), "ip {arguments}");
}
