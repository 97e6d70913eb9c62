//! A machine: processes, mounts and network of its own, and a disk that outlives them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::{Server, within};

/// A node's machine, running or not.
pub(crate) struct Machine {
    /// The node's name in the cluster.
    pub(crate) name: String,
    number: u32,
    dir: TempDir,
    running: Option<Running>,
}

struct Running {
    unshare: Child,
    /// The machine's PID 1, as it is seen from here.
    init: u32,
}

impl Machine {
    /// A machine that was never started.
    pub(crate) fn new(server: &Server) -> Machine {
        static MACHINES: AtomicU32 = AtomicU32::new(1);
        let number = MACHINES.fetch_add(1, Ordering::Relaxed);
        let name = format!("node-{number}");
        // Short: sockets lie below, whose paths have 107 bytes.
        let dir = tempfile::Builder::new().prefix("jf-").tempdir().unwrap();
        let certificate = dir.path().join("ca.crt");
        fs::copy(server.certificate(), &certificate).unwrap();
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "clusters": [{"name": "a", "cluster": {
                "server": Server::url_of_nodes(), "certificate-authority": certificate}}],
            "users": [{"name": "a", "user": {"token": name}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}]});
        fs::write(
            dir.path().join("kubelet.kubeconfig"),
            kubeconfig.to_string(),
        )
        .unwrap();
        Machine {
            name,
            number,
            dir,
            running: None,
        }
    }

    /// A path below the machine's own folder: `disk/…` is what outlives a reboot, `run/…` its /run,
    /// `log/…` what its daemons say.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().join(relative)
    }

    /// Writes a file, whole or not at all.
    pub(crate) fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let new = path.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, path).unwrap();
    }

    /// Starts it; kubelet and containerd run when this is done.
    pub(crate) fn boot(&mut self) {
        assert!(self.running.is_none());
        let init = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node/machine/init");
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.path("init.log"))
            .unwrap();
        let mut unshare = Command::new("unshare")
            .args([
                "--mount",
                "--net",
                "--pid",
                "--uts",
                "--ipc",
                "--fork",
                "--kill-child",
                "--mount-proc",
            ])
            .arg(init)
            .arg(self.dir.path())
            .arg(&self.name)
            .arg(format!("10.255.1.{}", self.number))
            .env_clear()
            .envs(
                ["PATH", "HOME", "NODE_BIN", "CNI_BIN", "IMAGES"]
                    .map(|name| (name, variable(name))),
            )
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let children = format!("/proc/{0}/task/{0}/children", unshare.id());
        let mut init = None;
        within(Duration::from_secs(10), "unshare has a child", || {
            init = fs::read_to_string(&children).unwrap().trim().parse().ok();
            init.is_some()
        });
        let init = init.unwrap();
        Server::join(self.number, init);
        let up = self.path("up");
        within(Duration::from_secs(180), "the machine is up", || {
            let log = || fs::read_to_string(self.path("init.log")).unwrap();
            assert!(unshare.try_wait().unwrap().is_none(), "it ended: {}", log());
            up.exists()
        });
        self.running = Some(Running { unshare, init });
    }

    /// Ends all of its processes at once, and with them its mounts and its network.
    pub(crate) fn crash(&mut self) {
        let Some(mut running) = self.running.take() else {
            return;
        };
        signal(running.init, "KILL");
        running.unshare.wait().unwrap();
        fs::remove_file(self.path("up")).unwrap();
        self.remove_cgroups();
    }

    /// Ends one of its daemons; it is started again at once.
    pub(crate) fn restart(&self, daemon: &str) {
        let pid = fs::read_to_string(self.path("pid").join(daemon)).unwrap();
        self.run(&["kill", "-KILL", pid.trim()]);
    }

    /// Ends one of its daemons, until [`Machine::resume`].
    pub(crate) fn hold(&self, daemon: &str) {
        fs::write(self.path("hold").join(daemon), "").unwrap();
        self.restart(daemon);
    }

    /// Starts a daemon again.
    pub(crate) fn resume(&self, daemon: &str) {
        fs::remove_file(self.path("hold").join(daemon)).unwrap();
    }

    /// Runs a command on it; what it says.
    #[track_caller]
    pub(crate) fn run(&self, command: &[&str]) -> String {
        let (succeeded, said) = self.try_run(command);
        assert!(succeeded, "{command:?}: {said}");
        said
    }

    /// Runs a command on it: whether it succeeded, and what it said, on stdout and stderr.
    pub(crate) fn try_run(&self, command: &[&str]) -> (bool, String) {
        let init = self.running.as_ref().unwrap().init.to_string();
        let path = format!("{}:{}", variable("NODE_BIN"), variable("PATH"));
        let output = Command::new("nsenter")
            .args([
                "--target", &init, "--mount", "--net", "--pid", "--uts", "--ipc", "--",
            ])
            .args(command)
            .env("PATH", path)
            .current_dir("/")
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said = text(&output.stdout) + &text(&output.stderr);
        (output.status.success(), said)
    }

    /// Its cgroups are the machine's below: nobody else takes them away.
    fn remove_cgroups(&self) {
        let dir = self.dir.path().file_name().unwrap().display();
        let group = format!("jackfield-{dir}");
        for hierarchy in fs::read_dir("/sys/fs/cgroup").unwrap() {
            let of_node = hierarchy.unwrap().path().join(&group);
            if of_node.is_dir() {
                remove_groups(&of_node);
            }
        }
        let of_node = Path::new("/sys/fs/cgroup").join(&group);
        if of_node.is_dir() {
            remove_groups(&of_node);
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // What a reader of the failure wants first.
            for log in [
                "init.log",
                "log/kubelet",
                "log/containerd",
                "disk/var/log/jackfield",
            ] {
                let text = fs::read_to_string(self.path(log)).unwrap_or_default();
                let lines: Vec<&str> = text.lines().collect();
                let last = lines
                    .get(lines.len().saturating_sub(40)..)
                    .unwrap_or(&lines);
                eprintln!("== {} {log}\n{}", self.name, last.join("\n"));
            }
            if std::env::var_os("KEEP").is_some() {
                eprintln!("== kept, and waiting: {}", self.dir.path().display());
                std::thread::sleep(Duration::from_secs(3600));
            }
        }
        self.crash();
    }
}

/// A group goes when those below it are gone, and those when their processes are.
fn remove_groups(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_groups(&entry.path());
        }
    }
    for _ in 0..50 {
        if fs::remove_dir(group).is_ok() || !group.exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(process: u32, signal: &str) {
    let status = Command::new("kill")
        .args(["-s", signal, &process.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name}: run scripts/test --only node"))
}
