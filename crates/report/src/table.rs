//! Lays cells out in columns of a terminal: numbers to the right, words to the left, no lines but white space.

use maud::{Markup, html};
use unicode_width::UnicodeWidthStr;

use crate::input::clean;
use crate::number::count;
use crate::style::{Paint, Style};

/// Columns between two cells.
const GAP: usize = 2;

/// Text in one column of one row.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    pub(crate) text: String,
    pub(crate) right: bool,
    pub(crate) paint: Paint,
    /// A part of a whole (0 to 1) that a page shows as a bar.
    pub(crate) bar: Option<f64>,
}

impl Cell {
    /// Words, set to the left.
    pub fn left(text: impl Into<String>) -> Self {
        Self {
            // Names and reasons come from elsewhere (devices, peers): none may move the cursor.
            text: clean(&text.into()),
            ..Self::default()
        }
    }

    /// A number, set to the right.
    pub fn right(text: impl Into<String>) -> Self {
        Self {
            right: true,
            ..Self::left(text)
        }
    }

    /// A part of a whole (0 to 1) in words; a page shows it as a bar, too.
    pub fn bar(part: f64, text: impl Into<String>) -> Self {
        Self {
            bar: Some(part),
            ..Self::right(text)
        }
    }

    /// Such a part in percent.
    pub fn share(part: f64) -> Self {
        Self::bar(part, format!("{:.1} %", part * 100.0))
    }

    /// The same cell in `paint`.
    #[must_use]
    pub fn paint(mut self, paint: Paint) -> Self {
        self.paint = paint;
        self
    }

    fn width(&self) -> usize {
        self.text.width()
    }

    /// Whether a page sets it to the right.
    pub(crate) fn is_number(&self) -> bool {
        self.right && self.bar.is_none()
    }

    /// As a page shows it; what wants a look stands out.
    pub(crate) fn html(&self) -> Markup {
        let text = &self.text;
        let Some(part) = self.bar else {
            let class = match (self.right, matches!(self.paint, Paint::Warn | Paint::Bad)) {
                (true, true) => Some("n bad"),
                (true, false) => Some("n"),
                (false, true) => Some("bad"),
                (false, false) => None,
            };
            return html! { td class=[class] { (text) } };
        };
        let width = format!("width:{:.2}%", 100.0 * part.clamp(0.0, 1.0));
        html! {
            td.bars { span.bar { span style=(width) {} } span.label { (text) } }
        }
    }
}

/// Rows of cells.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Vec<Cell>>,
    indent: usize,
}

impl Table {
    /// An empty table whose rows begin `indent` columns from the left.
    pub fn indented(indent: usize) -> Self {
        Self {
            rows: Vec::new(),
            indent,
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// A table whose first row is its name, and the dim titles of its further columns; those that begin with `>`
    /// are set to the right.
    pub fn section(name: &str, titles: &[&str]) -> Self {
        Self::headed(
            name,
            titles.iter().map(|title| match title.strip_prefix('>') {
                Some(title) => Cell::right(title),
                None => Cell::left(*title),
            }),
        )
    }

    /// The same of titles that are cells.
    pub(crate) fn headed(name: &str, titles: impl Iterator<Item = Cell>) -> Self {
        let titles = titles.map(|title| title.paint(Paint::Dim));
        let mut table = Self::default();
        table.row(std::iter::once(Cell::left(name).paint(Paint::Head)).chain(titles));
        table
    }

    /// Adds a row of a section: its name, set in a little, and its cells.
    pub fn item(&mut self, name: &str, cells: impl IntoIterator<Item = Cell>) {
        self.row(std::iter::once(Cell::left(format!("  {name}"))).chain(cells));
    }

    /// Whether a section has more than its name and titles.
    pub fn has_items(&self) -> bool {
        self.rows.len() > 1
    }

    /// The lines, each ended. What does not fit the style's width is shortened in the widest left-set column
    /// (numbers are never shortened), and never below eight columns; but a name, in the first one, gets a line of its own.
    pub fn render(&self, style: &Style) -> String {
        self.render_rows(style).concat()
    }

    /// The same, row by row: a row whose name has a line of its own is two lines.
    pub fn render_rows(&self, style: &Style) -> Vec<String> {
        let widths = self.widths(style.width);
        self.rows
            .iter()
            .map(|row| self.render_row(row, &widths, style))
            .collect()
    }

    fn render_row(&self, row: &[Cell], widths: &[usize], style: &Style) -> String {
        let mut text = String::new();
        let mut line = " ".repeat(self.indent);
        let mut pending = 0;
        for (index, (cell, &width)) in row.iter().zip(widths).enumerate() {
            if index == 0 && !cell.right && row.len() > 1 && cell.width() > width {
                let whole = shorten(&cell.text, style.width.saturating_sub(self.indent), style);
                line.push_str(&style.paint(cell.paint, &whole));
                text.push_str(&line);
                text.push('\n');
                (line, pending) = (" ".repeat(self.indent), width + GAP);
                continue;
            }
            let shown = shorten(&cell.text, width, style);
            let space = width - shown.width().min(width);
            let (before, after) = if cell.right { (space, 0) } else { (0, space) };
            // White space is held back until something follows it: no line ends in blanks.
            if shown.is_empty() {
                pending += width + GAP;
            } else {
                line.push_str(&" ".repeat(pending + before));
                line.push_str(&style.paint(cell.paint, &shown));
                pending = after + GAP;
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
        text
    }

    /// Columns that it takes where there is room.
    pub fn width(&self) -> usize {
        let widths = self.widths(usize::MAX);
        self.indent + widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
    }

    fn widths(&self, fit: usize) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cells = |column: usize| self.rows.iter().filter_map(move |row| row.get(column));
        let widest = |column: usize| cells(column).map(Cell::width).max().unwrap_or(0);
        let mut widths: Vec<usize> = (0..columns).map(widest).collect();
        let total = self.indent + widths.iter().sum::<usize>() + GAP * columns.saturating_sub(1);
        let words = |column: &usize| cells(*column).all(|cell| !cell.right || cell.width() <= 8);
        if let Some(widest) = (0..columns).filter(words).max_by_key(|&column| widths[column]) {
            widths[widest] = widths[widest]
                .saturating_sub(total.saturating_sub(fit))
                .max(widths[widest].min(8));
        }
        widths
    }
}

/// `text` in at most `width` columns, its end replaced when it is longer.
pub(crate) fn shorten(text: &str, width: usize, style: &Style) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    if width == 0 {
        return String::new();
    }
    let mark = if style.unicode { "…" } else { "~" };
    let mut short = String::new();
    for c in text.chars() {
        short.push(c);
        if short.width() + 1 > width {
            short.pop();
            break;
        }
    }
    short + mark
}

/// A count that ought to be 0.
pub(crate) fn bad(number: u64) -> Cell {
    Cell::right(count(number)).paint(if number == 0 { Paint::None } else { Paint::Warn })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::section("Name", &[">packets", "what"]);
        table.item(
            "a",
            [Cell::right("1,000"), Cell::left("a long remark that may be cut")],
        );
        table.item("bbb", [Cell::right("7")]);
        table
    }

    #[test]
    fn numbers_right_words_left() {
        let expected =
            "Name   packets  what\n  a      1,000  a long remark that may be cut\n  bbb        7\n";
        assert_eq!(sample().render(&Style::plain()), expected);
    }

    #[test]
    fn words_give_way_and_numbers_do_not() {
        let narrow = Style {
            width: 30,
            ..Style::plain()
        };
        let expected = "Name   packets  what\n  a      1,000  a long remark~\n  bbb        7\n";
        assert_eq!(sample().render(&narrow), expected);
    }

    #[test]
    fn a_name_is_never_cut_for_numbers() {
        let mut table = Table::section("Name", &[">packets"]);
        table.item("preempted by somebody (77)", [Cell::right("1,000")]);
        table.item("tick", [Cell::right("7")]);
        let narrow = Style {
            width: 30,
            ..Style::plain()
        };
        let expected = "Name                   packets\n  preempted by somebody (77)\n                         1,000\n  tick                       7\n";
        assert_eq!(table.render(&narrow), expected);
    }

    #[test]
    fn colour_does_not_move_a_column() {
        let mut table = Table::indented(0);
        table.row([Cell::left("x").paint(Paint::Bad), Cell::right("1")]);
        let coloured = Style {
            color: true,
            ..Style::plain()
        };
        assert_eq!(table.render(&coloured), "\x1b[1;31mx\x1b[0m  1\n");
    }

    #[test]
    fn a_name_cannot_move_the_cursor() {
        let mut table = Table::indented(0);
        table.row([Cell::left("evil\x1b[2J\nname")]);
        assert_eq!(table.render(&Style::plain()), "evil?[2J?name\n");
    }
}
