//! Programs that the rig runs: `ip`, `devlink`, `vdpa`, `rdma`, `modprobe`.

use std::io::{self, Read, Seek};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Ten times what the slowest takes on a quiet machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// Runs a program to its end and gives what it printed.
///
/// Output goes to files, so that a program that leaves a child behind cannot hold a pipe open.
pub(crate) fn command(program: &str, arguments: &[&str]) -> Result<String, CommandError> {
    let fail = |cause| CommandError {
        line: format!("{program} {}", arguments.join(" ")),
        cause,
    };
    let started = || -> io::Result<_> {
        let (out, err) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(err.try_clone()?)
            .spawn()?;
        Ok((out, err, child))
    };
    let (mut out, mut err, mut child) = started().map_err(|error| fail(Cause::Start(error)))?;
    let deadline = Instant::now() + DEADLINE;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Ok(None) => {
                // Killed below either way: the caller learns of the deadline.
                let _ = child.kill();
                let _ = child.wait();
                return Err(fail(Cause::Deadline));
            }
            Err(error) => return Err(fail(Cause::Start(error))),
        }
    };
    let mut printed = String::new();
    let file = if status.success() { &mut out } else { &mut err };
    file.rewind()
        .and_then(|()| file.read_to_string(&mut printed))
        .map_err(|error| fail(Cause::Start(error)))?;
    if status.success() {
        return Ok(printed);
    }
    Err(fail(Cause::Status {
        status,
        said: printed.trim().replace('\n', "; "),
    }))
}

/// A program that did not do what it was run for.
#[derive(Debug, thiserror::Error)]
#[error("`{line}`: {cause}")]
pub(crate) struct CommandError {
    line: String,
    cause: Cause,
}

#[derive(Debug, thiserror::Error)]
enum Cause {
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
