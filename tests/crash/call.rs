//! What a runtime does to a sandbox, and what befalls the node in between.

/// A verb of CNI, or an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// ADD.
    Add,
    /// DEL.
    Del,
    /// CHECK.
    Check,
    /// `change`: the process that carries out a changed annotation of the running pod.
    Change,
    /// The pod's annotation selects the networks of an ADD.
    SelectFirst,
    /// The pod's annotation drops one of these networks, replaces another, and adds a new one.
    SelectOthers,
    /// The last network's delegate fails from here on, whatever it is asked.
    Break,
    /// The last network's delegate fails on ADD from here on.
    BreakAdd,
    /// It works again.
    Mend,
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// What is done.
    pub(crate) verb: Verb,
    /// Whether the call names the network namespace; a DEL may come without.
    pub(crate) with_netns: bool,
}

impl Call {
    /// A call in the sandbox's network namespace.
    pub(crate) const fn of(verb: Verb) -> Call {
        Call {
            verb,
            with_netns: true,
        }
    }
}
