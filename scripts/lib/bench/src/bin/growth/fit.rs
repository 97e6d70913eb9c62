//! How a time grows with a number: a fit of what the time has over the time of the smallest number.

use crate::cell::Cell;

/// Growth below this share of the first time is noise.
const NOISE: f64 = 0.15;
/// Growth below this many milliseconds is noise.
const LEAST: f64 = 0.2;
/// So many standard errors are noise.
const ERRORS: f64 = 3.0;
/// The largest exponent of linear growth. The exponent of quadratic growth is nearly 2.
const LINEAR: f64 = 1.3;

/// How a time grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Growth {
    /// Not at all.
    Flat,
    /// At most in proportion.
    Linear,
    /// More than in proportion.
    Worse,
}

impl Growth {
    /// The word in the report.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Growth::Flat => "flat",
            Growth::Linear => "linear",
            Growth::Worse => "worse",
        }
    }
}

/// The growth of a time, and the exponent of what the time has over its first value; no exponent
/// if it is flat.
///
/// A call takes a millisecond or two without any work, which would hide an exponent of the whole
/// time. So the fit is of the rise over the first point, against the distance from the first point.
/// A rise below the noise counts as the noise, and of such points only the last one counts. The
/// exponent is that of the line through all points, or of the last two if that is larger.
///
/// `cells` are in the order of their numbers.
pub(crate) fn growth(cells: &[&Cell]) -> (Growth, Option<f64>) {
    let Some((first, others)) = cells.split_first() else {
        return (Growth::Flat, None);
    };
    let noise =
        |cell: &Cell| (NOISE * first.median).max(LEAST) + ERRORS * (first.error + cell.error);
    let rises = |cell: &&Cell| cell.median - first.median > noise(cell);
    if !others.last().is_some_and(rises) {
        return (Growth::Flat, None);
    }
    let hidden = others.iter().rposition(|cell| !rises(cell)).unwrap_or(0);
    let points = others.iter().skip(hidden).map(|cell| {
        let rise = (cell.median - first.median).max(noise(cell));
        ((cell.count - first.count) as f64, rise)
    });
    let points: Vec<(f64, f64)> = points.map(|(x, y)| (x.ln(), y.ln())).collect();
    let last = points
        .get(points.len().saturating_sub(2)..)
        .unwrap_or(&points);
    let exponent = slope(&points).max(slope(last));
    match exponent <= LINEAR {
        true => (Growth::Linear, Some(exponent)),
        false => (Growth::Worse, Some(exponent)),
    }
}

/// The slope of the line with the least squares. NaN of a single point.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
    let (x, y) = (sum(&|it| it.0) / count, sum(&|it| it.1) / count);
    sum(&|it| (it.0 - x) * (it.1 - y)) / sum(&|it| (it.0 - x).powi(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Axis;
    use crate::call::Verb;

    /// The growth of a time that is a function of the number.
    fn of(time: impl Fn(f64) -> f64) -> (Growth, Option<f64>) {
        let cells: Vec<Cell> = [10, 30, 100, 300, 1000]
            .into_iter()
            .map(|count| Cell {
                axis: Axis::Pods,
                count,
                verb: Verb::Add,
                median: time(count as f64),
                error: 0.01,
                faults: 0.0,
                calls: 30,
            })
            .collect();
        growth(&cells.iter().collect::<Vec<_>>())
    }

    #[test]
    fn noise_is_flat() {
        assert_eq!(of(|_| 2.0), (Growth::Flat, None));
        assert_eq!(of(|n| 2.0 + n * 0.0002), (Growth::Flat, None));
        assert_eq!(of(|n| 2.0 - n * 0.001), (Growth::Flat, None));
        assert_eq!(of(|n| if n == 100.0 { 3.0 } else { 2.0 }).0, Growth::Flat);
    }

    #[test]
    fn a_constant_hides_neither_a_line_nor_a_square() {
        for base in [0.0, 2.0, 50.0] {
            let (growth, exponent) = of(|n| base + n * 0.05);
            assert_eq!(growth, Growth::Linear, "{base} {exponent:?}");
            assert_eq!(of(|n| base + n * n * 0.0001).0, Growth::Worse, "{base}");
        }
        let (growth, exponent) = of(|n| 2.0 + n * 0.05);
        assert_eq!(growth, Growth::Linear);
        assert!((exponent.unwrap() - 1.0).abs() < 0.05, "{exponent:?}");
    }

    #[test]
    fn a_square_that_only_many_show_is_seen() {
        assert_eq!(of(|n| 2.0 + n * 0.01 + n * n * 0.0001).0, Growth::Worse);
        assert_eq!(of(|n| 2.0 + n * n * 0.00001).0, Growth::Worse);
    }

    #[test]
    fn what_grows_with_the_logarithm_is_no_worse_than_a_line() {
        let (growth, exponent) = of(|n| 2.0 + n.ln());
        assert_eq!(growth, Growth::Linear);
        assert!(exponent.unwrap() < 0.5, "{exponent:?}");
    }
}
