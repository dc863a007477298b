//! The report at the end of a run, for people: the verdict in words first, the run directory last.

use measure::{ReflectSummary, Summary};

use crate::load::{Loaded, Outcome};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};

mod charts;
mod compare;
pub(crate) mod comparison;
mod explanation;
pub(crate) mod headline;
pub(crate) mod ledger;
mod machine;
mod reflect;
pub(crate) mod search;
mod streams;
mod traffic;

pub use comparison::render as comparison;
pub use headline::ending;
pub use search::render as search;

/// The report of a `send` run.
pub fn render(summary: &Summary, style: &Style) -> String {
    let Summary {
        ports,
        queues,
        workers,
        pool,
        clock,
        ..
    } = summary;
    join(&[
        headline::send(summary, style),
        traffic::rates(summary, style),
        traffic::loss(summary, style),
        traffic::latency(summary, style),
        ledger::render(&summary.ledger, style),
        explanation::render(summary.explanation.as_ref(), style),
        streams::render(&summary.streams, style),
        machine::ports(ports, style),
        machine::queues(queues, style),
        machine::workers(workers, style),
        machine::pool_and_clock(pool, clock, style),
        ending(&summary.notes, &summary.run, style),
    ])
}

/// The report of a `reflect` run.
pub fn render_reflect(summary: &ReflectSummary, style: &Style) -> String {
    let ReflectSummary {
        ports,
        queues,
        workers,
        pool,
        clock,
        ..
    } = summary;
    join(&[
        headline::reflect(summary, style),
        reflect::frames(summary, style),
        explanation::render(summary.explanation.as_ref(), style),
        machine::ports(ports, style),
        machine::queues(queues, style),
        machine::workers(workers, style),
        machine::pool_and_clock(pool, clock, style),
        ending(&summary.notes, &summary.run, style),
    ])
}

/// The report of runs that were loaded again: of one all there is, of several the differences and their charts.
pub fn runs(runs: &[Loaded], style: &Style) -> String {
    match runs {
        [only] => join(&[
            one(only, style),
            charts::render(only, style),
            missing(only, style),
        ]),
        several => {
            let charts = several.iter().enumerate().map(|(at, run)| {
                let name = format!("[{}] {}", at + 1, run.name);
                join(&[
                    style.paint(Paint::Head, &name) + "\n" + &headline(run, style),
                    charts::render(run, style),
                    missing(run, style),
                ])
            });
            let sections: Vec<String> = std::iter::once(compare::render(several, style))
                .chain(charts)
                .collect();
            join(&sections)
        }
    }
}

/// What cannot be shown, and why.
fn missing(run: &Loaded, style: &Style) -> String {
    let lines = run.missing.iter();
    lines
        .map(|missing| crate::wrap::marked("note:", Paint::Warn, missing, style))
        .collect()
}

fn headline(run: &Loaded, style: &Style) -> String {
    match &run.outcome {
        Outcome::Send(summary) => headline::send(summary, style),
        Outcome::Reflect(summary) => headline::reflect(summary, style),
        Outcome::Search(searched) => search::render(&searched.report, style),
        Outcome::Compare(comparison) => comparison::render(comparison, style),
        Outcome::Intervals => String::new(),
    }
}

fn one(run: &Loaded, style: &Style) -> String {
    match &run.outcome {
        Outcome::Send(summary) => render(summary, style),
        Outcome::Reflect(summary) => render_reflect(summary, style),
        Outcome::Search(_) | Outcome::Compare(_) => headline(run, style),
        Outcome::Intervals => {
            let mut table = Table::section("Intervals", &[]);
            for row in crate::compare::rows(std::slice::from_ref(run)) {
                let value = row.values[0].map_or_else(|| "-".to_owned(), |value| row.metric.unit.show(value));
                table.item(&row.name(), [Cell::right(value)]);
            }
            table.render(style)
        }
    }
}

/// The sections that have something to say, a blank line between two.
fn join(sections: &[String]) -> String {
    let sections: Vec<&str> = sections
        .iter()
        .map(String::as_str)
        .filter(|section| !section.is_empty())
        .collect();
    sections.join("\n")
}
