//! Sockets of a real program: DPDK's `dpdk-testpmd`, without hugepages and PCI.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::case::Stop;
use crate::rig::until;

/// The program with a vhost-user and a memif socket, killed when dropped.
#[derive(Debug)]
pub(crate) struct Testpmd {
    folder: TempDir,
    process: Child,
}

impl Testpmd {
    /// Starts the program and waits until both sockets exist.
    pub(crate) fn start() -> Result<Self, Stop> {
        let folder = tempfile::Builder::new().prefix("hwt-dpdk-").tempdir()?;
        let at = |name: &str| folder.path().join(name).display().to_string();
        let vhost = format!("net_vhost0,iface={}", at("vhost.sock"));
        let memif = format!(
            "net_memif0,role=server,socket={},socket-abstract=no,id=0",
            at("memif.sock")
        );
        let process = Command::new("dpdk-testpmd")
            .args(["--no-huge", "-m", "128", "--no-pci", "--no-telemetry"])
            .args(["--file-prefix", "hwt", "--lcores", "0@0,1@0"])
            .args(["--vdev", &vhost, "--vdev", &memif])
            .args(["--", "--auto-start", "--no-lsc-interrupt"])
            .args(["--total-num-mbufs=2048", "--no-mlockall"])
            .env("RUNTIME_DIRECTORY", folder.path())
            // The program ends at the end of stdin, so keep the other end of this pipe open.
            .stdin(Stdio::piped())
            .stdout(std::fs::File::create(folder.path().join("log"))?)
            .stderr(std::fs::File::create(folder.path().join("errors"))?)
            .spawn()?;
        let testpmd = Self { folder, process };
        let sockets = until("sockets of dpdk-testpmd", || {
            (testpmd.vhost_user().exists() && testpmd.memif().exists()).then_some(())
        });
        match sockets {
            Ok(()) => Ok(testpmd),
            Err(_) => Err(Stop::failed(format!(
                "dpdk-testpmd created no sockets: {}",
                testpmd.last_words()
            ))),
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the socket for vhost-user clients: a virtual machine or a pod.
    pub(crate) fn vhost_user(&self) -> PathBuf {
        self.path().join("vhost.sock")
    }

    /// Returns the socket for memif slaves, such as a pod.
    pub(crate) fn memif(&self) -> PathBuf {
        self.path().join("memif.sock")
    }

    fn last_words(&self) -> String {
        let text = std::fs::read_to_string(self.path().join("errors")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(4).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("; ")
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        // Both fail only if the process has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
