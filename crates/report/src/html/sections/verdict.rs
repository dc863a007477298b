//! The verdict in words, and the few figures everybody asks for first.

use maud::{Markup, html};

use super::super::element::prose;
use super::made;
use crate::load::Loaded;

/// What the run came to, in a frame.
pub fn block(run: &Loaded, is_named: bool) -> Markup {
    let verdict = run.result.verdict();
    html! {
        section.verdict.(verdict.standing.class()) aria-label="verdict" {
            @if is_named { p.dim { b { (run.name) } " " (run.folder) } }
            p.words { (prose(&verdict.words())) }
            (reasons(run))
            @if is_named { (made::strip(run)) }
        }
    }
}

/// Why it came to that, what cannot be shown of it, and its expectations.
pub fn reasons(run: &Loaded) -> Markup {
    let reasons = run.result.verdict().reasons;
    let expectations = run.result.expectations();
    html! {
        @if !(reasons.is_empty() && run.missing.is_empty() && expectations.is_empty()) {
            ul {
                @for reason in &reasons { li { (prose(reason)) } }
                @for missing in &run.missing { li { (missing) } }
                @for expectation in expectations {
                    li { "expectation " (expectation.text) " " (if expectation.met { "met" } else { "FAILED" }) }
                }
            }
        }
    }
}

/// The first figures of one run.
pub fn tiles(run: &Loaded) -> Markup {
    let tiles = run.result.tiles();
    html! {
        @if !tiles.is_empty() {
            dl.tiles { @for tile in &tiles { (tile) } }
        }
    }
}
