//! Why a call of a plugin failed.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;
use thiserror::Error;

use super::process::STDOUT_CAP;
use super::search::FindError;
use crate::cni::{self, InvocationError, ResultError};

/// One call of one plugin that failed, by its cause.
///
/// The messages are the end of a sentence that begins with the plugin and what it was asked
/// (`plugin sriov: ADD: …`).
#[derive(Debug, Error)]
pub enum DelegateError {
    /// There is nothing to execute.
    #[error(transparent)]
    Missing(#[from] FindError),
    /// Its configuration cannot be written.
    #[error("its configuration: {0}")]
    Request(#[from] InvocationError),
    /// CHECK without the result of the ADD.
    #[error("the result of its ADD is not on record, so nothing can be compared; recreate the pod")]
    NoResult,
    /// The time was used up before it began.
    #[error("not called, since no time was left; see what took it, or raise deadlines")]
    NoTime,
    /// Somebody had the binary open for writing all the time.
    #[error("{path} is being written (text file busy); try again when it is installed", path = path.display())]
    Busy {
        /// The binary.
        path: PathBuf,
    },
    /// The kernel has no process or no memory to spare.
    #[error("the node has no room for another process: {source}; try again once others have ended")]
    NoRoom {
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel would not start it.
    #[error(
        "{path} cannot be started: {source}; install the plugin for this node's architecture, \
         with its interpreter",
        path = path.display()
    )]
    NotStarted {
        /// The binary.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// It gave no answer in time.
    #[error(
        "no answer within {after:?}, ended with its children{said}; see what it waits for, or \
         raise deadlines.delegate, or the verb's own where that is the shorter"
    )]
    Hung {
        /// How long it had.
        after: Duration,
        /// Its last words.
        said: LastLine,
    },
    /// It gave no answer in time, and nothing can end it.
    #[error(
        "no answer within {after:?}, and it cannot be killed: it hangs in the kernel{said}; see \
         the kernel's log, the node may need a reboot"
    )]
    Unkillable {
        /// How long it had.
        after: Duration,
        /// Its last words.
        said: LastLine,
    },
    /// It wrote without end.
    #[error("wrote more than {STDOUT_CAP} bytes to stdout and was ended; see what it prints")]
    Flooded,
    /// A signal ended it.
    #[error("crashed: {}{said}; see the kernel's log and the plugin's", signal_name(*.signal))]
    Crashed {
        /// The signal.
        signal: i32,
        /// Its last words.
        said: LastLine,
    },
    /// It failed as plugins do, and says why: code, message, details.
    #[error("{0}")]
    Refused(#[source] cni::Error),
    /// It failed without a document that says why.
    #[error("exit status {status} without a CNI error on stdout{said}; see the plugin's log")]
    Failed {
        /// The exit status.
        status: i32,
        /// Its last words, on stderr or stdout.
        said: LastLine,
    },
    /// It said that all is well, but gave no result.
    #[error("exit status 0 and no result on stdout{said}; the plugin must print one, be it {{}}")]
    Silent {
        /// Its last words on stderr.
        said: LastLine,
    },
    /// Its result is not JSON, or not all of it came.
    #[error("stdout is not JSON{said}; the plugin must print its result there and nothing else")]
    NotJson {
        /// What stands there.
        said: LastLine,
    },
    /// It answered more than once.
    #[error("more than one JSON document on stdout; the plugin must print its result once")]
    Twice,
    /// Its result is JSON, and yet no result.
    #[error("{0}")]
    Result(#[from] ResultError),
    /// How it ended is unknown.
    #[error(
        "its exit status is lost, since SIGCHLD is ignored; start the container runtime without \
         that"
    )]
    Lost,
}

impl DelegateError {
    /// Whether the plugin was not asked at all, since the record does not say what it answered.
    #[must_use]
    pub fn is_of_record(&self) -> bool {
        matches!(self, Self::NoResult)
    }

    /// What the plugin itself said, with its code: 11, 50 and 51 are passed on as they are
    /// (CNI 1.1.0 §2 "STATUS", §5 "Error").
    #[must_use]
    pub fn delegate_error(&self) -> Option<&cni::Error> {
        match self {
            Self::Refused(error) => Some(error),
            _ => None,
        }
    }
}

fn signal_name(signal: i32) -> String {
    match Signal::try_from(signal) {
        Ok(known) => format!("signal {signal} ({known})"),
        Err(_) => format!("signal {signal}"),
    }
}

/// The last line that a failed plugin wrote, which mostly tells why; without it the message would
/// send people to a log that the runtime dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastLine(Option<String>);

impl LastLine {
    /// As much of a line is quoted, in characters.
    const LONGEST: usize = 300;

    /// The last line with something in it.
    pub(super) fn last_line(bytes: &[u8]) -> Self {
        // The end alone is looked at: decoding all of 64 KiB would be for nothing.
        let tail = bytes
            .get(bytes.len().saturating_sub(4 * Self::LONGEST)..)
            .unwrap_or_default();
        let text = String::from_utf8_lossy(tail);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty());
        Self(line.map(|line| line.chars().take(Self::LONGEST).collect()))
    }

    /// This, or the other where this is nothing.
    pub(super) fn or(self, other: impl FnOnce() -> Self) -> Self {
        if self.0.is_some() { self } else { other() }
    }
}

impl fmt::Display for LastLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(line) => write!(f, ", it wrote {line:?}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_with_something_in_it_is_quoted() {
        let quoted = |bytes: &[u8]| LastLine::last_line(bytes).to_string();
        assert_eq!(quoted(b""), "");
        assert_eq!(quoted(b"\n \n"), "");
        assert_eq!(quoted(b"a\nb\r\n\n"), ", it wrote \"b\"");
        assert_eq!(
            quoted(b"\x1b[31mred\x00"),
            r#", it wrote "\u{1b}[31mred\0""#
        );
        assert_eq!(quoted(&[0xff, b'x']), ", it wrote \"\u{fffd}x\"");
        assert!(quoted(&[b'x'; 100_000]).len() < 400);
    }

    #[test]
    fn a_signal_has_its_name() {
        let crashed = DelegateError::Crashed {
            signal: 11,
            said: LastLine::default(),
        };
        assert!(
            crashed
                .to_string()
                .starts_with("crashed: signal 11 (SIGSEGV);"),
            "{crashed}"
        );
        assert_eq!(signal_name(35), "signal 35");
    }
}
