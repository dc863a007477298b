//! One description of a table, column by column, that is drawn in a terminal and in a page.

use maud::{Markup, html};
use unicode_width::UnicodeWidthStr as _;

use crate::style::{Paint, Style};
use crate::table::{Cell, Table};

/// Names of more bytes may be broken into lines in a page.
const SHORT: usize = 16;

/// A table of items, a row each; without items it is not drawn.
pub(crate) struct Sheet<T> {
    items: Vec<T>,
    columns: Vec<Column>,
    is_drawn: bool,
}

struct Column {
    title: String,
    /// The same in a terminal, which has less room.
    short: String,
    cells: Vec<Cell>,
    is_name: bool,
    is_right: bool,
    /// The width of terminal that it takes to be there.
    from_width: usize,
    is_on_page: bool,
}

impl<T> Sheet<T> {
    /// Without a column.
    pub fn of(items: impl IntoIterator<Item = T>) -> Self {
        let items: Vec<T> = items.into_iter().collect();
        Self {
            is_drawn: !items.is_empty(),
            items,
            columns: Vec::new(),
        }
    }

    /// Its titles stand there also over no row.
    pub fn always(mut self) -> Self {
        self.is_drawn = true;
        self
    }

    /// Adds a column.
    pub fn cell(mut self, title: &str, cell: impl Fn(&T) -> Cell) -> Self {
        let cells: Vec<Cell> = self.items.iter().map(cell).collect();
        self.columns.push(Column {
            title: title.to_owned(),
            short: title.to_owned(),
            is_right: cells.first().is_none_or(|cell| cell.right),
            cells,
            is_name: false,
            from_width: 0,
            is_on_page: true,
        });
        self
    }

    /// Adds a column of numbers.
    pub fn number(self, title: &str, number: impl Fn(&T) -> String) -> Self {
        self.cell(title, |item| Cell::right(number(item)))
    }

    /// Adds a column of numbers that not every item has.
    pub fn optional(self, title: &str, number: impl Fn(&T) -> Option<String>) -> Self {
        self.number(title, |item| number(item).unwrap_or_else(|| "-".to_owned()))
    }

    /// Adds a column of words.
    pub fn words(self, title: &str, words: impl Fn(&T) -> String) -> Self {
        self.cell(title, |item| Cell::left(words(item)))
    }

    /// Adds the column of what the rows are called; in a terminal it has the name of the table above it.
    pub fn name(self, title: &str, name: impl Fn(&T) -> String) -> Self {
        let mut sheet = self.words(title, name);
        if let Some(column) = sheet.columns.last_mut() {
            column.is_name = true;
        }
        sheet
    }

    /// In a terminal the last column has this title.
    pub fn short(mut self, title: &str) -> Self {
        if let Some(column) = self.columns.last_mut() {
            title.clone_into(&mut column.short);
        }
        self
    }

    /// The last column is in terminals of this width only (and in pages).
    pub fn at_width(mut self, width: usize) -> Self {
        if let Some(column) = self.columns.last_mut() {
            column.from_width = width;
        }
        self
    }

    /// The last column is there at all.
    pub fn when(mut self, is_there: bool) -> Self {
        if !is_there {
            self.columns.pop();
        }
        self
    }

    /// The last column is in pages only.
    pub fn on_page(self) -> Self {
        self.at_width(usize::MAX)
    }

    /// The last column is in terminals only.
    pub fn in_terminal(mut self) -> Self {
        if let Some(column) = self.columns.last_mut() {
            column.is_on_page = false;
        }
        self
    }

    /// The last column is of what is not shortened, but stands to the left.
    pub fn set_left(mut self) -> Self {
        if let Some(column) = self.columns.last_mut() {
            column.is_right = false;
            let widest = column
                .cells
                .iter()
                .map(|cell| cell.text.width())
                .max()
                .unwrap_or(0);
            for cell in &mut column.cells {
                let space = widest - cell.text.width();
                cell.text.push_str(&" ".repeat(space));
            }
        }
        self
    }

    /// Without a name: its rows begin at the left.
    pub fn terminal_rows(&self, style: &Style) -> String {
        if !self.is_drawn {
            return String::new();
        }
        let columns = self.shown(style);
        let mut table = Table::indented(0);
        table.row(columns.iter().map(|column| column.short_title()));
        for row in 0..self.items.len() {
            table.row(columns.iter().map(|column| column.cells[row].clone()));
        }
        table.render(style)
    }

    /// Under the name `name`.
    pub fn terminal(&self, name: &str, style: &Style) -> String {
        if !self.is_drawn {
            return String::new();
        }
        self.part(name, &self.shown(style)).render(style)
    }

    /// The columns, without the names of the rows, that a terminal has room for.
    fn shown(&self, style: &Style) -> Vec<&Column> {
        let columns = self.columns.iter();
        columns
            .filter(|column| !column.is_name && style.width >= column.from_width)
            .collect()
    }

    /// Some of its columns beside the names of the rows.
    fn part(&self, name: &str, columns: &[&Column]) -> Table {
        let names = self
            .columns
            .iter()
            .find(|column| column.is_name && column.from_width == 0);
        let titles = columns.iter().map(|column| column.short_title());
        let mut table = Table::headed(name, titles);
        for row in 0..self.items.len() {
            let of_row = names.map_or("", |column| &column.cells[row].text);
            table.item(of_row, columns.iter().map(|column| column.cells[row].clone()));
        }
        table
    }

    /// With a caption.
    pub fn html(&self, caption: &str) -> Markup {
        let columns = || self.columns.iter().filter(|column| column.is_on_page);
        html! {
            @if self.is_drawn {
                div.scroll tabindex="0" role="region" aria-label=(caption) {
                    table {
                        caption { (caption) }
                        thead { tr { @for column in columns() { (column.head()) } } }
                        tbody {
                            @for row in 0..self.items.len() {
                                tr { @for column in columns() { (column.html(row)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

impl Column {
    /// Over its cells in a terminal.
    fn short_title(&self) -> Cell {
        let title = Cell {
            right: self.is_right,
            ..Cell::left(&self.short)
        };
        title.paint(Paint::Dim)
    }

    fn head(&self) -> Markup {
        let is_number = self.cells.first().is_some_and(Cell::is_number);
        html! { th scope="col" class=[is_number.then_some("n")] { (self.title) } }
    }

    fn html(&self, row: usize) -> Markup {
        let cell = &self.cells[row];
        if !self.is_name {
            return cell.html();
        }
        let is_long = cell.text.len() > SHORT;
        html! { th scope="row" class=[is_long.then_some("long")] { (cell.text) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bars of one column begin and end in one place, however wide their words are.
    #[test]
    fn words_of_bars_have_a_column_of_their_own() {
        let cell = Cell::bar(0.5, "68.86 kpps").html().into_string();
        assert!(
            cell.starts_with(r#"<td class="bars">"#)
                && cell.contains(r#"<span class="label">68.86 kpps</span>"#)
        );
    }

    #[test]
    fn what_has_no_room_in_a_terminal_is_in_the_page() {
        let sheet = Sheet::of([7])
            .name("of", |number| format!("item {number}"))
            .number("duplicate", u64::to_string)
            .short("dup")
            .words("wide", |_| "more".to_owned())
            .at_width(100)
            .number("never", u64::to_string)
            .when(false);
        assert_eq!(
            sheet.terminal("Name", &Style::plain()),
            "Name      dup\n  item 7    7\n"
        );
        assert!(sheet.html("Caption").0.contains(
            r#"<thead><tr><th scope="col">of</th><th scope="col" class="n">duplicate</th><th scope="col">wide</th></tr></thead>"#
        ));
    }
}
