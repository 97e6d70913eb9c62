//! Which cells of the fault matrix a run contains.

use std::fmt::{self, Display};
use std::time::SystemTime;

use super::cell::Cell;
use super::faults::Kind;
use super::stories::{SOME, Share, Story};

/// The number of places at which a sample tries again a fault that has not happened.
const SPARE: usize = 6;

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

    /// Takes the wanted cells out of all cells of one story and fault. A sample contains at least one
    /// of them.
    pub(crate) fn choose<P: Clone + Display>(&self, cells: Vec<Cell<P>>) -> Vec<Cell<P>> {
        let seed = match self {
            Wanted::All => return cells,
            Wanted::Named(name) => {
                let is_meant = |cell: &Cell<P>| {
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
            Kind::KillAtSomeTime if first.story.killed != SOME => Share::Some(4),
            _ => Share::Some(1),
        };
        let Share::Some(number) = share else {
            return cells;
        };
        let own = first.to_string().bytes().fold(seed, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        let mut random = fastrand::Rng::with_seed(own);
        let every = cells.len().div_ceil(number);
        let offset = random.usize(..every);
        if number > 1 {
            return cells.into_iter().skip(offset).step_by(every).collect();
        }
        let mut places: Vec<P> = cells.iter().map(|cell| cell.place.clone()).collect();
        let cell = &cells[offset];
        random.shuffle(&mut places);
        places.truncate(SPARE);
        vec![Cell {
            spare: places,
            ..cell.clone()
        }]
    }
}

impl Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wanted::Sample(seed) => write!(f, "a sample; repeat it with JACKFIELD_SEED={seed}"),
            Wanted::All => f.write_str("every cell"),
            Wanted::Named(name) => write!(f, "the cells {name}"),
        }
    }
}
