//! The report at the end of a run, for people: the verdict in words first, the run directory last.

use measure::{ReflectSummary, Summary};

use crate::style::Style;

mod explanation;
pub(crate) mod headline;
pub(crate) mod ledger;
mod machine;
mod reflect;
mod streams;
mod traffic;

pub use headline::ending;

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

/// The report of runs that were loaded again.
pub fn runs(runs: &[crate::load::Loaded], style: &Style) -> String {
    runs.iter()
        .filter_map(|run| run.summary())
        .map(|summary| render(summary, style))
        .collect()
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
