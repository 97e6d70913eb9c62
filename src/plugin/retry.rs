//! Starts a process that retries a failed detachment. The process runs the hidden command `retry`
//! of this program, with the node configuration of the current call.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::journal::Key;
use crate::operation::Context;

/// The name of the command.
pub const COMMAND: &str = "retry";

/// Starts the process and does not wait for it. The process inherits no stream of the runtime,
/// because the process may outlive the runtime's call.
///
/// # Errors
/// If the process cannot be started or does not read the configuration.
pub(super) fn start(context: &Context<'_>, key: &Key) -> io::Result<()> {
    let mut retry = Command::new("/proc/self/exe")
        .args([COMMAND, key.container.as_str(), key.ifname.as_str()])
        .env_remove("CNI_COMMAND")
        .env("CNI_PATH", context.cni_path())
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let Some(mut stdin) = retry.stdin.take() else {
        return Ok(());
    };
    stdin.write_all(context.request.stdin.to_string().as_bytes())
}
