//! Columns for people.

use crate::console;

/// Lines of rows below a header, each column as wide as its widest cell.
pub(super) fn table(header: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let rows: Vec<Vec<_>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| console::line(cell)).collect())
        .collect();
    let width = |column: usize| {
        let cells = rows
            .iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count());
        cells
            .chain(header.get(column).map(|name| name.len()))
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        padded.join("  ").trim_end().to_owned()
    };
    let mut lines = vec![line(&mut header.iter().copied())];
    for row in &rows {
        lines.push(line(&mut row.iter().map(AsRef::as_ref)));
    }
    lines
}

/// A cell's values, or a dash.
pub(super) fn cell<T: ToString>(values: &[T]) -> String {
    match values {
        [] => "-".to_owned(),
        values => values
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [
            vec!["eth0".to_owned(), "a/b".to_owned()],
            vec!["n".to_owned(), "-".to_owned()],
        ];
        assert_eq!(
            table(&["IF", "NETWORK"], &rows),
            ["IF    NETWORK", "eth0  a/b", "n     -"]
        );
        let foreign = [vec!["\u{9b}m\n".to_owned(), "b".to_owned()]];
        assert_eq!(
            table(&["A", "B"], &foreign),
            ["A          B", r"\u{9b}m\n  b"]
        );
        assert_eq!(cell::<u8>(&[]), "-");
        assert_eq!(cell(&[1, 2]), "1, 2");
    }
}
