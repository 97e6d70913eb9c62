//! Thick Multus: its real daemons.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::Failure;
use crate::settings::{LONGEST, node_name};

const POLL: Duration = Duration::from_millis(50);

/// A daemon. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    folder: PathBuf,
}

impl Daemon {
    /// Starts the daemon of a node, whose service account is in `/run/secrets`.
    pub(crate) fn start(folder: &Path, node: usize) -> Result<Daemon, Failure> {
        let own = folder.join(format!("multus/{node}"));
        // A folder of an earlier daemon has a configuration that says that it is ready.
        let _ = fs::remove_dir_all(&own);
        let conf_dir = own.join("conf");
        fs::create_dir_all(&conf_dir)?;
        fs::copy(
            folder.join("10-cluster.conflist"),
            conf_dir.join("10-cluster.conflist"),
        )?;
        let conf = json!({
            "cniVersion": "1.0.0", "logLevel": "error", "logToStderr": true, "multusConfigFile": "auto",
            "cniConfigDir": conf_dir, "multusAutoconfigDir": conf_dir,
            "socketDir": own.join("run"), "daemonSocketDir": own.join("run"),
            "binDir": folder.join("bin"),
        });
        fs::write(own.join("daemon.json"), conf.to_string())?;
        let child = Command::new(folder.join("multus-daemon"))
            .arg("-config")
            .arg(own.join("daemon.json"))
            .env("KUBERNETES_SERVICE_HOST", "127.0.0.1")
            .env("KUBERNETES_SERVICE_PORT", "16443")
            .env("MULTUS_NODE_NAME", node_name(node))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(own.join("log"))?)
            .spawn()?;
        Ok(Daemon { child, folder: own })
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The configuration that the daemon writes for the runtime, with which its plugin is called.
    pub(crate) fn conf(&self) -> PathBuf {
        self.folder.join("conf/00-multus.conf")
    }

    /// Returns when the daemon has written the configuration for the runtime.
    ///
    /// # Errors
    /// If the daemon has ended or is not ready within [`LONGEST`].
    pub(crate) async fn until_ready(&mut self) -> Result<(), Failure> {
        let began = Instant::now();
        while !self.conf().exists() {
            if self.child.try_wait()?.is_some() || began.elapsed() > LONGEST {
                let log = fs::read_to_string(self.folder.join("log"))?;
                return Err(io::Error::other(format!("Multus does not start: {log}")).into());
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
