//! A trait for the problems that Jackfield reports to people.
//!
//! A module defines its problems as an enum or a struct, and keeps their texts in one file.
//! Jackfield's decisions depend on the variants and fields of a problem, and not on its text. The
//! only exception: Jackfield compares texts to avoid logging the same line twice.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// A problem with its text and its remedy.
pub trait Problem: fmt::Debug {
    /// Returns the text that says what is wrong, without the remedy and without a final period.
    fn words(&self) -> String;

    /// Returns the remedy as an instruction; `None` if there is no remedy.
    fn remedy(&self) -> Option<String>;
}

/// Returns a problem in one line: what is wrong and what to do.
pub fn line(problem: &dyn Problem) -> String {
    match problem.remedy() {
        Some(remedy) => format!("{}; {remedy}", problem.words()),
        None => problem.words(),
    }
}

/// Wraps an error so that it can be cloned and compared. Two values are equal only if they are
/// clones of each other.
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct SharedError(Arc<dyn Error + Send + Sync>);

impl SharedError {
    /// Wraps `error`.
    pub fn new(error: impl Error + Send + Sync + 'static) -> SharedError {
        SharedError(Arc::new(error))
    }
}

impl PartialEq for SharedError {
    fn eq(&self, other: &SharedError) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SharedError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Full(bool);

    impl Problem for Full {
        fn words(&self) -> String {
            "the disk is full".to_owned()
        }

        fn remedy(&self) -> Option<String> {
            self.0.then(|| "free space there".to_owned())
        }
    }

    #[test]
    fn a_line_omits_a_missing_remedy() {
        assert_eq!(line(&Full(true)), "the disk is full; free space there");
        assert_eq!(line(&Full(false)), "the disk is full");
    }
}
