//! A process that tries again what is owed: this program, as its hidden command `retry`, with the
//! node configuration of the call that begins it.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::journal::Key;
use crate::operation::Context;

/// The command's name.
pub const COMMAND: &str = "retry";

/// Begins it and does not wait for it: it holds nothing of the runtime's, whose call may end first.
///
/// # Errors
/// When it cannot be started, or does not take the configuration.
pub(super) fn begin(context: &Context<'_>, key: &Key) -> io::Result<()> {
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
