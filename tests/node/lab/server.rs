//! The control plane, once for all nodes: etcd, API server, controller-manager, scheduler; and the
//! network between it and the nodes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use http::Method;

use super::{Admin, control_plane, manifests, within};

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
            // With a MAC of its own: else it takes the lowest of its ports' MACs whenever one joins or
            // leaves, and the nodes' connections hang until they have forgotten the previous one.
            format!("link add {BRIDGE} address 02:00:00:00:0b:01 type bridge"),
            format!("address add 10.255.0.1/16 dev {BRIDGE}"),
            format!("link set {BRIDGE} up"),
            format!("address add {SERVICE}/32 dev lo"),
        ] {
            ip(&arguments);
        }
        let dir = PathBuf::from(format!("/run/jackfield/cluster-{}", std::process::id()));
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        control_plane::start(&dir, [443, 2379, 2380], Some(NODES));
        let server = Server { port: 443, dir };
        let certificate = server.dir.join("pki/apiserver.crt");
        let patience = Duration::from_secs(180);
        within(patience, "the API server has a certificate", || {
            certificate.exists()
        });
        let admin = Admin::new(&server, "admin");
        within(patience, "the API server is ready", || {
            admin.ready().is_ok()
        });
        server.apply(&root.join("deploy/crds"));
        server.apply(&root.join("deploy"));
        // A new kind answers 404 at first, then 429.
        within(patience, "the kinds are served", || {
            ["v1/network-attachment-definitions", "v1alpha1/ipamclaims"]
                .iter()
                .all(|kind| {
                    let path = format!("/apis/k8s.cni.cncf.io/{kind}");
                    admin.request(Method::GET, &path, "", None).is_ok()
                })
        });
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
        // The kernel deletes the links of a machine that ended some time after its processes.
        let previous = Command::new("ip").args(["link", "del", &end]).output();
        previous.unwrap();
        // The machine keeps its MAC when it boots again.
        ip(&format!(
            "link add {end} type veth peer name uplink0 address 02:00:00:00:01:{number:02x} netns {process}"
        ));
        ip(&format!("link set {end} master {BRIDGE} up"));
    }

    fn apply(&self, folder: &Path) {
        let admin = Admin::new(self, "admin");
        for object in manifests::of_folder(folder) {
            // Each node has its own.
            if object["kind"] == "ConfigMap" || object["kind"] == "DaemonSet" {
                continue;
            }
            if let Some(collection) = manifests::collection(&object) {
                within(Duration::from_secs(180), "deploy/ is applied", || {
                    admin
                        .request(Method::POST, &collection, "application/json", Some(&object))
                        .is_ok()
                });
            }
        }
    }
}

#[track_caller]
fn ip(arguments: &str) {
    let status = Command::new("ip")
        .args(arguments.split(' '))
        .status()
        .unwrap();
    assert!(status.success(), "ip {arguments}");
}
