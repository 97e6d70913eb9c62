//! Decides which calls tell the agent the size of the journal.
//!
//! Counting many records takes long, and the runtime waits for the call. So ADD and CHECK never
//! count the records. A DEL that succeeds counts the records only if the last count is at least a
//! minute old. GC, STATUS, a DEL that fails, and a change of a running pod's networks always count
//! the records. Between two counts, the agent increases the metric `jackfield_attachments` after
//! each ADD that succeeds, and decreases it after each DEL that succeeds and had something to
//! detach.

use std::time::Duration;

use super::Host;
use super::dated_file::DatedFile;
use crate::cluster::OnRecord;
use crate::cni::Verb;
use crate::request::NodeConfig;

/// The file whose modification time is the time of the last count.
const COUNTED: &str = "counted";
/// A DEL that succeeds counts the records only if the last count is at least this old.
const COUNT_EVERY: Duration = Duration::from_secs(60);

/// Counts the records of the journal. Returns `None` if this call does not count them, or if
/// Jackfield reads manifests from a folder and therefore uses no agent. `verb` is the name of the
/// call in the metrics: a CNI verb, or `RECONCILE` for a change of a running pod's networks.
/// `failed` is whether the call failed.
pub fn to_report(
    host: &Host<'_>,
    config: &NodeConfig,
    verb: &str,
    failed: bool,
) -> Option<OnRecord> {
    let counted = DatedFile::of(host, config, COUNTED)?;
    let is = |other: Verb| verb == other.as_str();
    let is_due = || counted.age().is_none_or(|age| age >= COUNT_EVERY);
    // Always count the records after a failed DEL, so that the metrics show its failed detachment
    // at once.
    if is(Verb::Add) || is(Verb::Check) || (is(Verb::Del) && !failed && !is_due()) {
        return None;
    }
    // If the file cannot be written, the next DEL counts the records again.
    let _ = counted.date_now();
    Some(host.journal.count())
}
