//! Which cells of the fault matrix a run contains.

use std::time::SystemTime;

use crate::cell::Cell;
use crate::faults::Kind;
use crate::stories::{Share, Story};

/// A sample contains a cell of one in this number of pairs of story and fault, besides the cells
/// in which the process is killed.
const SAMPLED: usize = 2;

/// Which cells are wanted.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// A sample, which the seed decides.
    Sample(u64),
    /// Every cell.
    All,
    /// The cells whose name begins with this text.
    Named(String),
}

impl Wanted {
    /// Reads `JACKFIELD_CELL`, `JACKFIELD_MATRIX` and `JACKFIELD_SEED`.
    pub(crate) fn of_environment() -> Wanted {
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        if let Some(name) = variable("JACKFIELD_CELL") {
            return Wanted::Named(name);
        }
        if variable("JACKFIELD_MATRIX").is_some_and(|text| text == "all") {
            return Wanted::All;
        }
        let given = variable("JACKFIELD_SEED").map(|text| text.parse().unwrap());
        let now = || SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        Wanted::Sample(given.unwrap_or_else(now))
    }

    /// Whether any cell of the story is wanted.
    pub(crate) fn wants_story(&self, story: &Story) -> bool {
        match self {
            Wanted::Named(name) => name.split('/').next() == Some(story.name),
            Wanted::Sample(_) | Wanted::All => true,
        }
    }

    /// Takes the wanted cells out of all cells of one story and fault.
    pub(crate) fn choose(&self, cells: Vec<Cell>) -> Vec<Cell> {
        let seed = match self {
            Wanted::All => return cells,
            Wanted::Named(name) => {
                let is_meant = |cell: &Cell| {
                    let whole = cell.to_string();
                    whole == *name || whole.starts_with(&format!("{name}/"))
                };
                return cells.into_iter().filter(is_meant).collect();
            }
            Wanted::Sample(seed) => *seed,
        };
        let Some(first) = cells.first() else {
            return cells;
        };
        let share = match first.fault.kind {
            Kind::Kill => first.story.killed,
            Kind::KillAtSomeTime if first.story.killed == Share::All => Share::Some(12),
            _ => Share::Some(1),
        };
        let Share::Some(number) = share else {
            return cells;
        };
        let every = cells.len().div_ceil(number);
        let own = first.to_string().bytes().fold(seed, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        let mut random = fastrand::Rng::with_seed(own);
        let offset = random.usize(..every);
        if share == Share::Some(1) && random.usize(..SAMPLED) != 0 {
            return Vec::new();
        }
        cells.into_iter().skip(offset).step_by(every).collect()
    }
}
