//! The verdict in words, and the few figures everybody asks for first.

use maud::{Markup, html};

use super::super::element::prose;
use super::made;
use crate::load::Loaded;

/// What the run came to, in a frame.
pub fn block(run: &Loaded, is_named: bool) -> Markup {
    let verdict = run.result.verdict();
    let expectations = run.result.expectations();
    let has_more = !(verdict.reasons.is_empty() && run.missing.is_empty() && expectations.is_empty());
    html! {
        section.verdict.(verdict.standing.class()) aria-label="verdict" {
            @if is_named { p.dim { b { (run.name) } " " (run.folder) } }
            p.words { (prose(&verdict.words())) }
            @if has_more {
                ul {
                    @for reason in &verdict.reasons { li { (prose(reason)) } }
                    @for missing in &run.missing { li { (missing) } }
                    @for expectation in expectations {
                        li { "expectation " (expectation.text) " " (if expectation.met { "met" } else { "FAILED" }) }
                    }
                }
            }
            @if is_named { (made::strip(run)) }
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
