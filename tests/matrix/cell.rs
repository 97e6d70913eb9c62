//! One cell of the fault matrix: a story that meets a fault at one place.

use std::fmt;

use super::faults::Fault;
use super::stories::Story;

/// A cell of the matrix. Its name consists of the names of story, fault and place.
#[derive(Clone, Debug)]
pub(crate) struct Cell<P> {
    pub(crate) story: &'static Story,
    pub(crate) fault: &'static Fault,
    /// Where the fault happens.
    pub(crate) place: P,
    /// Places to try if the fault does not happen at `place`.
    pub(crate) spare: Vec<P>,
}

/// What came of a cell.
#[derive(Debug)]
pub(crate) struct Visit {
    /// Whether the fault happened. Not every run takes the same steps.
    pub(crate) happened: bool,
    /// What is wrong.
    pub(crate) findings: Vec<String>,
}

impl<P: fmt::Display> fmt::Display for Cell<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (story, fault) = (self.story.name, self.fault.name);
        write!(f, "{story}/{fault}/{}", self.place)
    }
}
