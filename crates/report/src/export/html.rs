//! One page with charts, in one file.

use super::{Export, Written};
use crate::html;

/// The form.
pub const EXPORT: Export = Export {
    name: "html",
    help: "Write one self-contained page with charts; - is standard output",
    file: Some(Written {
        what: "page",
        extensions: &["html", "htm"],
    }),
    render: |shown| html::page(shown.runs),
};
