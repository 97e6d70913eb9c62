//! Real agents, as kubelet would run them.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::population::kubeconfig_of;
use crate::settings::node_name;

/// The first port for metrics and health.
const PORT: usize = 20_000;
const POLL: Duration = Duration::from_millis(50);

/// The process of an agent. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct RealAgent {
    child: Child,
    port: u16,
}

/// The folder of a real agent's node.
pub(crate) fn folder_of(folder: &Path, node: usize) -> PathBuf {
    folder.join(format!("real/{node}"))
}

impl RealAgent {
    /// Starts the agent of a node. It waits for at most `spread` before its first requests.
    pub(crate) fn start(folder: &Path, node: usize, spread: Duration) -> io::Result<RealAgent> {
        let own = folder_of(folder, node);
        fs::create_dir_all(&own)?;
        let port = u16::try_from(PORT + node).map_err(io::Error::other)?;
        let child = Command::new(folder.join("jackfield"))
            .env_clear()
            .args(["agent", "--node", &node_name(node)])
            .args(["--spread", &spread.as_secs().to_string()])
            .args(["--metrics", &format!("127.0.0.1:{port}")])
            .arg("--kubeconfig")
            .arg(kubeconfig_of(folder, node))
            .arg("--socket")
            .arg(own.join("agent/agent.sock"))
            .arg("--journal-dir")
            .arg(own.join("journal"))
            .stdin(Stdio::null())
            .stderr(
                File::options()
                    .append(true)
                    .create(true)
                    .open(own.join("log"))?,
            )
            .spawn()?;
        Ok(RealAgent { child, port })
    }

    /// The port of its health.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the agent as kubelet does.
    pub(crate) async fn stop(mut self) -> io::Result<()> {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        kill(pid, Signal::SIGTERM)?;
        while self.child.try_wait()?.is_none() {
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }
}

impl Drop for RealAgent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns when the agent whose health is on this port is ready.
pub(crate) async fn until_ready(port: u16) {
    while !is_ready(port).await.unwrap_or(false) {
        tokio::time::sleep(POLL).await;
    }
}

async fn is_ready(port: u16) -> io::Result<bool> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream
        .write_all(b"GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n")
        .await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer.starts_with("HTTP/1.1 200"))
}
