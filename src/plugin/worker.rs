//! Starts a process that works on one sandbox and outlives the current call. The process runs a
//! hidden command of this program, with the node configuration of the current call.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use crate::journal::Key;
use crate::operation::{Context, Work};

/// The name of the command that retries a failed detachment.
pub const RETRY: &str = "retry";
/// The name of the command that changes the networks of a running pod.
pub const CHANGE: &str = "change";

/// Starts the process and does not wait for it. The process inherits no stream of the runtime. The
/// runtime reads the streams of a call until all writers have closed them. A process that inherited
/// a stream would therefore delay the end of the call.
///
/// # Errors
/// Fails if Jackfield cannot start the process or cannot pass the configuration to it.
pub(super) fn start(context: &Context<'_>, work: Work, key: &Key) -> io::Result<()> {
    let command = match work {
        Work::Retry => RETRY,
        Work::Change => CHANGE,
    };
    let mut worker = Command::new("/proc/self/exe")
        .args([command, key.container.as_str(), key.ifname.as_str()])
        .env_remove("CNI_COMMAND")
        .env("CNI_PATH", context.cni_path())
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let Some(mut stdin) = worker.stdin.take() else {
        return Ok(());
    };
    stdin.write_all(context.request.stdin.to_string().as_bytes())
}
