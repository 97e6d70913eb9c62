//! What fails while agents run.

use std::cell::RefCell;
use std::collections::BTreeMap;

use jackfield::cluster::ApiError;

/// The failed requests of replayed agents.
#[derive(Debug, Default)]
pub(crate) struct Board {
    failures: RefCell<BTreeMap<u16, (usize, String)>>,
}

impl Board {
    /// Counts a failed request by its HTTP status; 0 is a request without an answer.
    pub(crate) fn failed(&self, error: &ApiError) {
        let mut failures = self.failures.borrow_mut();
        let failure = failures.entry(error.code().unwrap_or(0)).or_default();
        failure.0 += 1;
        if failure.1.is_empty() {
            failure.1 = error.to_string();
        }
    }

    /// How many requests failed.
    pub(crate) fn count(&self) -> usize {
        self.failures.borrow().values().map(|it| it.0).sum()
    }

    /// The failures in lines, with an example of each.
    pub(crate) fn lines(&self) -> Vec<String> {
        let failures = self.failures.borrow();
        let line = |(code, (count, example)): (&u16, &(usize, String))| {
            format!("{count} failed requests with status {code}, such as: {example}")
        };
        failures.iter().map(line).collect()
    }
}
