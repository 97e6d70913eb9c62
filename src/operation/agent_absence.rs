//! Tracks how long the agent has not answered.

use std::time::Duration;

use super::Host;
use super::dated_file::DatedFile;
use crate::request::NodeConfig;

/// The file that exists while the agent is absent. Its modification time is the start of the
/// absence.
const SILENT: &str = "silent";
/// The file whose modification time is the time of the agent's last answer to STATUS. STATUS writes
/// the file only if `statusNeedsAgent` is set.
const ANSWERED: &str = "answered";

/// Creates the file `silent` if the agent did not answer the call, and removes the file if the
/// agent answered. Changes nothing if the call did not ask the agent. If the call ended an absence,
/// returns how long the absence lasted.
pub fn keep(host: &Host<'_>, config: &NodeConfig) -> Option<Duration> {
    let answers = host.stopwatch.agent_answers()?;
    let silent = DatedFile::of(host, config, SILENT)?;
    let age = silent.age();
    match age {
        Some(_) if answers && silent.remove() => age,
        None if !answers => {
            // If the file cannot be written, the next call that gets no answer tries again.
            let _ = silent.date_now();
            None
        }
        _ => None,
    }
}

/// Returns the file with the time of the agent's last answer. Returns `None` if Jackfield reads
/// manifests from a folder instead of asking an agent.
pub(super) fn last_answer(host: &Host<'_>, config: &NodeConfig) -> Option<DatedFile> {
    DatedFile::of(host, config, ANSWERED)
}
