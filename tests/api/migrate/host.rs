//! A machine's own directories: `/etc`, `/opt`, `/var/lib` and `/usr/local/sbin` in a mount
//! namespace of their own, so that commands run as they are written.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::lab::{Lab, binary, cni_bin, eventually};

/// Makes the directories and stays, so that the namespace does.
const HOLD: &str = r#"
set -e
mkdir -p "$1"/etc "$1"/opt/cni/bin "$1"/lib "$1"/sbin
cp -a /etc/. "$1"/etc/
mkdir -p "$1"/etc/cni/net.d
mount --bind "$1"/etc /etc
mount --bind "$1"/opt /opt
mount --bind "$1"/lib /var/lib
mount --bind "$1"/sbin /usr/local/sbin
touch "$1"/ready
exec sleep infinity
"#;

/// The machine; it ends with its test.
pub(super) struct Host {
    holder: Child,
    dir: PathBuf,
    namespace: String,
    node: String,
    uids: Mutex<HashMap<String, String>>,
}

impl Host {
    /// A machine with the reference plugins and Multus, beside the API server.
    pub(super) fn new(lab: &Lab) -> Host {
        let dir = lab.path("host");
        let holder = Command::new("setpriv")
            .args([
                "--pdeathsig",
                "KILL",
                "unshare",
                "--mount",
                "--propagation",
                "slave",
            ])
            .args(["sh", "-c", HOLD, "hold"])
            .arg(&dir)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        eventually("the machine's directories", || dir.join("ready").exists());
        let host = Host {
            holder,
            dir,
            namespace: lab.namespace.clone(),
            node: lab.node.clone(),
            uids: Mutex::default(),
        };
        let bin = host.dir.join("opt/cni/bin");
        for plugin in fs::read_dir(cni_bin()).unwrap().flatten() {
            if plugin.path().is_file() {
                fs::copy(plugin.path(), bin.join(plugin.file_name())).unwrap();
            }
        }
        let multus = std::env::var_os("MULTUS").expect("MULTUS: run scripts/test --only api");
        let passthru = Path::new(&multus).with_file_name("passthru");
        fs::copy(multus, bin.join("multus")).unwrap();
        fs::copy(passthru, bin.join("passthru")).unwrap();
        fs::create_dir_all(host.dir.join("checkout/target")).unwrap();
        fs::copy(binary(), host.dir.join("checkout/target/jackfield")).unwrap();
        host
    }

    /// The same for pods of another namespace.
    pub(super) fn in_namespace(mut self, namespace: &str) -> Host {
        namespace.clone_into(&mut self.namespace);
        self
    }

    /// Where this process finds a path of the machine's.
    fn here(&self, path: &str) -> PathBuf {
        match path.strip_prefix("/var/lib") {
            Some(rest) => self.dir.join("lib").join(rest.trim_start_matches('/')),
            None => self.dir.join(path.trim_start_matches('/')),
        }
    }

    /// Writes a file of the machine's.
    pub(super) fn write(&self, path: &str, value: &Value) {
        let path = self.here(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value.to_string()).unwrap();
    }

    /// A bridge of this machine's alone, whose addresses are leased in the usual place. It is
    /// there before its first port and keeps its own MAC, which the plugin's CHECK compares.
    pub(super) fn bridge(&self, name: &str, subnet: &str) -> Value {
        let link = self.link(name);
        ip(&[
            "link",
            "add",
            &link,
            "address",
            "02:00:00:00:0b:01",
            "type",
            "bridge",
        ]);
        json!({ "type": "bridge", "bridge": link,
                "ipam": { "type": "host-local", "ranges": [[{ "subnet": subnet }]] } })
    }

    fn link(&self, name: &str) -> String {
        format!(
            "{}-{}",
            self.namespace.trim_start_matches('t'),
            &name[name.len() - 1..]
        )
    }

    /// A pod's network namespace.
    pub(super) fn sandbox(&self, pod: &str, uid: &str) {
        let netns = format!("{}-{pod}", self.namespace);
        ip(&["netns", "add", &netns]);
        self.uids
            .lock()
            .unwrap()
            .insert(pod.to_owned(), uid.to_owned());
    }

    /// It vanishes.
    pub(super) fn forget(&self, pod: &str) {
        ip(&["netns", "del", &format!("{}-{pod}", self.namespace)]);
    }

    /// What the runtime does with a pod, by the first configuration of its directory.
    #[track_caller]
    pub(super) fn cni(&self, verb: &str, pod: &str) {
        let (exit, out) = self.try_cni(verb, pod);
        assert_eq!(exit, Some(0), "{verb} {pod}: {out}");
    }

    /// The same, whatever becomes of it.
    pub(super) fn try_cni(&self, verb: &str, pod: &str) -> (Option<i32>, String) {
        let uid = self.uids.lock().unwrap()[pod].clone();
        let cnitool = std::env::var("CNITOOL").expect("CNITOOL: run scripts/test --only api");
        let args = format!(
            "IgnoreUnknown=1;K8S_POD_NAMESPACE={};K8S_POD_NAME={pod};K8S_POD_UID={uid}",
            self.namespace
        );
        let script = format!(
            "NETCONFPATH=/etc/cni/net.d CNI_PATH=/opt/cni/bin CNI_IFNAME=eth0 CNI_ARGS='{args}' \
             {cnitool} {verb} multus-cni-network /run/netns/{}-{pod}",
            self.namespace
        );
        self.shell(&script)
    }

    /// Commands, as somebody types them on the machine: exit code and all that they printed.
    pub(super) fn shell(&self, script: &str) -> (Option<i32>, String) {
        let pid = self.holder.id().to_string();
        let there = self.dir.join("checkout").display().to_string();
        let output = Command::new("nsenter")
            .args([
                "--target", &pid, "--mount", "--", "bash", "-euo", "pipefail", "-c",
            ])
            .arg(format!("cd {there}\n{script}"))
            .env("NODE_NAME", &self.node)
            .env("PATH", "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code(),
            text(&output.stdout) + &text(&output.stderr),
        )
    }

    /// Every file below a directory, by its path in there, with its bytes.
    pub(super) fn files(&self, dir: &str) -> BTreeMap<String, Vec<u8>> {
        let root = self.here(dir);
        let mut found = BTreeMap::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = path.strip_prefix(&root).unwrap().display().to_string();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
        found
    }

    /// How many addresses are taken.
    pub(super) fn leases(&self) -> usize {
        let files = self.files("/var/lib/cni/networks");
        let names = files
            .keys()
            .filter_map(|name| Path::new(name).file_name()?.to_str());
        names
            .filter(|name| name.parse::<std::net::IpAddr>().is_ok())
            .count()
    }

    /// How many interfaces are on the machine's bridges.
    pub(super) fn ports(&self) -> usize {
        let bridges = ["eth0", "net-a", "net-b"].map(|name| self.link(name));
        let ports = |bridge: &String| {
            let show = ["-oneline", "link", "show", "master", bridge];
            let output = Command::new("ip").args(show).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            output.stdout.iter().filter(|byte| **byte == b'\n').count()
        };
        bridges.iter().map(ports).sum()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
        for name in ["eth0", "net-a", "net-b"] {
            // Not every test has all of them.
            let link = self.link(name);
            let _ = Command::new("ip").args(["link", "del", &link]).output();
        }
    }
}

pub(super) fn ip(words: &[&str]) {
    let done = Command::new("ip").args(words).status().unwrap();
    assert!(done.success(), "ip {words:?}");
}
