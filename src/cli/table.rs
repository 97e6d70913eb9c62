//! Tables for people.

use crate::console;

/// Formats rows below a header. Each column is as wide as its widest cell. Commas separate the
/// column names in `header`.
pub(super) fn table(header: &str, rows: impl IntoIterator<Item = Vec<String>>) -> Vec<String> {
    let header = header.split(", ").map(str::to_owned).collect();
    let rows = [header].into_iter().chain(rows);
    let printable = |row: Vec<String>| row.iter().map(|cell| console::line(cell).into()).collect();
    let rows: Vec<Vec<String>> = rows.map(printable).collect();
    let mut widths = Vec::new();
    for row in &rows {
        widths.resize(row.len().max(widths.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths);
        let cells = cells.map(|(cell, width)| format!("{cell:<width$}  "));
        cells.collect::<String>().trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Formats a cell: the values separated by commas, or a dash if there are no values.
pub(super) fn cell<T: ToString>(values: impl IntoIterator<Item = T>) -> String {
    let values = values.into_iter().map(|value| value.to_string());
    match values.collect::<Vec<_>>().as_slice() {
        [] => "-".to_owned(),
        values => values.join(", "),
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
            table("IF, NETWORK", rows),
            ["IF    NETWORK", "eth0  a/b", "n     -"]
        );
        let foreign = [vec!["\u{9b}m\n".to_owned(), "b".to_owned()]];
        assert_eq!(table("A, B", foreign), ["A          B", r"\u{9b}m\n  b"]);
        assert_eq!(cell::<u8>([]), "-");
        assert_eq!(cell([1, 2]), "1, 2");
    }
}
