//! The table of figures and verdicts.

use std::fmt::Write as _;

use crate::Outcome;
use crate::axis::Axis;
use crate::call::Verb;
use crate::cell::Cell;
use crate::fit::{Growth, growth};

/// The table, and whether no call grows more than it may.
///
/// # Errors
/// If figures of a call are missing.
pub(crate) fn report(cells: &[Cell]) -> Outcome<(String, bool)> {
    let mut text = String::new();
    let mut is_kept = true;
    for axis in Axis::ALL {
        let points = axis.points().iter().map(|count| format!("{count:>9}"));
        let points: String = points.collect();
        let _ = writeln!(text, "\n{}, ms per call (median)", axis.title());
        let _ = writeln!(text, "{:<8}{points}  page faults    exponent", "");
        for verb in Verb::ALL {
            let row = of(cells, axis, verb)?;
            let (found, exponent) = growth(&row);
            let allowed = axis.allowed(verb);
            is_kept &= found <= allowed;
            let times: String = row.iter().map(|it| format!("{:>9.2}", it.median)).collect();
            let faults = row.first().zip(row.last());
            let faults =
                faults.map(|(first, last)| format!("{:.0} → {:.0}", first.faults, last.faults));
            let exponent = exponent.map_or_else(|| "-".to_owned(), |it| format!("{it:.2}"));
            let _ = writeln!(
                text,
                "{:<8}{times}  {:<14} {exponent:>8}  {:<6} {}",
                verb.name(),
                faults.unwrap_or_default(),
                found.word(),
                verdict(found, allowed),
            );
        }
    }
    text.push('\n');
    text.push_str(&summary(cells)?);
    Ok((text, is_kept))
}

fn verdict(found: Growth, allowed: Growth) -> String {
    match found <= allowed {
        true => "as it may".to_owned(),
        false => format!("TOO MUCH: {} at most", allowed.word()),
    }
}

/// The first and the last time of each call, and its growth, as the table of
/// `docs/SPECIFICATION.md`.
fn summary(cells: &[Cell]) -> Outcome<String> {
    let names: String = Verb::ALL
        .iter()
        .map(|verb| format!(" {} |", verb.name()))
        .collect();
    let mut text = format!(
        "| What grows |{names}\n|---|{}\n",
        "---|".repeat(Verb::ALL.len())
    );
    for axis in Axis::ALL {
        let ends = axis.points().first().zip(axis.points().last());
        let (first, last) = ends.ok_or("an axis has no points")?;
        let _ = write!(text, "| {}: {first} → {last} |", axis.title());
        for verb in Verb::ALL {
            let row = of(cells, axis, verb)?;
            let (found, _) = growth(&row);
            let ends = row.first().zip(row.last());
            let (first, last) = ends.ok_or("a row is empty")?;
            let _ = write!(
                text,
                " {:.1} → {:.1} ms, {} |",
                first.median,
                last.median,
                found.word()
            );
        }
        text.push('\n');
    }
    Ok(text)
}

/// The figures of one call on one axis, in the order of the axis.
///
/// # Errors
/// If a point is missing.
pub(crate) fn of(cells: &[Cell], axis: Axis, verb: Verb) -> Outcome<Vec<&Cell>> {
    let find = |count: &usize| {
        let cell = cells
            .iter()
            .find(|it| (it.axis, it.verb, it.count) == (axis, verb, *count));
        let missing = || format!("no figures of {} with {count} {}", verb.name(), axis.name());
        cell.ok_or_else(|| missing().into())
    };
    axis.points().iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures of everything; `time` is the time of a call at a point.
    fn cells(time: impl Fn(Axis, Verb, usize) -> f64) -> Vec<Cell> {
        let mut cells = Vec::new();
        for axis in Axis::ALL {
            for (verb, count) in Verb::ALL
                .into_iter()
                .flat_map(|verb| axis.points().iter().map(move |count| (verb, *count)))
            {
                let time = time(axis, verb, count);
                cells.push(Cell::of(axis, count, verb, &[(time, 100.0)]));
            }
        }
        cells
    }

    #[test]
    fn what_grows_without_need_is_too_much_and_named() {
        let (text, is_kept) = report(&cells(|_, _, _| 2.0)).unwrap();
        assert!(is_kept, "{text}");
        let grows = |axis, verb, count: usize| match (axis, verb) {
            (Axis::Definitions, Verb::Status) => 2.0 + count as f64,
            _ => 2.0,
        };
        let (text, is_kept) = report(&cells(grows)).unwrap();
        assert!(!is_kept);
        let lines = text.lines().filter(|line| line.contains("TOO MUCH"));
        let lines: Vec<&str> = lines.collect();
        assert_eq!(lines.len(), 1, "{text}");
        assert!(lines[0].starts_with("STATUS ") && lines[0].ends_with("TOO MUCH: flat at most"));
    }

    #[test]
    fn gc_may_grow_with_the_pods_but_not_with_their_square() {
        let gc = |power: i32| {
            let grows = move |axis, verb, count: usize| match (axis, verb) {
                (Axis::Pods, Verb::Gc) => 2.0 + (count as f64).powi(power),
                _ => 2.0,
            };
            report(&cells(grows)).unwrap().1
        };
        assert!(gc(1));
        assert!(!gc(2));
    }

    #[test]
    fn a_missing_point_is_an_error() {
        let mut cells = cells(|_, _, _| 2.0);
        cells.pop();
        assert!(report(&cells).is_err());
    }
}
