//! Text for a terminal.

use super::Export;
use crate::{list, terminal};

/// The form.
pub const EXPORT: Export = Export {
    name: "terminal",
    help: "Show it in the terminal (that is what happens without any of these)",
    file: None,
    render: |shown| {
        let text = if shown.is_list {
            list::render(shown.runs, &shown.style)
        } else {
            terminal::runs(shown.runs, &shown.style)
        };
        Ok(shown.style.fitted(text))
    },
};
