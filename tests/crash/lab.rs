//! One pod with three networks on one node: bridge and host-local as the cluster network, macvlan
//! with static addresses and the default route, and ptp with host-local.

#[path = "../netns/lab/plugins.rs"]
mod plugins;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::call::{Call, Verb};
use crate::leftovers::Holdings;
use crate::node::{self, ip};
use plugins::real_plugins;

const NETNS: &str = "pod";
/// The annotation of an ADD.
const FIRST: &str = r#"[{"name":"storage","ips":["10.20.0.5/24"],"default-route":["10.20.0.1"]},
      {"name":"management","interface":"mgmt0"}]"#;
/// The annotation after which storage goes, management gets another interface, and backup comes.
const OTHERS: &str = r#"[{"name":"backup"},{"name":"management","interface":"mgmt1"}]"#;
/// How long the kernel may take to end a network namespace that nobody has any more.
const NETNS_ENDS_WITHIN: Duration = Duration::from_secs(5);

/// The lab of the thread that set it up.
pub(crate) struct Lab {
    dir: TempDir,
    /// What the test itself writes: not part of the node.
    control: TempDir,
    container: String,
    before: Holdings,
    add_takes: Duration,
}

impl Lab {
    /// Puts the calling thread on a node of its own and sets everything up, up to a pod that was
    /// attached and detached once: whatever the plugins themselves keep from then on is there.
    pub(crate) fn set_up() -> Lab {
        static LABS: AtomicUsize = AtomicUsize::new(0);
        node::enter();
        let [dir, control] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let number = LABS.fetch_add(1, Ordering::Relaxed);
        // As wide as every other, so that none is the beginning of another.
        let container = format!("crash-{}-{number:04}", std::process::id());
        let mut lab = Lab {
            dir,
            control,
            container,
            before: Holdings::default(),
            add_takes: Duration::ZERO,
        };
        lab.write_files();
        lab.fresh_netns();
        for verb in [Verb::Add, Verb::Del] {
            let done = lab.command(Call::of(verb)).output().unwrap();
            let said = String::from_utf8_lossy(&done.stdout);
            assert!(done.status.success(), "{verb:?} without any fault: {said}");
        }
        lab.before = lab.holdings();
        let since = Instant::now();
        lab.act(Call::of(Verb::Add));
        lab.add_takes = since.elapsed();
        lab.act(Call::of(Verb::Del));
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write_files(&self) {
        let control = self.control.path().display();
        let bin = self.path("bin");
        for path in ["bin", "cluster"] {
            fs::create_dir(self.path(path)).unwrap();
        }
        for (wrapper, network, plugin) in [
            ("wrapped-bridge", "cluster", "bridge"),
            ("wrapped-macvlan", "storage", "macvlan"),
            ("wrapped-ptp", "management", "ptp"),
        ] {
            // It sleeps before an ADD when it is told to, and fails when it is told to.
            let script = format!(
                "#!/bin/sh\n\
                 if [ -e {control}/sleep-{network} ] && [ $CNI_COMMAND = ADD ]; then\n\
                   conf=$(cat); : >{control}/asleep; sleep $(cat {control}/sleep-{network})\n\
                   printf %s \"$conf\" | {plugins}/{plugin}; exit\n\
                 fi\n\
                 if [ -e {control}/break-{network} ] && [ $CNI_COMMAND = ADD -o ! -s {control}/break-{network} ]; then echo '{{\"code\":7,\"msg\":\"broken\"}}'; exit 1; fi\n\
                 exec {plugins}/{plugin}\n",
                plugins = real_plugins().display(),
            );
            let path = bin.join(wrapper);
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        for plugin in ["host-local", "static"] {
            std::os::unix::fs::symlink(real_plugins().join(plugin), bin.join(plugin)).unwrap();
        }
        self.write(
            "10-cluster.conflist",
            r#"{"cniVersion":"1.0.0","name":"cluster","plugins":[{"type":"wrapped-bridge","bridge":"cni0","isGateway":true,
                "ipam":{"type":"host-local","dataDir":"DIR/ipam","subnet":"10.10.0.0/24","routes":[{"dst":"0.0.0.0/0"}]}}]}"#,
        );
        self.write(
            "cluster/all.yaml",
            r#"
kind: NetworkAttachmentDefinition
metadata: { name: storage, namespace: demo }
spec:
  config: '{"cniVersion":"1.0.0","type":"wrapped-macvlan","master":"uplink0","mode":"bridge",
    "capabilities":{"ips":true,"mac":true},"ipam":{"type":"static"}}'
---
kind: NetworkAttachmentDefinition
metadata: { name: management, namespace: demo }
spec:
  config: '{"cniVersion":"1.0.0","type":"wrapped-ptp",
    "ipam":{"type":"host-local","dataDir":"DIR/ipam","subnet":"10.30.0.0/24"}}'
---
kind: NetworkAttachmentDefinition
metadata: { name: backup, namespace: demo }
spec:
  config: '{"cniVersion":"1.0.0","type":"wrapped-macvlan","master":"uplink0","mode":"bridge",
    "ipam":{"type":"static","addresses":[{"address":"10.40.0.5/24"}]}}'
"#,
        );
        self.select(FIRST);
        self.write(
            "jackfield.conf",
            r#"{"cniVersion":"1.0.0","name":"jackfield","type":"jackfield","clusterNetwork":"DIR/10-cluster.conflist",
                "manifestDir":"DIR/cluster","binDir":"DIR/bin","journalDir":"DIR/journal"}"#,
        );
    }

    /// Writes the pod with this annotation.
    fn select(&self, networks: &str) {
        let pod = format!(
            "kind: Pod\nmetadata:\n  name: web\n  namespace: demo\n  annotations:\n    \
             k8s.v1.cni.cncf.io/networks: '{networks}'\n"
        );
        self.write("cluster/pod.yaml", &pod);
    }

    fn write(&self, name: &str, text: &str) {
        let text = text.replace("DIR", self.dir.path().to_str().unwrap());
        fs::write(self.path(name), text).unwrap();
    }

    /// A sandbox's network namespace as the runtime makes it.
    pub(crate) fn fresh_netns(&self) {
        if netns_path().exists() {
            ip(&format!("netns del {NETNS}"));
        }
        ip(&format!("netns add {NETNS}"));
    }

    /// How long an ADD took that nobody disturbed.
    pub(crate) fn add_takes(&self) -> Duration {
        self.add_takes
    }

    /// Does what `call` says; nothing is looked at but what befalls the node by it.
    pub(crate) fn act(&self, call: Call) {
        let broken = self.control.path().join("break-management");
        match call.verb {
            Verb::Break => fs::write(broken, "").unwrap(),
            Verb::BreakAdd => fs::write(broken, "ADD").unwrap(),
            Verb::Mend => {
                let _ = fs::remove_file(broken);
            }
            Verb::SelectFirst => self.select(FIRST),
            Verb::SelectOthers => self.select(OTHERS),
            Verb::Add | Verb::Del | Verb::Check | Verb::Change => {
                let done = self.command(call).output().unwrap();
                let said = String::from_utf8_lossy(&done.stdout);
                assert!(done.status.success(), "{call:?} without any fault: {said}");
            }
        }
    }

    /// The call as the runtime makes it.
    pub(crate) fn command(&self, call: Call) -> Command {
        let command = Command::new(env!("CARGO_BIN_EXE_jackfield"));
        self.as_runtime(command, call)
    }

    /// The call under strace with `options`; only its main thread is followed.
    pub(crate) fn traced(&self, call: Call, options: &[String]) -> Command {
        let mut command = Command::new("strace");
        let record = self.record_path();
        command.arg("-qq").arg("-o").arg(record).args(options);
        command.arg(env!("CARGO_BIN_EXE_jackfield"));
        self.as_runtime(command, call)
    }

    /// Where strace writes.
    pub(crate) fn record_path(&self) -> PathBuf {
        self.control.path().join("record")
    }

    fn as_runtime(&self, mut command: Command, call: Call) -> Command {
        let verb = match call.verb {
            Verb::Add => "ADD",
            Verb::Del => "DEL",
            Verb::Check => "CHECK",
            Verb::Change => {
                command.args(["change", &self.container, "eth0"]);
                ""
            }
            verb => unreachable!("{verb:?} is no call"),
        };
        let netns = if call.with_netns {
            netns_path()
        } else {
            PathBuf::new()
        };
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("CNI_COMMAND", verb)
            .env("CNI_CONTAINERID", &self.container)
            .env("CNI_NETNS", netns)
            .env("CNI_IFNAME", "eth0")
            .env("CNI_PATH", self.path("bin"))
            .env(
                "CNI_ARGS",
                "IgnoreUnknown=1;K8S_POD_NAMESPACE=demo;K8S_POD_NAME=web",
            )
            .stdin(fs::File::open(self.path("jackfield.conf")).unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if verb.is_empty() {
            command.env_remove("CNI_COMMAND");
        }
        command
    }

    /// The runtime's DEL and a look at what is left; without `with_netns` the namespace is taken
    /// away first, as a runtime's is when it calls without one.
    pub(crate) fn detach(&self, story: &str, with_netns: bool) -> Vec<String> {
        if !with_netns {
            ip(&format!("netns del {NETNS}"));
        }
        let call = Call {
            verb: Verb::Del,
            with_netns,
        };
        let done = self.command(call).output().unwrap();
        let mut findings = Vec::new();
        if !done.status.success() || !done.stdout.is_empty() {
            let said = String::from_utf8_lossy(&done.stdout);
            findings.push(format!("{story}: the DEL: {}: {said}", done.status));
        }
        findings.extend(self.leftovers(story));
        findings
    }

    /// What is there that was not before the pod. The kernel ends namespaces at its leisure, so
    /// what went with one is waited for.
    pub(crate) fn leftovers(&self, story: &str) -> Vec<String> {
        let netns_is_kept = netns_path().exists();
        let since = Instant::now();
        loop {
            if !netns_path().exists() {
                self.fresh_netns();
            }
            let differences = self.holdings().differences(&self.before);
            if differences.is_empty() || netns_is_kept || since.elapsed() > NETNS_ENDS_WITHIN {
                return differences
                    .iter()
                    .map(|difference| format!("{story}: {difference}"))
                    .collect();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn holdings(&self) -> Holdings {
        let dirs = [self.dir.path(), Path::new("/run/jackfield")];
        Holdings::of(Some(NETNS), &dirs, &self.container)
    }

    /// Makes the delegate of a network sleep before each ADD, or none.
    pub(crate) fn put_to_sleep(&self, sleeper: Option<(&str, Duration)>) {
        for network in ["cluster", "storage", "management"] {
            let _ = fs::remove_file(self.control.path().join(format!("sleep-{network}")));
        }
        let _ = fs::remove_file(self.control.path().join("asleep"));
        if let Some((network, time)) = sleeper {
            fs::write(
                self.control.path().join(format!("sleep-{network}")),
                time.as_secs_f32().to_string(),
            )
            .unwrap();
        }
    }

    /// Whether a delegate sleeps.
    pub(crate) fn is_asleep(&self) -> bool {
        self.control.path().join("asleep").exists()
    }

    /// Starts anew after a finding, so that one does not cause the next.
    pub(crate) fn start_anew(&mut self) {
        self.fresh_netns();
        for dir in [
            self.path("journal"),
            "/run/jackfield/locks".into(),
            self.path("ipam"),
        ] {
            let _ = fs::remove_dir_all(dir);
        }
        self.act(Call::of(Verb::Mend));
        for verb in [Verb::Add, Verb::Del] {
            self.act(Call::of(verb));
        }
        self.before = self.holdings();
    }
}

fn netns_path() -> PathBuf {
    Path::new("/run/netns").join(NETNS)
}
