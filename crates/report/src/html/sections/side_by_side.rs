//! Several runs side by side: what each came to, what they were not made alike in, every figure and its change.

use super::super::element::section;
use crate::compare::tables;
use crate::compare::{groups, members};
use crate::kind::Standing;
use crate::load::Loaded;
use crate::sheet::Sheet;
use crate::style::Paint;
use crate::table::Cell;

/// Each run in a row, and what it came to.
pub fn list(runs: &[Loaded]) -> String {
    let table = Sheet::of(runs)
        .name("run", |run| run.name.clone())
        .words("folder", |run| run.folder.clone())
        .words("kind", |run| {
            run.result.entry().map_or("", |entry| entry.command).to_owned()
        })
        .cell("verdict", |run| {
            let verdict = run.result.verdict();
            let is_bad = verdict.standing == Standing::Invalid;
            Cell::left(verdict.line()).paint(if is_bad { Paint::Bad } else { Paint::None })
        })
        .html("What each run came to");
    section("Runs", &table)
}

/// The tables of each kind of result.
pub fn sections(runs: &[Loaded]) -> String {
    let groups = groups(runs);
    let is_mixed = groups.len() > 1;
    let of_kind = |group: &Vec<usize>| {
        let of_kind = members(runs, group);
        let kind = of_kind[0].result.compared_with();
        let mut inner = String::new();
        if is_mixed || of_kind.len() > super::FRAMES_MAX {
            inner += &tables::first_figures(&of_kind)
                .map_or_else(String::new, |table| table.html("First figures"));
        }
        if of_kind.len() > 1 {
            inner += &tables::settings(&of_kind).html("What the runs were not made alike in");
            inner +=
                &tables::figures(&of_kind).html("Each run against the first; worse and better from 5 % on");
        }
        let title = match of_kind.len() {
            1 => format!("One run of {kind}"),
            _ if is_mixed => format!("Side by side: {kind}"),
            _ => "Side by side".to_owned(),
        };
        section(&title, &inner)
    };
    groups.iter().map(of_kind).collect()
}
