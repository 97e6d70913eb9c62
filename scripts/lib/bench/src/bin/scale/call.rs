//! Calls of a plugin, as the runtime makes them.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Failure;

/// One sandbox of a pod of the namespace `bench`.
#[derive(Debug, Clone)]
pub(crate) struct Sandbox {
    pub(crate) pod: String,
    /// The number of its network namespace.
    pub(crate) netns: usize,
}

/// Calls a plugin in `folder` with the configuration in the file `conf`.
///
/// # Errors
/// If the call fails.
pub(crate) fn call(
    verb: &str,
    folder: &Path,
    plugin: &str,
    conf: &Path,
    sandbox: &Sandbox,
) -> Result<(), Failure> {
    let netns = format!("scale-{}", sandbox.netns);
    let mut command = Command::new(folder.join(plugin));
    command
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("CNI_COMMAND", verb)
        .env("CNI_CONTAINERID", &netns)
        .env("CNI_NETNS", format!("/run/netns/{netns}"))
        .env("CNI_IFNAME", "eth0")
        .env("CNI_PATH", folder.join("bin"))
        .env(
            "CNI_ARGS",
            format!(
                "IgnoreUnknown=1;K8S_POD_NAMESPACE=bench;K8S_POD_NAME={}",
                sandbox.pod
            ),
        )
        .stdin(File::open(conf)?)
        .stderr(Stdio::piped());
    #[allow(clippy::disallowed_methods, reason = "its delegates end with it")]
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let [said, log] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    Err(format!("{plugin} {verb} {}: {said} {log}", sandbox.pod).into())
}
