//! What was measured of one call at one point of an axis, and its line in a list of figures.

use std::fmt;
use std::str::FromStr;

use crate::Failed;
use crate::axis::Axis;
use crate::call::Verb;

/// The figures of one call at one point of an axis.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) axis: Axis,
    /// The point of the axis.
    pub(crate) count: usize,
    pub(crate) verb: Verb,
    /// The median of the times, in milliseconds.
    pub(crate) median: f64,
    /// The standard error of that median, in milliseconds.
    pub(crate) error: f64,
    /// The median of the page faults.
    pub(crate) faults: f64,
    /// How many calls were measured.
    pub(crate) calls: usize,
}

impl Cell {
    /// Takes the figures of all calls together: times in milliseconds, and page faults.
    pub(crate) fn of(axis: Axis, count: usize, verb: Verb, calls: &[(f64, f64)]) -> Cell {
        let times = || calls.iter().map(|(time, _)| *time);
        let middle = median(times());
        // For a normal distribution, the standard deviation is 1.48 times the median deviation, and
        // the median's error is 1.25 times that of the mean.
        let deviation = median(times().map(|time| (time - middle).abs()));
        let error = 1.25 * 1.48 * deviation / (calls.len() as f64).sqrt();
        Cell {
            axis,
            count,
            verb,
            median: middle,
            error,
            faults: median(calls.iter().map(|(_, faults)| *faults)),
            calls: calls.len(),
        }
    }
}

/// The median; NaN of nothing.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {} {:.4} {:.4} {:.0} {}",
            self.axis.name(),
            self.count,
            self.verb.name(),
            self.median,
            self.error,
            self.faults,
            self.calls
        )
    }
}

impl FromStr for Cell {
    type Err = Failed;

    fn from_str(line: &str) -> Result<Cell, Failed> {
        let fields: Vec<&str> = line.split(' ').collect();
        let [axis, count, verb, median, error, faults, calls] = fields.as_slice() else {
            return Err(format!("{line:?} has no figures").into());
        };
        let axis = Axis::ALL.into_iter().find(|it| it.name() == *axis);
        let verb = Verb::ALL.into_iter().find(|it| it.name() == *verb);
        let unknown = || format!("{line:?} has an unknown name");
        Ok(Cell {
            axis: axis.ok_or_else(unknown)?,
            count: count.parse()?,
            verb: verb.ok_or_else(unknown)?,
            median: median.parse()?,
            error: error.parse()?,
            faults: faults.parse()?,
            calls: calls.parse()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_medians_and_survives_its_line() {
        let calls = [(9.0, 100.0), (1.0, 120.0), (2.0, 110.0)];
        let cell = Cell::of(Axis::Owed, 100, Verb::Gc, &calls);
        assert_eq!((cell.median, cell.faults, cell.calls), (2.0, 110.0, 3));
        assert!((cell.error - 1.25 * 1.48 / 3_f64.sqrt()).abs() < 1e-9);
        let line = cell.to_string();
        assert_eq!(line, "owed 100 GC 2.0000 1.0681 110 3");
        assert_eq!(line.parse::<Cell>().unwrap().to_string(), line);
        assert!("owed 100 SING 2 1 110 3".parse::<Cell>().is_err());
    }
}
