//! etcd and kube-apiserver, once for all tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use super::{Admin, control_plane, manifests};

/// The API server, with the manifests of `deploy/` applied.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) dir: PathBuf,
}

impl Server {
    /// The one that all tests share.
    pub(crate) fn get() -> &'static Server {
        static SERVER: OnceLock<Option<Server>> = OnceLock::new();
        // One that does not start fails each test at once, not each after its own attempt.
        let start = || {
            let server = Server::start("api", "v1");
            server.apply_deploy();
            server
        };
        let server = SERVER.get_or_init(|| std::panic::catch_unwind(start).ok());
        server.as_ref().expect("the API server did not start")
    }

    /// Another one, for one test, whose definitions somebody else brought, in `version` alone.
    pub(crate) fn with_definitions_of(version: &str) -> &'static Server {
        let server = Server::start(version, version);
        server.apply_deploy();
        Box::leak(Box::new(server))
    }

    /// Another one, for one test, on which nothing of Jackfield's is but the kinds.
    pub(crate) fn with_kinds_alone() -> Server {
        Server::start("kinds", "v1")
    }

    fn start(name: &str, version: &str) -> Server {
        let [port, etcd, peer] = [(); 3].map(|()| super::port());
        let dir = PathBuf::from(format!("/run/jackfield/{name}-{}", std::process::id()));
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        control_plane::start(&dir, [port, etcd, peer], None);
        let server = Server { port, dir };
        server.wait();
        let mut kinds = manifests::of_folder(&root.join("deploy/crds"));
        for kind in &mut kinds {
            if kind["spec"]["names"]["kind"] == "NetworkAttachmentDefinition" {
                kind["spec"]["versions"][0]["name"] = version.into();
            }
        }
        server.apply(&kinds);
        server.wait_for_kind(&format!("{version}/network-attachment-definitions"));
        server.wait_for_kind("v1alpha1/ipamclaims");
        server
    }

    fn apply_deploy(&self) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        self.apply(&manifests::of_folder(&root.join("deploy")));
        self.wait_for_policies(super::SYSTEM, super::NAME);
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    fn wait(&self) {
        let until = Instant::now() + Duration::from_secs(180);
        let certificate = self.dir.join("pki/apiserver.crt");
        let mut last = None;
        loop {
            if certificate.exists() {
                let admin = Admin::new(self, "admin");
                // Which is made after the API server says that it is ready.
                let system = format!("/api/v1/namespaces/{}", super::SYSTEM);
                let answers = admin
                    .ready()
                    .and_then(|_| admin.request(Method::GET, &system, "", None));
                match answers {
                    Ok(_) => return,
                    Err(error) => last = Some(error),
                }
            }
            let log = fs::read_to_string(self.dir.join("kube-apiserver.log")).unwrap_or_default();
            assert!(
                Instant::now() < until,
                "the API server does not start: {last:?}\n{log}"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Creates the objects of manifests.
    pub(crate) fn apply(&self, objects: &[Value]) {
        let admin = Admin::new(self, "admin");
        for object in objects {
            if let Some(collection) = manifests::collection(object) {
                admin.create(&collection, object);
            }
        }
    }

    /// Deletes them.
    pub(crate) fn delete(&self, objects: &[Value]) {
        let admin = Admin::new(self, "admin");
        for object in objects {
            if let Some(collection) = manifests::collection(object) {
                let name = object["metadata"]["name"].as_str().unwrap();
                admin.delete(&format!("{collection}/{name}"));
            }
        }
    }

    /// A new kind answers 404 at first, then 429.
    pub(crate) fn wait_for_kind(&self, kind: &str) {
        let admin = Admin::new(self, "admin");
        let path = format!("/apis/k8s.cni.cncf.io/{kind}");
        super::eventually("the kind is served", || {
            admin.request(Method::GET, &path, "", None).is_ok()
        });
    }

    /// The requests of the agent on `node` so far, as `verb resource code`, reads and writes, but
    /// not the watches themselves and their first lists.
    pub(crate) fn requests(&self, node: &str) -> Vec<String> {
        let mut requests = self.audited(node);
        requests.retain(|request| !request.starts_with("watch ") && !request.starts_with("list "));
        requests
    }

    /// How many lists the agent on `node` has read.
    pub(crate) fn lists(&self, node: &str) -> usize {
        let requests = self.audited(node);
        let lists = requests
            .iter()
            .filter(|request| request.starts_with("list "));
        lists.count()
    }

    /// How those call themselves whose requests `are_meant`, each once.
    pub(crate) fn user_agents(&self, are_meant: impl Fn(&Value) -> bool) -> BTreeSet<String> {
        let log = fs::read_to_string(self.dir.join("audit.log")).unwrap();
        let entries = log
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        entries
            .filter(are_meant)
            .map(|entry| entry["userAgent"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// From now on a configuration may be as long as where others brought the kind.
    pub(crate) fn allow_long_configurations(&self) {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/network-attachment-definitions.k8s.cni.cncf.io";
        let admin = Admin::new(self, "admin");
        let mut versions = admin.get(path).unwrap()["spec"]["versions"].clone();
        let schema = "/0/schema/openAPIV3Schema/properties/spec/properties/config";
        let config = versions
            .pointer_mut(schema)
            .unwrap()
            .as_object_mut()
            .unwrap();
        config.remove("maxLength");
        config.remove("x-kubernetes-validations");
        admin.merge(path, &json!({"spec": {"versions": versions}}));
    }

    /// Whether a request in the audit log is one of the agent on `node`.
    pub(crate) fn is_by(entry: &Value, node: &str) -> bool {
        entry["user"]["extra"]["authentication.kubernetes.io/node-name"][0] == node
    }

    /// Everything that the audit log has of the agent on `node`.
    fn audited(&self, node: &str) -> Vec<String> {
        let log = fs::read_to_string(self.dir.join("audit.log")).unwrap();
        // The last line may be half written.
        let whole = log.rfind('\n').map_or("", |end| &log[..end]);
        let entries = whole
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let by = |entry: &Value| Server::is_by(entry, node);
        let requests = entries.filter(by).map(|entry| {
            let object = &entry["objectRef"];
            let sub = object["subresource"].as_str().map(|sub| format!("/{sub}"));
            format!(
                "{} {}{} {}",
                entry["verb"].as_str().unwrap(),
                object["resource"].as_str().unwrap_or("?"),
                sub.unwrap_or_default(),
                entry["responseStatus"]["code"],
            )
        });
        requests.collect()
    }
}
