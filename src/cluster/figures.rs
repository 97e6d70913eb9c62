//! What one call of the plugin took, told when it is over to whoever counts.
//!
//! The plugin keeps no count of its own: it lives for milliseconds. Words that a release does not
//! know yet are counted as they are, so plugin and agent need not be of one release.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bounded;

/// A word of ours, or of another release.
type Word = Cow<'static, str>;

/// One call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// `CNI_COMMAND`.
    pub verb: Word,
    /// The pod, `namespace/name`, where the runtime names one.
    pub pod: Option<String>,
    /// What the runtime calls the sandbox, where the call is about one.
    pub container: Option<String>,
    /// The code of its failure; 0 when all is well.
    pub code: u32,
    /// What the runtime was told of the failure.
    pub failure: Option<String>,
    /// What was done last before it, [`Phase::as_str`].
    pub last: Option<Word>,
    /// From the call's begin to its answer, in microseconds.
    pub took: u64,
    /// What it spent its time on.
    pub phases: Vec<PhaseFigure>,
    /// The attachments that something was done to, each by its network.
    pub networks: Vec<NetworkFigure>,
    /// Every plugin that was called.
    pub plugins: Vec<PluginFigure>,
    /// How much is on record, where the call counted it: every verb but ADD.
    pub on_record: Option<OnRecord>,
    /// For how many seconds the agent had not answered, where this call found it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_silent: Option<u64>,
}

/// How much the journal holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OnRecord {
    /// Attachments of the runtime: sandboxes, each with all its networks.
    pub attachments: u64,
    /// Detachments that failed and are still owed.
    pub owed: u64,
    /// The addresses of devices that are not as they were before a pod had them.
    pub unrestored: Vec<String>,
}

/// The time that one phase took, all its parts together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseFigure {
    /// [`Phase::as_str`].
    pub phase: Word,
    /// In microseconds.
    pub took: u64,
}

/// What became of one attachment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkFigure {
    /// `namespace/definition`, or the cluster network's CNI name.
    pub network: String,
    /// Whether there is no network of that name, as far as is known: pods may name any.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unknown: bool,
    /// Whether all went well.
    pub done: bool,
}

/// One call of one plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginFigure {
    /// Its type, which is its program's name.
    pub plugin: String,
    /// What it was to do.
    pub verb: Word,
    /// Whether it did.
    pub done: bool,
    /// In microseconds.
    pub took: u64,
}

/// What `doctor` found on this node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Examination {
    /// Every check, those that found nothing among them.
    #[serde(deserialize_with = "bounded::list::<_, _, MOST_CHECKS>")]
    pub checks: Vec<CheckFigure>,
}

/// How many checks a release may have.
const MOST_CHECKS: usize = 64;

/// What came of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckFigure {
    /// Its name.
    pub check: Word,
    /// How much it found.
    pub findings: u64,
}

/// What a call spends its time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Asking the cluster: pod, definitions, claims, devices.
    Question,
    /// Waiting until kubelet's record shows the pod's devices.
    Devices,
    /// Making the plan and finding every program.
    Plan,
    /// Waiting for the sandbox's lock.
    Lock,
    /// Writing the journal.
    Journal,
    /// Running plugins.
    Delegates,
    /// Proving what came of it.
    Verify,
    /// Default routes.
    Routes,
    /// Leaving status and events for the agent, or writing them.
    Publish,
    /// Taking back what was attached before something failed.
    Unwind,
}

impl Phase {
    /// As metrics name it.
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

/// Microseconds, as figures are told.
pub fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
