//! Figures that the agent adds to its metrics. [`Figures`] has the outcome, times and counts of one
//! call of the plugin. [`Examination`] has the number of findings of each check of `doctor`.
//!
//! The plugin keeps no counters, because it runs for only milliseconds. Plugin and agent may be
//! from different releases. So the figures contain the names of CNI verbs, call phases and `doctor`
//! checks as text. This lets the agent count even verbs, phases and checks that its own release
//! does not know.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::SandboxNetworks;
use crate::bounded;

/// The name of a verb, of a phase or of a check of `doctor`.
type Word = Cow<'static, str>;

/// One call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// `CNI_COMMAND`, or `RECONCILE` for a change of a running pod's networks.
    pub verb: Word,
    /// The pod, `namespace/name`, if the runtime names one.
    pub pod: Option<String>,
    /// The container ID of the sandbox, if the call is about a sandbox.
    pub container: Option<String>,
    /// The CNI error code, or 0 for success.
    pub code: u32,
    /// The error message in the result for the runtime.
    pub failure: Option<String>,
    /// The name of the last phase before [`Phase::Unwind`]. For a failed call, this is the phase
    /// that failed.
    pub last: Option<Word>,
    /// The time from the start of the call to its result, in microseconds.
    pub took: u64,
    /// The time that each phase took.
    pub phases: Vec<PhaseFigure>,
    /// The outcome for each network on which the call acted. If the plan of an ADD has problems,
    /// the list contains only the network of the first problem.
    pub networks: Vec<NetworkFigure>,
    /// Every call of a delegate.
    pub plugins: Vec<PluginFigure>,
    /// The size of the journal; `None` if the call did not count the records.
    pub on_record: Option<OnRecord>,
    /// The sandbox after a successful ADD, a successful change of networks, or any DEL; `None` for
    /// other calls. The agent uses this field to update its list of attached sandboxes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxNetworks>,
    /// How many seconds the agent was absent before it answered this call. Only the first call that
    /// the agent answers after an absence sets this number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_silent: Option<u64>,
}

/// The size of the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OnRecord {
    /// The number of sandboxes on record, for the metric `jackfield_attachments`. A sandbox with
    /// several networks counts once.
    pub attachments: u64,
    /// The number of failed detachments that Jackfield still has to retry.
    pub owed: u64,
    /// The addresses of devices that Jackfield could not restore after a pod had used them.
    pub unrestored: Vec<String>,
}

/// The total time of one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseFigure {
    /// [`Phase::as_str`].
    pub phase: Word,
    /// The time that all parts of the phase took, in microseconds.
    pub took: u64,
}

/// The outcome for one network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkFigure {
    /// `namespace/definition`, or the cluster network's CNI name.
    pub network: String,
    /// True if the definition does not exist or is not usable. The metrics then omit the network's
    /// name, because pods may name any number of networks that do not exist.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unknown: bool,
    /// Whether the call succeeded for this network.
    pub done: bool,
}

/// One call of a delegate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginFigure {
    /// The plugin's type, which is the name of its program.
    pub plugin: String,
    /// The verb.
    pub verb: Word,
    /// Whether the plugin succeeded.
    pub done: bool,
    /// The time that the call took, in microseconds.
    pub took: u64,
}

/// The findings of `doctor` on this node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Examination {
    /// Every check, including checks without findings.
    #[serde(deserialize_with = "bounded::list::<_, _, MOST_CHECKS>")]
    pub checks: Vec<CheckFigure>,
}

/// The maximum number of checks in an [`Examination`].
const MOST_CHECKS: usize = 64;

/// The findings of one check of `doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckFigure {
    /// The check's name.
    pub check: Word,
    /// How many findings the check has.
    pub findings: u64,
}

/// A phase of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Asking the cluster for the pod, definitions, claims and devices.
    Question,
    /// Waiting until kubelet's checkpoint contains the pod's devices.
    Devices,
    /// Making the plan and finding every program.
    Plan,
    /// Waiting for the container's lock.
    Lock,
    /// Writing the journal.
    Journal,
    /// Running plugins.
    Delegates,
    /// Verifying the attachments.
    Verify,
    /// Setting default routes.
    Routes,
    /// Keeping status and events on disk for the agent, or publishing them.
    Publish,
    /// Rolling back attachments after a failure.
    Unwind,
}

impl Phase {
    /// Returns the phase's name in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Phase::Question => "question",
            Phase::Devices => "devices",
            Phase::Plan => "plan",
            Phase::Lock => "lock",
            Phase::Journal => "journal",
            Phase::Delegates => "delegates",
            Phase::Verify => "verify",
            Phase::Routes => "routes",
            Phase::Publish => "publish",
            Phase::Unwind => "unwind",
        }
    }
}

/// Converts a time to microseconds, for figures.
pub fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
