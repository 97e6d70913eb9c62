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

/// Why one call of a plugin failed.
///
/// [`ChainError`](super::ChainError) puts the plugin and the verb before each message: `plugin
/// sriov: ADD: …`.
#[derive(Debug, Error)]
pub enum DelegateError {
    /// The plugin has no binary that Jackfield may execute.
    #[error(transparent)]
    Missing(#[from] FindError),
    /// Jackfield cannot derive the text for the plugin's stdin from the plugin's configuration.
    #[error("its configuration: {0}")]
    Request(#[from] InvocationError),
    /// CHECK needs the result of the ADD, but the journal does not contain it.
    #[error("the journal contains no result of the ADD; recreate the pod")]
    NoResult,
    /// The deadline had passed before the call.
    #[error(
        "not called, since no time was left; find out what took the time, or raise the verb's \
         deadline"
    )]
    NoTime,
    /// Another process had the binary open for writing.
    #[error("{0} is being written (text file busy); wait until the plugin is installed")]
    Busy(PathBuf),
    /// The node is out of process IDs or memory.
    #[error(
        "the node is out of process IDs or memory: {0}; try again once other processes have ended"
    )]
    NoRoom(#[source] io::Error),
    /// The kernel cannot start the binary.
    #[error(
        "{0} cannot be started: {1}; check that the plugin is built for this node's architecture \
         and that its interpreter is installed"
    )]
    NotStarted(PathBuf, #[source] io::Error),
    /// The plugin did not exit within this time, so Jackfield killed it.
    #[error(
        "no answer within {0:?}{1}; Jackfield killed the plugin and its children; find out what \
         the plugin waits for, or raise both deadlines.delegate and the verb's own deadline"
    )]
    Hung(Duration, LastLine),
    /// The plugin exceeded this time or the output limit, and Jackfield could not kill it.
    #[error(
        "hangs in the kernel and cannot be killed (time limit {0:?}){1}; check the kernel's log, \
         and reboot the node if the process does not end"
    )]
    Unkillable(Duration, LastLine),
    /// The plugin wrote too much to stdout. If the plugin was still running, Jackfield killed it.
    #[error("wrote more than {STDOUT_CAP} bytes to stdout; check what it prints")]
    Flooded,
    /// A signal ended the plugin.
    #[error(
        "crashed: {signal}{1}; check the logs of the kernel and the plugin",
        signal = signal_name(*.0)
    )]
    Crashed(i32, LastLine),
    /// The plugin answered with an error document.
    #[error("{0}")]
    Refused(#[source] cni::Error),
    /// The plugin failed with this exit status and without an error document. The line is the last
    /// line on stderr, or on stdout if stderr is blank.
    #[error("exit status {0} without a CNI error on stdout{1}; check the plugin's log")]
    Failed(i32, LastLine),
    /// The plugin exited with status 0, but wrote no result.
    #[error(
        "exit status 0 and no result on stdout{0}; the plugin must print a result, at least {{}}"
    )]
    Silent(LastLine),
    /// The output is not JSON, or is incomplete. The line is the last line on stdout, or on stderr
    /// if stdout is blank.
    #[error("stdout is not JSON{0}; the plugin must print only its result to stdout")]
    NotJson(LastLine),
    /// The plugin printed several documents.
    #[error("more than one JSON document on stdout; the plugin must print its result once")]
    Twice,
    /// The output is JSON, but Jackfield cannot use it as a result.
    #[error("{0}")]
    Result(#[from] ResultError),
    /// The kernel discarded the exit status.
    #[error(
        "its exit status is lost, since SIGCHLD is ignored; start the container runtime with the \
         default action of SIGCHLD"
    )]
    Lost,
}

impl DelegateError {
    /// Returns the plugin's error document, if the plugin wrote one.
    #[must_use]
    pub fn delegate_error(&self) -> Option<&cni::Error> {
        match self {
            Self::Refused(error) => Some(error),
            _ => None,
        }
    }

    /// Returns what the plugin wrote about its failure: the error document of [`Self::Refused`], or
    /// the last line of [`Self::Failed`]. Returns `None` for all other failures.
    pub(super) fn plugin_text(&self) -> Option<String> {
        match self {
            Self::Refused(error) => Some(error.to_string()),
            Self::Failed(_, line) => line.0.clone(),
            _ => None,
        }
    }
}

fn signal_name(signal: i32) -> String {
    match Signal::try_from(signal) {
        Ok(name) => format!("signal {signal} ({name})"),
        Err(_) => format!("signal {signal}"),
    }
}

/// The last line that a failed plugin wrote. It usually names the cause. Error messages quote the
/// line, because the runtime may drop what the plugin wrote to stderr.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastLine(Option<String>);

impl LastLine {
    /// A message quotes at most this many characters of the line.
    const LONGEST: usize = 300;

    /// The last line that is not blank.
    pub(super) fn of(bytes: &[u8]) -> Self {
        // The output may be 1 MiB long, so decode only its end.
        let tail = bytes.len().saturating_sub(4 * Self::LONGEST);
        let text = String::from_utf8_lossy(bytes.get(tail..).unwrap_or_default());
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty());
        Self(line.map(|line| line.chars().take(Self::LONGEST).collect()))
    }

    /// Returns this line, or the result of `other` if there is no line.
    pub(super) fn or(self, other: impl FnOnce() -> Self) -> Self {
        if self.0.is_some() { self } else { other() }
    }
}

impl fmt::Display for LastLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(line) => write!(f, ", last output line {line:?}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_that_is_not_blank_is_quoted() {
        let quoted = |bytes: &[u8]| LastLine::of(bytes).to_string();
        assert_eq!(quoted(b""), "");
        assert_eq!(quoted(b"\n \n"), "");
        assert_eq!(quoted(b"a\nb\r\n\n"), ", last output line \"b\"");
        assert_eq!(
            quoted(b"\x1b[31mred\x00"),
            r#", last output line "\u{1b}[31mred\0""#
        );
        assert_eq!(quoted(&[0xff, b'x']), ", last output line \"\u{fffd}x\"");
        assert!(quoted(&[b'x'; 100_000]).len() < 400);
    }

    #[test]
    fn a_signal_has_its_name() {
        let crashed = DelegateError::Crashed(11, LastLine::default());
        assert!(
            crashed
                .to_string()
                .starts_with("crashed: signal 11 (SIGSEGV);"),
            "{crashed}"
        );
        assert_eq!(signal_name(35), "signal 35");
    }
}
