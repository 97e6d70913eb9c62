//! The node that the pods come to, and what its runtime does besides ADD and DEL.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, RwLock, RwLockReadGuard};
use std::time::Instant;

use serde_json::{Value, json};

use super::calm::Calm;
use super::cluster::{ApiServer, Cluster, FOLDER, Folder};
use super::fault::DelegateFault;
use super::netns::Spare;
use super::report::Report;
use super::settings::Settings;
use crate::lab::{Lab, Outcome, Sandbox, Server, binary};

/// Where the small plugin is put, and what it writes and reads.
const SMALL: &str = include_str!("small");

/// Which of the two clusters there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Api,
    Folder,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Api => "api",
            Kind::Folder => "folder",
        }
    }
}

/// The node of a soak.
pub(super) struct Node {
    pub(super) lab: Lab,
    pub(super) kind: Kind,
    pub(super) settings: Settings,
    pub(super) report: Report,
    pub(super) calm: Calm,
    pub(super) spare: Spare,
    /// The containers that the runtime knows.
    listed: Mutex<BTreeSet<String>>,
    /// A runtime calls GC only while no ADD and no DEL is under way. Changes of running pods go on.
    collecting: RwLock<()>,
    next: AtomicU32,
    is_over: AtomicBool,
    until: Instant,
}

impl Node {
    /// Sets the node up. Its agent is not started.
    pub(super) fn new(kind: Kind, settings: Settings) -> Node {
        let mut lab = Lab::named(Server::get(), format!("soak-{}", kind.name()));
        for folder in ["bin", "faults", "leases"] {
            fs::create_dir(lab.path(folder)).unwrap();
        }
        let folder = lab.path("");
        let folder = folder.to_str().unwrap().trim_end_matches('/');
        let small = lab.path("bin/small");
        fs::write(&small, SMALL.replace("@LAB@", folder)).unwrap();
        fs::set_permissions(&small, fs::Permissions::from_mode(0o755)).unwrap();
        let cluster =
            json!({"cniVersion": "1.1.0", "name": "cluster", "plugins": [{"type": "small"}]});
        fs::write(lab.path("10-cluster.conflist"), cluster.to_string()).unwrap();
        lab.has_own_sysfs = false;
        lab.configure("cniVersion", json!("1.1.0"));
        lab.configure("binDir", json!(lab.path("bin")));
        // A call may wait for a delegate that hangs, and still have time.
        let deadlines = json!({"add": "60s", "del": "30s", "check": "30s", "gc": "30s",
                               "status": "15s", "delegate": "5s"});
        lab.configure("deadlines", deadlines);
        if kind == Kind::Folder {
            lab.configure("agentSocket", Value::Null);
            lab.configure("manifestDir", json!(lab.path(FOLDER)));
        }
        fs::write(lab.path("jackfield.conf"), lab.conf().to_string()).unwrap();
        let node = Node {
            lab,
            kind,
            settings,
            report: Report::new(),
            calm: Calm::default(),
            spare: Spare::default(),
            listed: Mutex::default(),
            collecting: RwLock::default(),
            next: AtomicU32::new(0),
            is_over: AtomicBool::new(false),
            until: Instant::now() + settings.time,
        };
        node.cluster().define();
        node
    }

    /// A user's way to the cluster.
    pub(super) fn cluster(&self) -> Box<dyn Cluster> {
        match self.kind {
            Kind::Api => Box::new(ApiServer::of(&self.lab)),
            Kind::Folder => Box::new(Folder::of(&self.lab)),
        }
    }

    /// The number of the next pod, as long as there is to be one.
    pub(super) fn next_pod(&self) -> Option<u32> {
        if self.is_over() {
            return None;
        }
        // Number 0 was there before all others.
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        if number >= self.settings.pods {
            self.end();
        }
        (number <= self.settings.pods).then_some(number)
    }

    /// Whether the pods that are there are the last ones.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || Instant::now() > self.until
    }

    /// No pod comes any more.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// The name that a container has in files, processes and namespaces.
    pub(super) fn container_id(&self, container: &str) -> String {
        format!("{}-{container}", self.lab.namespace)
    }

    /// No GC runs while somebody has this.
    pub(super) fn no_gc(&self) -> RwLockReadGuard<'_, ()> {
        self.collecting.read().unwrap()
    }

    /// From now on the runtime knows the container.
    pub(super) fn list(&self, container: &str) {
        let id = self.container_id(container);
        self.listed.lock().unwrap().insert(id);
    }

    /// The runtime forgets the container.
    pub(super) fn forget(&self, container: &str) {
        let id = self.container_id(container);
        self.listed.lock().unwrap().remove(&id);
    }

    /// STATUS, which must succeed.
    pub(super) fn status(&self) {
        let outcome = self.lab.call("STATUS", &NODE);
        if outcome.exit != Some(0) {
            self.report.finding(format!("a STATUS failed: {outcome}"));
        }
    }

    /// GC of everything that the runtime does not know.
    pub(super) fn gc(&self) -> Outcome {
        let _nothing_else = self.collecting.write().unwrap();
        let listed = self.listed.lock().unwrap();
        let listed = listed
            .iter()
            .map(|id| json!({"containerID": id, "ifname": "eth0"}));
        let mut conf = self.lab.conf().clone();
        conf["cni.dev/valid-attachments"] = listed.collect();
        self.lab.start_with("GC", &NODE, conf).wait()
    }

    /// `reconcile` of one pod, as a child.
    pub(super) fn reconcile(&self, pod: &str) -> Child {
        self.lab
            .on_the_node(&binary())
            .args(["reconcile", "--conf"])
            .arg(self.lab.path("jackfield.conf"))
            .arg("--cni-path")
            .arg(crate::lab::cni_bin())
            .args(["--pod", &format!("{}/{pod}", self.lab.namespace)])
            .env("CNI_CONTAINERID", self.container_id(pod))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Lets a delegate misbehave once.
    pub(super) fn arm(&self, container: &str, fault: &DelegateFault) {
        fs::write(self.armed(container, fault), format!("{}\n", fault.kind)).unwrap();
    }

    /// Lets it behave again. Returns whether it has misbehaved, and counts that.
    pub(super) fn disarm(&self, container: &str, fault: &DelegateFault) -> bool {
        let struck = fs::remove_file(self.armed(container, fault)).is_err();
        if struck {
            self.report.fault(fault.name());
        }
        struck
    }

    fn armed(&self, container: &str, fault: &DelegateFault) -> PathBuf {
        let id = self.container_id(container);
        let DelegateFault {
            verb, interface, ..
        } = fault;
        self.lab.path(&format!("faults/{id}.{interface}.{verb}"))
    }
}

/// A call that is about no pod.
const NODE: Sandbox<'static> = Sandbox {
    container: "node",
    pod: "",
    uid: "",
    annotations: None,
};
