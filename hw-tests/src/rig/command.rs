//! Runs programs: `ip`, `devlink`, `vdpa`, `rdma`, `modprobe`.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// Ten times the slowest program on an idle machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// Runs a program to its end and returns its output.
pub(crate) fn command(program: &str, arguments: &[&str]) -> Result<String, CommandError> {
    let mut words = Command::new(program);
    words.args(arguments);
    let line = format!("{program} {}", arguments.join(" "));
    let ended = run(&mut words, "").map_err(|cause| CommandError {
        line: line.clone(),
        cause,
    })?;
    if ended.status.success() {
        return Ok(ended.out);
    }
    Err(CommandError {
        line,
        cause: Cause::Status {
            status: ended.status,
            output: ended.err.trim().replace('\n', "; "),
        },
    })
}

/// A program's exit status and output.
#[derive(Debug)]
pub(crate) struct ProgramResult {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs a program to its end, whatever its exit status is.
///
/// Output goes to files, so that a leftover child cannot hold a pipe open. The program is in its
/// own process group, so that Ctrl-C reaches only the suite.
pub(super) fn run(command: &mut Command, stdin: &str) -> Result<ProgramResult, Cause> {
    let start = |command: &mut Command| -> io::Result<_> {
        let (mut input, out, err) = (
            tempfile::tempfile()?,
            tempfile::tempfile()?,
            tempfile::tempfile()?,
        );
        input.write_all(stdin.as_bytes())?;
        input.rewind()?;
        let child = command
            .process_group(0)
            .stdin(input)
            .stdout(out.try_clone()?)
            .stderr(err.try_clone()?)
            .spawn()?;
        Ok((out, err, child))
    };
    let (mut out, mut err, mut child) = start(command).map_err(Cause::Start)?;
    let deadline = Instant::now() + DEADLINE;
    let status = loop {
        match child.try_wait().map_err(Cause::Start)? {
            Some(status) => break status,
            None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
            None => {
                // Killed below in any case. The caller gets the timeout.
                let _ = child.kill();
                let _ = child.wait();
                return Err(Cause::Deadline);
            }
        }
    };
    let text = |file: &mut File| -> Result<String, Cause> {
        let mut bytes = Vec::new();
        file.rewind()
            .and_then(|()| file.read_to_end(&mut bytes))
            .map_err(Cause::Start)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(ProgramResult {
        status,
        out: text(&mut out)?,
        err: text(&mut err)?,
    })
}

/// A program that failed.
#[derive(Debug, thiserror::Error)]
#[error("`{line}`: {cause}")]
pub(crate) struct CommandError {
    line: String,
    cause: Cause,
}

/// Why a program failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Cause {
    #[error("{0}")]
    Start(io::Error),
    #[error("did not end within {}s", DEADLINE.as_secs())]
    Deadline,
    #[error("{status}: {output}")]
    Status { status: ExitStatus, output: String },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_failure_are_returned() {
        assert_eq!(command("echo", &["a", "b"]).unwrap(), "a b\n");
        let error = command("sh", &["-c", "echo no >&2; echo more >&2; exit 3"])
            .unwrap_err()
            .to_string();
        assert!(error.ends_with("exit status: 3: no; more"), "{error}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = command("no-such-program", &["x"]).unwrap_err().to_string();
        assert!(error.starts_with("`no-such-program x`: "), "{error}");
    }

    #[test]
    fn a_leftover_child_does_not_block() {
        let started = Instant::now();
        command("sh", &["-c", "sleep 5 & echo done"]).unwrap();
        assert!(started.elapsed() < Duration::from_secs(4));
    }
}
