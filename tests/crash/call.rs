//! What a runtime does to a sandbox, and what befalls the node in between.

/// A verb of CNI, or an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// ADD.
    Add,
    /// DEL.
    Del,
    /// The last network's delegate fails from here on, whatever it is asked.
    Break,
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
