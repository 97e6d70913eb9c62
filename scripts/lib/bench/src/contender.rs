//! Who is measured: Jackfield, its peers, and the bare delegates.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::burst::PODS;
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// ADD.
    Add,
    /// DEL.
    Del,
    /// VERSION: nothing but the start of the program.
    Version,
}

impl Verb {
    fn name(self) -> &'static str {
        match self {
            Verb::Add => "ADD",
            Verb::Del => "DEL",
            Verb::Version => "VERSION",
        }
    }
}

fn nobody() -> Vec<AtomicUsize> {
    (0..PODS).map(|_| AtomicUsize::default()).collect()
}

/// What one call took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Called {
    /// From before the start to after the end.
    pub(crate) took: Duration,
    /// Processor time of all its processes; only right while nothing else runs.
    pub(crate) cpu: Duration,
}

/// One that attaches a pod to three networks.
#[derive(Debug)]
pub(crate) struct Contender {
    /// What it is called in the report.
    pub(crate) name: String,
    /// Its programs in order with what each gets on standard input and its interface.
    calls: Vec<(PathBuf, Vec<u8>, &'static str)>,
    folder: PathBuf,
    conf: PathBuf,
    /// How many pods it has attached so far.
    pods: AtomicUsize,
    /// The pod that each network namespace has.
    attached: Vec<AtomicUsize>,
}

impl Contender {
    /// The delegates that only rename an interface, called one after the other by this program.
    pub(crate) fn bare(folder: &str) -> Contender {
        let conf = r#"{"cniVersion":"1.0.0","name":"bare","type":"rename"}"#;
        let call = |ifname| ("rename", conf.as_bytes().to_vec(), ifname);
        let calls = [call("eth0"), call("net1"), call("net2")];
        Contender::delegates("bare delegates", folder, calls)
    }

    /// The real plugins bridge, macvlan and ptp with host-local, called one after the other by this
    /// program. Their configurations are in `FOLDER/real`.
    ///
    /// # Errors
    /// If a configuration cannot be read.
    pub(crate) fn real(folder: &str) -> Result<Contender, String> {
        let call = |plugin: &'static str, ifname| {
            let path = Path::new(folder).join(format!("real/{plugin}.json"));
            let conf = fs::read(&path).map_err(|cause| format!("{}: {cause}", path.display()))?;
            Ok::<_, String>((plugin, conf, ifname))
        };
        let calls = [
            call("bridge", "eth0")?,
            call("macvlan", "net1")?,
            call("ptp", "net2")?,
        ];
        Ok(Contender::delegates("bare plugins", folder, calls))
    }

    fn delegates(name: &str, folder: &str, calls: [(&str, Vec<u8>, &'static str); 3]) -> Contender {
        let folder = PathBuf::from(folder);
        let calls = calls
            .into_iter()
            .map(|(plugin, conf, ifname)| (folder.join("bin").join(plugin), conf, ifname));
        Contender {
            name: name.to_owned(),
            calls: calls.collect(),
            folder,
            conf: PathBuf::new(),
            pods: AtomicUsize::default(),
            attached: nobody(),
        }
    }

    /// `NAME=PROGRAM:CONF`.
    pub(crate) fn parse(folder: &str, text: &str) -> Result<Contender, String> {
        let wrong = || format!("{text:?} is no contender; write NAME=PROGRAM:CONF");
        let (name, rest) = text.split_once('=').ok_or_else(wrong)?;
        let (program, conf) = rest.split_once(':').ok_or_else(wrong)?;
        let bytes = fs::read(conf).map_err(|cause| format!("{conf}: {cause}"))?;
        Ok(Contender {
            name: name.to_owned(),
            calls: vec![(PathBuf::from(program), bytes, "eth0")],
            folder: PathBuf::from(folder),
            conf: PathBuf::from(conf),
            pods: AtomicUsize::default(),
            attached: nobody(),
        })
    }

    /// The program that is called, unless it is the bare delegates.
    pub(crate) fn program(&self) -> Option<(&Path, &Path)> {
        match self.calls.as_slice() {
            [(program, _, _)] => Some((program, &self.folder)),
            _ => None,
        }
    }

    /// Where its configuration is.
    pub(crate) fn conf(&self) -> &Path {
        &self.conf
    }

    /// One call in the network namespace of that number: each ADD is of a pod of its own, and a
    /// DEL of the one that is there.
    ///
    /// # Errors
    /// When it fails.
    pub(crate) fn call(&self, verb: Verb, netns: usize) -> Result<Called, String> {
        let pod = self.attached.get(netns).map_or(0, |attached| {
            if verb == Verb::Add {
                let next = self.pods.fetch_add(1, Ordering::Relaxed);
                attached.store(next, Ordering::Relaxed);
            }
            attached.load(Ordering::Relaxed)
        });
        let before = children_used();
        let since = Instant::now();
        for (program, stdin, ifname) in self.in_order(verb) {
            self.call_one(program, stdin, ifname, verb, (netns, pod))?;
        }
        let took = since.elapsed();
        let cpu = children_used().saturating_sub(before);
        Ok(Called { took, cpu })
    }

    /// Gives every interface of a namespace its first name again, whichever have another.
    pub(crate) fn put_back(&self, netns: usize) {
        for (program, stdin, ifname) in &self.calls {
            // One that has its name is no failure.
            let _ = self.call_one(program, stdin, ifname, Verb::Del, (netns, 0));
        }
    }

    fn in_order(&self, verb: Verb) -> Vec<&(PathBuf, Vec<u8>, &'static str)> {
        let mut calls: Vec<_> = self.calls.iter().collect();
        if verb == Verb::Del {
            calls.reverse();
        }
        calls
    }

    fn call_one(
        &self,
        program: &Path,
        stdin: &[u8],
        ifname: &str,
        verb: Verb,
        (netns, pod): (usize, usize),
    ) -> Result<(), String> {
        let failed = |cause: std::io::Error| format!("{}: {cause}", program.display());
        let mut child = Command::new(program)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("CNI_COMMAND", verb.name())
            .env("CNI_CONTAINERID", format!("bench-{netns}"))
            .env("CNI_NETNS", format!("/run/netns/bench-{netns}"))
            .env("CNI_IFNAME", ifname)
            .env("CNI_PATH", self.folder.join("bin"))
            .env(
                "CNI_ARGS",
                format!(
                    "IgnoreUnknown=1;K8S_POD_NAMESPACE=bench;K8S_POD_NAME={}-{pod}",
                    self.name
                ),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        if let Some(mut pipe) = child.stdin.take() {
            pipe.write_all(stdin).map_err(failed)?;
        }
        let mut answer = Vec::new();
        if let Some(mut pipe) = child.stdout.take() {
            pipe.read_to_end(&mut answer).map_err(failed)?;
        }
        let status = child.wait().map_err(failed)?;
        if status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&answer);
        Err(format!("{}: {verb:?}: {status}: {said}", self.name))
    }
}

/// What all children that are gone have used, theirs included.
pub(crate) fn children_used() -> Duration {
    let used = getrusage(UsageWho::RUSAGE_CHILDREN);
    used.map_or(Duration::ZERO, |used: Usage| {
        let micros = (used.user_time() + used.system_time()).num_microseconds();
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    })
}
