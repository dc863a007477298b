//! Several runs side by side: what each came to, what they were not made alike in, every figure and its change.

use maud::{Markup, html};

use super::super::element::section;
use crate::compare::tables;
use crate::compare::{groups, members};
use crate::kind::Standing;
use crate::load::Loaded;
use crate::sheet::Sheet;
use crate::style::Paint;
use crate::table::Cell;

/// Each run in a row, and what it came to.
pub fn list(runs: &[Loaded]) -> Markup {
    let table = Sheet::of(runs)
        .name("run", |run| run.name.clone())
        .words("folder", |run| run.folder.clone())
        .words("kind", |run| {
            run.result.entry().map_or("", |entry| entry.command).to_owned()
        })
        .cell("verdict", |run| {
            let is_bad = run.result.verdict().standing == Standing::Invalid || run.failed() > 0;
            Cell::left(run.line()).paint(if is_bad { Paint::Bad } else { Paint::None })
        })
        .html("What each run came to");
    section("Runs", &table)
}

/// The tables of each kind of result.
pub fn sections(runs: &[Loaded]) -> Markup {
    let groups = groups(runs);
    let is_mixed = groups.len() > 1;
    let of_kind = |group: &[usize]| {
        let of_kind = members(runs, group);
        let kind = of_kind[0].result.compared_with();
        let has_first = is_mixed || of_kind.len() > super::FRAMES_MAX;
        let inner = html! {
            @if let Some(table) = has_first.then(|| tables::first_figures(&of_kind)).flatten() {
                (table.html("First figures"))
            }
            @if of_kind.len() > 1 {
                (tables::settings(&of_kind).html("What the runs were not made alike in"))
                (tables::figures(&of_kind).html("Each run against the first; worse and better from 5 % on"))
            }
        };
        let title = match of_kind.len() {
            1 => format!("One run of {kind}"),
            _ if is_mixed => format!("Side by side: {kind}"),
            _ => "Side by side".to_owned(),
        };
        section(&title, &inner)
    };
    html! { @for group in &groups { (of_kind(group)) } }
}
