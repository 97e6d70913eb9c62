//! The calls of a runtime, and the events on the node between them.

/// A call, or an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// ADD.
    Add,
    /// DEL.
    Del,
    /// CHECK.
    Check,
    /// GC with an empty list of valid attachments.
    Gc,
    /// STATUS.
    Status,
    /// `change`: the process that carries out a changed annotation of the running pod.
    Change,
    /// `retry`: the process that retries an owed detachment.
    Retry,
    /// `reconcile`: the command for people that does the same as `change`.
    Reconcile,
    /// `install`.
    Install,
    /// `uninstall`.
    Uninstall,
    /// A DEL that fails, so that the detachment is owed.
    OwedDel,
    /// Makes the retry of the owed detachment due.
    BecomeDue,
    /// The pod's annotation selects the networks of an ADD.
    SelectFirst,
    /// The pod's annotation drops one of these networks, replaces another, and adds a new one.
    SelectOthers,
    /// From now on, the last network's delegate fails on every verb.
    Break,
    /// From now on, the last network's delegate fails on ADD.
    BreakAdd,
    /// The last network's delegate works again.
    Mend,
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// The verb or event.
    pub(crate) verb: Verb,
    /// Whether the call names the network namespace. A DEL may come without it.
    pub(crate) with_netns: bool,
}

impl Call {
    /// A call that names the sandbox's network namespace.
    pub(crate) const fn of(verb: Verb) -> Call {
        Call {
            verb,
            with_netns: true,
        }
    }
}
