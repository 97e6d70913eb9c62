//! Programs that the rig runs: `ip`, `devlink`, `vdpa`, `rdma`, `modprobe`.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// Ten times what the slowest takes on a quiet machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// Runs a program to its end and gives what it printed.
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
            said: ended.err.trim().replace('\n', "; "),
        },
    })
}

/// How a program ended, and what it printed.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs a program to its end, whatever that is.
///
/// Output goes to files, so that a program that leaves a child behind cannot hold a pipe open. It
/// is in a process group of its own: who interrupts the suite at a terminal means the suite.
pub(super) fn run(command: &mut Command, stdin: &str) -> Result<Ended, Cause> {
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
                // Killed below either way: the caller learns of the deadline.
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
    Ok(Ended {
        status,
        out: text(&mut out)?,
        err: text(&mut err)?,
    })
}

/// A program that did not do what it was run for.
#[derive(Debug, thiserror::Error)]
#[error("`{line}`: {cause}")]
pub(crate) struct CommandError {
    line: String,
    cause: Cause,
}

/// Why a program did not come to its end, or to which.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Cause {
    #[error("{0}")]
    Start(io::Error),
    #[error("did not end within {}s", DEADLINE.as_secs())]
    Deadline,
    #[error("{status}: {said}")]
    Status { status: ExitStatus, said: String },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_failure_are_told() {
        assert_eq!(command("echo", &["a", "b"]).unwrap(), "a b\n");
        let error = command("sh", &["-c", "echo no >&2; echo more >&2; exit 3"])
            .unwrap_err()
            .to_string();
        assert!(error.ends_with("exit status: 3: no; more"), "{error}");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = command("no-such-program", &["x"]).unwrap_err().to_string();
        assert!(error.starts_with("`no-such-program x`: "), "{error}");
    }

    #[test]
    fn a_child_left_behind_does_not_hold_us() {
        let started = Instant::now();
        command("sh", &["-c", "sleep 5 & echo done"]).unwrap();
        assert!(started.elapsed() < Duration::from_secs(4));
    }
}
