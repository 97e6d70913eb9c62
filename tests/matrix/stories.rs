//! The rows of the fault matrix: what happens on a node, and which of its calls meets the fault.

use super::call::Verb;

/// A row of the matrix.
#[derive(Debug)]
pub(crate) struct Story {
    /// The name, without a slash.
    pub(crate) name: &'static str,
    /// The calls before the walked one.
    pub(crate) before: &'static [Verb],
    /// The call that meets the fault.
    pub(crate) walked: Verb,
    /// The calls after the fault that must succeed if the sandbox still exists.
    pub(crate) again: &'static [Verb],
    /// The events after the fault, before the sandbox is cleaned up.
    pub(crate) repair: &'static [Verb],
    /// Whether a success of the walked call promises that nothing is left.
    pub(crate) settles: bool,
    /// How the story ends.
    pub(crate) end: End,
    /// Which share of the steps a sample contains at which the process is killed.
    pub(crate) killed: Share,
}

/// How a story ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The sandbox is detached by a DEL or a GC.
    Detached,
    /// The same, but a worker may still be running for a moment.
    DetachedBesideWorker,
    /// The walked command is repeated, and then Jackfield is uninstalled.
    Uninstalled,
}

/// How many cells of a story and a fault a sample contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// Every cell.
    All,
    /// About this number of cells.
    Some(usize),
}

const ADD: Story = Story {
    name: "ADD",
    before: &[],
    walked: Verb::Add,
    again: &[],
    repair: &[],
    settles: false,
    end: End::Detached,
    killed: Share::Some(24),
};
const ATTACHED: &[Verb] = &[Verb::Add];
const OWED_AND_DUE: &[Verb] = &[
    Verb::Add,
    Verb::Break,
    Verb::OwedDel,
    Verb::Mend,
    Verb::BecomeDue,
];
/// The calls and events before a change of a running pod's networks.
const CHANGED: &[Verb] = &[Verb::SelectFirst, Verb::Add, Verb::SelectOthers];
pub(crate) const SOME: Share = Share::Some(2);

/// Every row.
pub(crate) const STORIES: &[Story] = &[
    ADD,
    Story {
        name: "failing ADD",
        before: &[Verb::Break],
        repair: &[Verb::Mend],
        killed: SOME,
        ..ADD
    },
    Story {
        name: "DEL",
        before: ATTACHED,
        walked: Verb::Del,
        settles: true,
        ..ADD
    },
    Story {
        name: "failing DEL",
        before: &[Verb::Add, Verb::Break],
        walked: Verb::Del,
        repair: &[Verb::Mend],
        killed: SOME,
        ..ADD
    },
    Story {
        name: "CHECK",
        before: ATTACHED,
        walked: Verb::Check,
        again: &[Verb::Check],
        killed: SOME,
        ..ADD
    },
    Story {
        name: "GC",
        before: ATTACHED,
        walked: Verb::Gc,
        settles: true,
        killed: SOME,
        ..ADD
    },
    Story {
        name: "STATUS",
        before: OWED_AND_DUE,
        walked: Verb::Status,
        end: End::DetachedBesideWorker,
        killed: SOME,
        ..ADD
    },
    Story {
        name: "retry",
        before: OWED_AND_DUE,
        walked: Verb::Retry,
        killed: SOME,
        ..ADD
    },
    Story {
        name: "change",
        before: CHANGED,
        walked: Verb::Change,
        repair: &[Verb::SelectFirst],
        ..ADD
    },
    Story {
        name: "change again",
        before: CHANGED,
        walked: Verb::Change,
        again: &[Verb::Change, Verb::Check],
        repair: &[Verb::SelectFirst],
        killed: SOME,
        ..ADD
    },
    Story {
        name: "failing change",
        before: &[
            Verb::SelectOthers,
            Verb::Add,
            Verb::SelectFirst,
            Verb::BreakAdd,
        ],
        walked: Verb::Change,
        repair: &[Verb::Mend, Verb::SelectFirst],
        killed: SOME,
        ..ADD
    },
    Story {
        name: "reconcile",
        before: CHANGED,
        walked: Verb::Reconcile,
        again: &[Verb::Reconcile, Verb::Check],
        repair: &[Verb::SelectFirst],
        killed: SOME,
        ..ADD
    },
    Story {
        name: "install",
        walked: Verb::Install,
        end: End::Uninstalled,
        killed: SOME,
        ..ADD
    },
    Story {
        name: "uninstall",
        before: &[Verb::Install],
        walked: Verb::Uninstall,
        end: End::Uninstalled,
        killed: SOME,
        ..ADD
    },
];
