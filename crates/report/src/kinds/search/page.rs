//! A search: what each goal came to, every trial as a point, and the tests of RFC 2544.

#![allow(
    clippy::format_collect,
    clippy::format_push_string,
    reason = "a page is put together of small pieces, and made once a run"
)]

use measure::Note;
use measure::search::{Bound, Rfc2544Result, SearchReport, SizeResult};

use super::terminal::caveats;
use super::{Searched, SearchedTrial, picture};
use crate::html::element::{Cell, details, escape, table};
use crate::number::{bps, count, pps, time};

/// What was found, and what must be said of it, a line each.
pub fn answers(report: &SearchReport) -> Vec<String> {
    let mut lines: Vec<String> = report
        .sizes
        .iter()
        .flat_map(|size| size.result.goals.iter().map(move |goal| (size, goal)))
        .map(|(size, goal)| {
            let carried = goal
                .lower
                .map_or_else(|| "nothing".to_owned(), |bound| pps(bound.rate_pps));
            let not = goal
                .upper
                .map_or_else(String::new, |bound| format!(", not {}", pps(bound.rate_pps)));
            format!(
                "{}, frames of {}: {carried} carried{not}; the limit is {}",
                goal.name, size.size, goal.limit
            )
        })
        .collect();
    lines.extend(
        caveats(report)
            .into_iter()
            .map(|(says, answers)| format!("{}: {says}", answers.join(", "))),
    );
    lines
}

/// The table of all goals, and of each size its trials.
pub fn render(searched: &Searched, named: &str, id: &str) -> String {
    let mut page = format!(
        "<section><h2>Rates{}</h2>\n{}</section>\n",
        escape(named),
        goals(&searched.report)
    );
    for (at, size) in searched.report.sizes.iter().enumerate() {
        let of_size: Vec<&SearchedTrial> = searched
            .trials
            .iter()
            .filter(|trial| trial.size == size.size)
            .collect();
        page += &format!(
            "<section><h2>Frames of {}{}</h2>\n",
            escape(&size.size),
            escape(named)
        );
        page += &picture::chart(&of_size, &size.result.goals, &format!("{id}-trials-{at}"));
        page += &details("The same as a table", &as_table(&of_size));
        if let Some(further) = &size.result.rfc2544 {
            page += &rfc2544(size, further);
        }
        page += "</section>\n";
    }
    page
}

fn goals(report: &SearchReport) -> String {
    let rate = |bound: &Option<Bound>| {
        Cell::Number(bound.map_or_else(|| "-".to_owned(), |bound| pps(bound.rate_pps)))
    };
    let of_each = |size: &SizeResult| -> Vec<Vec<Cell>> {
        let row = |goal: &measure::search::GoalResult| {
            let bits = |pick: fn(&Bound) -> f64| {
                Cell::Number(
                    goal.lower
                        .map_or_else(|| "-".to_owned(), |bound| bps(pick(&bound))),
                )
            };
            let trials = [goal.lower, goal.upper].map(|bound| bound.map_or(0, |bound| bound.trials));
            vec![
                Cell::Name(size.size.clone()),
                Cell::Text(goal.name.clone()),
                Cell::Text(format!("{} %", goal.loss_ratio * 100.0)),
                rate(&goal.lower),
                rate(&goal.upper),
                bits(|bound| bound.rate_bps_l1),
                bits(|bound| bound.rate_bps_l2),
                Cell::Number(format!("{}+{}", trials[0], trials[1])),
                Cell::Text(goal.limit.to_string()),
            ]
        };
        size.result.goals.iter().map(row).collect()
    };
    let rows: Vec<Vec<Cell>> = report.sizes.iter().flat_map(of_each).collect();
    let head = [
        "size",
        "goal",
        "loss allowed",
        "carried",
        "not carried",
        "layer 1",
        "layer 2",
        "trials",
        "limit",
    ];
    table(
        "The answer lies between carried and not carried; bit rates are of what is carried; trials at the one and the other",
        &head,
        &rows,
    )
}

fn as_table(of_size: &[&SearchedTrial]) -> String {
    let rows: Vec<Vec<Cell>> = of_size
        .iter()
        .map(|one| {
            let trial = &one.trial;
            let lost = if trial.lost.total() == 0 {
                Cell::Number("0".to_owned())
            } else {
                Cell::Bad(format!(
                    "{} ({})",
                    count(trial.lost.total()),
                    picture::percent(trial.loss_ratio())
                ))
            };
            let unsent = trial.due.saturating_sub(trial.offered);
            vec![
                Cell::Name(one.number.to_string()),
                Cell::Number(pps(trial.ask.rate_pps)),
                Cell::Number(time(trial.ask.seconds() * 1e9)),
                lost,
                Cell::Number(count(unsent)),
                Cell::Text(one.why.clone()),
                Cell::Text(Note::texts(&trial.invalid).join("; ")),
            ]
        })
        .collect();
    let head = [
        "trial",
        "rate",
        "for",
        "lost",
        "unsent",
        "why it was made",
        "not believed, because",
    ];
    table("Trials in the order in which they were made", &head, &rows)
}

fn rfc2544(size: &SizeResult, further: &Rfc2544Result) -> String {
    let ns = |value: Option<f64>| Cell::Number(value.map_or_else(|| "-".to_owned(), time));
    let mut page = String::new();
    if let Some(latency) = &further.latency {
        let cells = vec![
            Cell::Number(pps(latency.rate_pps)),
            ns(latency.min_ns.map(|ns| ns as f64)),
            ns(latency.mean_ns),
            ns(latency.p50_ns),
            ns(latency.p99_ns),
            ns(latency.max_ns.map(|ns| ns as f64)),
            Cell::Number(latency.lost.map_or("-".to_owned(), count)),
            Cell::Number(latency.trials.to_string()),
        ];
        let head = ["rate", "min", "mean", "p50", "p99", "max", "lost", "trials"];
        page += &table(
            "Latency at the throughput (RFC 2544, section 26.2)",
            &head,
            &[cells],
        );
    }
    if !further.frame_loss.is_empty() {
        let rows: Vec<Vec<Cell>> = further
            .frame_loss
            .iter()
            .map(|row| {
                vec![
                    Cell::Name(format!("{} %", row.percent)),
                    Cell::Number(pps(row.asked_pps)),
                    Cell::Number(pps(row.offered_pps)),
                    Cell::Bar(row.loss_ratio, picture::percent(row.loss_ratio)),
                    Cell::Text(row.limit.map_or_else(String::new, |limit| limit.to_string())),
                ]
            })
            .collect();
        let head = ["of the highest", "asked", "offered", "lost", "by"];
        page += &table("Frame loss rate (section 26.3)", &head, &rows);
    }
    if let Some(burst) = &further.back_to_back {
        let open = if burst.is_open { " or more" } else { "" };
        let seconds = |value: f64| Cell::Number(time(value * 1e9));
        let cells = vec![
            Cell::Number(pps(burst.rate_pps)),
            Cell::Number(format!("{:.0}", burst.packets_mean)),
            Cell::Number(count(burst.packets_min)),
            Cell::Number(format!("{}{open}", count(burst.packets_max))),
            Cell::Number(format!("{:.1}", burst.packets_deviation)),
            seconds(burst.implied_buffer_s),
            burst
                .corrected_buffer_s
                .map_or_else(|| Cell::Number("-".to_owned()), seconds),
            Cell::Number(burst.repeats.to_string()),
            Cell::Text(burst.limit.map_or_else(String::new, |limit| limit.to_string())),
        ];
        let head = [
            "rate",
            "packets",
            "least",
            "most",
            "deviation",
            "buffer",
            "corrected (RFC 9004)",
            "times",
            "limit",
        ];
        page += &table("Back-to-back (section 26.4)", &head, &[cells]);
    }
    format!("<h3>RFC 2544, frames of {}</h3>\n{page}", escape(&size.size))
}
