//! What the execution of a delegate costs over a bare `Command` that starts the same program with
//! the same pipes and waits for it.
//!
//! ```sh
//! cargo bench --bench delegate --target x86_64-unknown-linux-musl
//! ```
//!
//! The delegate is this very program: with `CNI_COMMAND` in its environment it reads its standard
//! input and answers. The two ways alternate, call by call, so that both see the same machine.

#![allow(clippy::disallowed_methods, reason = "a plugin of its own")]
#![allow(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, process};

use jackfield::cni::Verb;
use jackfield::cni::{CapabilityArgs, CniArgs, ContainerId, InterfaceName, PluginType};
use jackfield::delegate::{DelegateCall, DelegateExec, Depth, Ours, Parameters, Processes, find};

type Failure = Box<dyn std::error::Error>;

const CALLS: usize = 2000;
const RESULT: &str = r#"{"cniVersion":"1.0.0","interfaces":[{"name":"net1","mac":"02:00:00:00:00:01","sandbox":"/run/netns/pod"}],"ips":[{"address":"10.1.2.3/24","interface":0}]}"#;
const CONFIG: &str = r#"{"cniVersion":"1.0.0","name":"net","type":"plugin","ipam":{}}"#;

fn main() -> Result<(), Failure> {
    if env::var_os("CNI_COMMAND").is_some() {
        let mut config = Vec::new();
        io::stdin().read_to_end(&mut config)?;
        io::stdout().write_all(RESULT.as_bytes())?;
        return Ok(());
    }
    let dir = env::temp_dir().join(format!("jackfield-bench-{}", process::id()));
    fs::create_dir(&dir)?;
    let measured = measure(&dir);
    fs::remove_dir_all(&dir)?;
    measured
}

fn measure(dir: &PathBuf) -> Result<(), Failure> {
    fs::copy(env::current_exe()?, dir.join("plugin"))?;
    let plugin: PluginType = "plugin".parse()?;
    let no_one = Ours::this_process()?;
    let binary = find(std::slice::from_ref(dir), &plugin, &no_one)?;
    let container_id: ContainerId = "pod-1".parse()?;
    let ifname: InterfaceName = "net1".parse()?;
    let args = CniArgs::default();
    let processes = Processes::new(Depth::parse(None)?);

    let (mut bare, mut ours) = (Vec::with_capacity(CALLS), Vec::with_capacity(CALLS));
    let capability_args = CapabilityArgs::new();
    for _ in 0..CALLS {
        let start = Instant::now();
        let mut child = Command::new(binary.path())
            .env_clear()
            .env("CNI_COMMAND", "ADD")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(CONFIG.as_bytes())?;
        }
        let mut answer = Vec::new();
        if let Some(stdout) = &mut child.stdout {
            stdout.read_to_end(&mut answer)?;
        }
        child.wait()?;
        bare.push(start.elapsed());

        let start = Instant::now();
        processes.exec(&DelegateCall {
            verb: Verb::Add,
            binary: &binary,
            attachment: Some(&Parameters {
                container_id: &container_id,
                netns: Some("/run/netns/pod"),
                ifname: &ifname,
                args: &args,
                capability_args: &capability_args,
                cni_args: None,
                inject: &[],
            }),
            cni_path: "/opt/cni/bin",
            stdin: CONFIG,
            deadline: start + Duration::from_secs(60),
        })?;
        ours.push(start.elapsed());
    }
    println!("{CALLS} calls each       median      p90");
    for (name, times) in [("bare Command", &mut bare), ("Processes", &mut ours)] {
        times.sort_unstable();
        let at = |part: usize| times.get(CALLS * part / 100).copied().unwrap_or_default();
        println!("{name:<16} {:>9.1?} {:>9.1?}", at(50), at(90));
    }
    Ok(())
}
