//! The binary that runs in the guest: this one if it is static, otherwise a static build.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use serde::Deserialize;

/// The target of the guest's binary. The guest has the host's architecture.
const TARGET: &str = concat!("x86_64", "-unknown-linux-musl");

/// Returns the path of the static binary, and builds it unless this process is one.
pub(super) fn binary() -> Result<PathBuf, RunnerError> {
    if cfg!(target_env = "musl") {
        return std::env::current_exe().map_err(RunnerError::Start);
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut child = Command::new(cargo)
        .args(["build", "--package", "hw-tests", "--profile", "fast"])
        .args([
            "--target",
            TARGET,
            "--message-format",
            "json-render-diagnostics",
        ])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(RunnerError::Start)?;
    let mut built = None;
    if let Some(messages) = child.stdout.take() {
        for line in BufReader::new(messages).lines() {
            let line = line.map_err(RunnerError::Start)?;
            built = executable(&line).or(built);
        }
    }
    let status = child.wait().map_err(RunnerError::Start)?;
    match built {
        Some(file) if status.success() => Ok(file),
        _ => Err(RunnerError::Build(status)),
    }
}

/// Returns the path in cargo's message about our binary; `None` for other messages.
fn executable(line: &str) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Message {
        target: Target,
        executable: Option<PathBuf>,
    }
    #[derive(Deserialize)]
    struct Target {
        name: String,
    }
    let message: Message = serde_json::from_str(line).ok()?;
    message
        .executable
        .filter(|_| message.target.name == "hw-tests")
}

/// Why there is no binary for the guest.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunnerError {
    #[error("cargo: {0}; run hw-tests by cargo, or build it for {TARGET}")]
    Start(std::io::Error),
    #[error("cargo build for {TARGET}: {0}; add the target with rustup target add {TARGET}")]
    Build(ExitStatus),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_is_found_among_cargos_messages() {
        let found = |line| executable(line);
        assert_eq!(found(r#"{"reason":"build-finished","success":true}"#), None);
        assert_eq!(
            found(r#"{"target":{"name":"build-script-build"},"executable":"/t/build"}"#),
            None
        );
        assert_eq!(
            found(r#"{"target":{"name":"hw-tests"},"executable":"/t/hw-tests"}"#),
            Some("/t/hw-tests".into())
        );
    }
}
