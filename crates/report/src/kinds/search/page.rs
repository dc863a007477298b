//! A search: what each goal came to, every trial as a point, and the tests of RFC 2544.

use maud::{Markup, html};
use measure::Note;
use measure::search::{Bound, GoalResult, Rfc2544Result, SearchReport, SizeResult};

use super::terminal::caveats;
use super::{Searched, SearchedTrial, picture, tables};
use crate::html::element::details;
use crate::number::{count, pps, time, two_digits};
use crate::sheet::Sheet;
use crate::style::Paint;
use crate::table::Cell;

/// What was found, and what must be said of it, a line each.
pub fn answers(report: &SearchReport) -> Vec<String> {
    let goals = |size: &SizeResult| -> Vec<String> {
        let line = |goal: &GoalResult| {
            let rate = |bound: Option<Bound>| bound.map(|bound| pps(bound.rate_pps));
            let carried = rate(goal.lower).unwrap_or_else(|| "nothing".to_owned());
            let not = rate(goal.upper).map_or_else(String::new, |rate| format!(", not {rate}"));
            let (name, size, limit) = (&goal.name, &size.size, goal.limit);
            format!("{name}, frames of {size}: {carried} carried{not}; the limit is {limit}")
        };
        size.result.goals.iter().map(line).collect()
    };
    let mut lines: Vec<String> = report.sizes.iter().flat_map(goals).collect();
    lines.extend(
        caveats(report)
            .into_iter()
            .map(|(says, answers)| format!("{}: {says}", answers.join(", "))),
    );
    lines
}

/// The table of all goals, and of each size its trials.
pub fn render(searched: &Searched, named: &str, id: &str) -> Markup {
    let of_size = |size: &SizeResult| -> Vec<&SearchedTrial> {
        let trials = searched.trials.iter();
        trials.filter(|trial| trial.size == size.size).collect()
    };
    html! {
        section { h2 { "Rates" (named) } (goals(&searched.report)) }
        @for (at, size) in searched.report.sizes.iter().enumerate() {
            @let trials = of_size(size);
            section {
                h2 { "Frames of " (size.size) (named) }
                (picture::chart(&trials, &size.result.goals, &format!("{id}-trials-{at}")))
                (details("The same as a table", &as_table(&trials)))
                @if let Some(further) = &size.result.rfc2544 { (rfc2544(size, further)) }
            }
        }
    }
}

fn goals(report: &SearchReport) -> Markup {
    let answers = tables::answers(report).filter(|(_, goal)| goal.is_some());
    tables::rates(answers).html(
        "The answer lies between carried and not carried; latency (from the real departure, of each percentile the highest of any trial) and bit rates are of what is carried; trials at the one and the other",
    )
}

fn as_table(of_size: &[&SearchedTrial]) -> Markup {
    Sheet::of(of_size)
        .always()
        .name("trial", |one| one.number.to_string())
        .number("rate", |one| pps(one.trial.ask.rate_pps))
        .number("for", |one| time(one.trial.ask.seconds() * 1e9))
        .cell("lost", |one| match one.trial.lost.total() {
            0 => Cell::right("0"),
            lost => {
                let share = two_digits(one.trial.loss_ratio());
                Cell::right(format!("{} ({share})", count(lost))).paint(Paint::Bad)
            }
        })
        .number("unsent", |one| {
            count(one.trial.due.saturating_sub(one.trial.offered))
        })
        .words("why it was made", |one| one.why.clone())
        .words("not believed, because", |one| {
            Note::texts(&one.trial.invalid).join("; ")
        })
        .html("Trials in the order in which they were made")
}

fn rfc2544(size: &SizeResult, further: &Rfc2544Result) -> Markup {
    html! {
        h3 { "RFC 2544, frames of " (size.size) }
        @if let Some(latency) = &further.latency {
            (tables::latency(&size.size, latency).html("Latency at the throughput (RFC 2544, section 26.2)"))
        }
        (tables::frame_loss(&size.size, &further.frame_loss).html("Frame loss rate (section 26.3)"))
        @if let Some(burst) = &further.back_to_back {
            (tables::back_to_back(&size.size, burst).html("Back-to-back (section 26.4)"))
        }
    }
}
