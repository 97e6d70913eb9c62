//! The processes of a control plane, which run as long as the tests.

use std::path::Path;
use std::process::{Command, Stdio};

/// Starts etcd and kube-apiserver with their files in `dir`, on the API server's, etcd's and its
/// peers' port; for `nodes`, also what makes pods run on these.
pub(super) fn start(dir: &Path, ports: [u16; 3], nodes: Option<u32>) {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api/cluster/run");
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "TERM"])
        .arg(run)
        .arg(dir)
        .args(ports.map(|port| port.to_string()))
        .envs(nodes.map(|nodes| ("NODES", nodes.to_string())))
        .stdin(Stdio::null());
    // The signal comes when the thread ends that started it: this one never does.
    std::thread::spawn(move || {
        let mut server = command.spawn().expect("setpriv of util-linux");
        let _ = server.wait();
        loop {
            std::thread::park();
        }
    });
}
