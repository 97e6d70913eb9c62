//! Measures how the time of each call grows with what a node or a cluster has many of, and fails if
//! a call grows more than it may. `scripts/growth` prepares the node and calls it.
//!
//! ```text
//! growth node FOLDER                     figures of every axis that needs no API server
//! growth definitions FOLDER COUNT        figures with COUNT definitions, asking an agent
//! growth report FIGURES [PICTURE]        the table, the verdicts, and the picture as an SVG file
//! ```

mod axis;
mod call;
mod cell;
mod fit;
mod measure;
mod namespaces;
mod node;
mod nodes;
mod picture;
mod report;

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::num::ParseIntError;
use std::path::Path;
use std::process::ExitCode;

use axis::Axis;
use cell::Cell;

/// Any failure. The program only prints it.
type Failed = Box<dyn Error>;
type Outcome<T> = Result<T, Failed>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["node", folder] => node(Path::new(folder)).map(|text| (text, true)),
        ["definitions", folder, count] => {
            definitions(Path::new(folder), count.parse()).map(|text| (text, true))
        }
        ["report", figures] => report(figures, None),
        ["report", figures, picture] => report(figures, Some(picture)),
        _ => Err("usage: growth node FOLDER | definitions … | report FIGURES [PICTURE]".into()),
    };
    match done {
        Ok((text, is_kept)) => {
            #[allow(clippy::disallowed_methods, reason = "a report of its own")]
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::from(u8::from(!is_kept))
        }
        Err(cause) => {
            #[allow(clippy::disallowed_methods, reason = "a report of its own")]
            let _ = writeln!(std::io::stderr(), "growth: {cause}");
            ExitCode::from(2)
        }
    }
}

/// Measures every axis but that of definitions. Returns the lines of the figures.
fn node(root: &Path) -> Outcome<String> {
    let mut lines = String::new();
    for axis in Axis::ALL {
        if axis == Axis::Definitions {
            continue;
        }
        let mut nodes = nodes::nodes(root, axis)?;
        for cell in measure::measure(axis, &mut nodes)? {
            let _ = writeln!(lines, "{cell}");
        }
    }
    Ok(lines)
}

/// Measures one point of the axis of definitions. The agent of the node `definitions-COUNT` runs
/// already, and has read no definition.
fn definitions(root: &Path, count: Result<usize, ParseIntError>) -> Outcome<String> {
    let count = count?;
    let mut nodes = [(count, nodes::node_of_agent(root, count)?)];
    let mut lines = String::new();
    for cell in measure::measure(Axis::Definitions, &mut nodes)? {
        let _ = writeln!(lines, "{cell}");
    }
    Ok(lines)
}

/// The report on a file of figures, and whether no call grows more than it may.
fn report(figures: &str, picture: Option<&str>) -> Outcome<(String, bool)> {
    let lines = fs::read_to_string(figures)?;
    let cells = lines
        .lines()
        .map(str::parse)
        .collect::<Outcome<Vec<Cell>>>()?;
    if let Some(path) = picture {
        fs::write(path, picture::draw(&cells)?)?;
    }
    report::report(&cells)
}
