//! A case: one behaviour to check, and its outcome.

use std::error::Error;
use std::fmt::{Debug, Display};

use crate::feature::Feature;
use crate::node::Node;

/// One behaviour, checked on real devices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    /// `group/the_behaviour`.
    pub(crate) name: &'static str,
    /// The features that the case needs. Without one of them it is skipped.
    pub(crate) needs: &'static [Feature],
    /// Checks the behaviour and leaves the machine unchanged.
    pub(crate) run: fn(&Node) -> Outcome,
}

/// The outcome of a case: passed, or the reason why not.
pub(crate) type Outcome = Result<(), Stop>;

/// Why a case ended early.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The behaviour is wrong.
    Failed(String),
    /// This machine cannot run the case.
    Skipped(String),
}

impl Stop {
    pub(crate) fn failed(reason: impl Into<String>) -> Self {
        Self::Failed(reason.into())
    }
}

/// Any error fails the case, with its causes.
impl<E: Error> From<E> for Stop {
    fn from(error: E) -> Self {
        let mut reason = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            if !reason.contains(&text) {
                reason.push_str(": ");
                reason.push_str(&text);
            }
            source = cause.source();
        }
        Self::Failed(reason)
    }
}

/// Fails the case unless both values are equal.
pub(crate) fn same<F, E>(what: impl Display, found: F, expected: E) -> Outcome
where
    F: PartialEq<E> + Debug,
    E: Debug,
{
    if found == expected {
        return Ok(());
    }
    Err(Stop::failed(format!(
        "{what}: found {found:?}, expected {expected:?}"
    )))
}

/// Fails the case unless the condition holds.
pub(crate) fn holds(what: impl Display, holds: bool) -> Outcome {
    if holds {
        return Ok(());
    }
    Err(Stop::failed(what.to_string()))
}

/// Fails the case if there is no value.
pub(crate) fn present<T>(what: impl Display, value: Option<T>) -> Result<T, Stop> {
    value.ok_or_else(|| Stop::failed(format!("{what}: missing")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_both_values() {
        assert_eq!(same("mtu", 1500, 1500), Ok(()));
        assert_eq!(
            same("mtu", 1400, 1500),
            Err(Stop::failed("mtu: found 1400, expected 1500"))
        );
    }

    #[test]
    fn an_error_names_its_cause_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("reading failed")]
        struct Outer(#[source] std::fmt::Error);
        let stop = Stop::from(Outer(std::fmt::Error));
        let Stop::Failed(reason) = stop else {
            panic!("{stop:?}")
        };
        assert!(reason.starts_with("reading failed: "), "{reason}");
    }
}
