//! Tables that are readable on a terminal and in Markdown alike.

use std::fmt::Write as _;

/// A table of these columns.
pub fn layout(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut all = vec![head.iter().map(ToString::to_string).collect::<Vec<_>>()];
    all.extend(rows);
    let width = |column: usize| {
        all.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    for (place, row) in all.iter().enumerate() {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{cell:width$}"))
            .collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
        if place == 0 {
            let lines: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
            let _ = writeln!(text, "| {} |", lines.join(" | "));
        }
    }
    text
}

/// A cell of a number that may be missing.
pub fn number(value: Option<f64>, places: usize) -> String {
    value.map_or_else(dash, |value| format!("{value:.places$}"))
}

/// A cell of nothing.
pub fn dash() -> String {
    "-".into()
}
