//! The result of a search for people: a table for each frame size, and what it means in words.

use std::fmt::Write as _;

use measure::Note;
use measure::search::rfc2544::BackToBackResult;
use measure::search::{Bound, GoalResult, Limit, Rfc2544Result, SearchReport, SizeResult};
use measure::units::{format_bps, format_count, format_duration, format_rate};

use crate::number::{counted, span};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::terminal::ending;
use crate::wrap::{marked, wrapped};

/// The whole report.
pub fn render(report: &SearchReport, style: &Style) -> String {
    let mut text = headline(report, style);
    text.push('\n');
    text.push_str(&goals(report, style).render(style));
    for (says, answers) in caveats(report) {
        let line = format!("{}: {says}", answers.join(", "));
        wrapped(&mut text, &line, 0, Paint::Warn, style);
    }
    for size in &report.sizes {
        if let Some(further) = &size.result.rfc2544 {
            text.push_str(&rfc2544(size, further, style));
        }
    }
    text.push('\n');
    text + &ending(&report.notes, &report.run, style)
}

fn headline(report: &SearchReport, style: &Style) -> String {
    let spent = format!(
        "{}, {} of sending",
        counted(report.trials, "trial"),
        span(report.seconds)
    );
    if report.complete {
        return format!("{}: {spent}\n", style.paint(Paint::Good, "FOUND"));
    }
    let reasons = Note::texts(&report.reasons).join("; ");
    marked("NOT FINISHED:", Paint::Bad, &reasons, style) + &spent + "\n"
}

/// Narrower than this, the table has no room for the rates of layer 2, which follow from the others.
const COLUMNS_WITH_LAYER_2: usize = 100;

fn goals(report: &SearchReport, style: &Style) -> Table {
    let has_layer_2 = style.width >= COLUMNS_WITH_LAYER_2;
    let mut titles = vec!["goal", ">carried", ">not carried", ">layer 1"];
    if has_layer_2 {
        titles.push(">layer 2");
    }
    titles.extend([">trials", "limit"]);
    let mut table = Table::section("Rate", &titles);
    for size in &report.sizes {
        for goal in &size.result.goals {
            let rate =
                |bound: &Option<Bound>| bound.map_or("-".to_owned(), |bound| format_rate(bound.rate_pps));
            let bits = |pick: fn(&Bound) -> f64| {
                goal.lower
                    .map_or("-".to_owned(), |bound| format_bps(pick(&bound)))
            };
            let trials = |bound: &Option<Bound>| bound.map_or(0, |bound| bound.trials);
            let paint = if goal.limit.is_path() {
                Paint::None
            } else {
                Paint::Warn
            };
            let mut cells = vec![
                Cell::left(goal.name.clone()),
                Cell::right(rate(&goal.lower)),
                Cell::right(rate(&goal.upper)),
                Cell::right(bits(|bound| bound.rate_bps_l1)),
            ];
            if has_layer_2 {
                cells.push(Cell::right(bits(|bound| bound.rate_bps_l2)));
            }
            cells.push(Cell::right(format!(
                "{}+{}",
                trials(&goal.lower),
                trials(&goal.upper)
            )));
            cells.push(Cell::left(goal.limit.to_string()).paint(paint));
            table.item(&size.size, cells);
        }
        if size.range.is_none() {
            table.item(&size.size, [Cell::left("not begun").paint(Paint::Warn)]);
        }
    }
    table
}

/// What must be said, and of which answers.
pub fn caveats(report: &SearchReport) -> Vec<(&'static str, Vec<String>)> {
    let mut caveats: Vec<(&str, Vec<String>)> = Vec::new();
    for size in &report.sizes {
        for goal in &size.result.goals {
            let Some(says) = caveat(goal) else { continue };
            let answer = format!("{} {}", size.size, goal.name);
            match caveats.iter_mut().find(|(known, _)| *known == says) {
                Some((_, answers)) => answers.push(answer),
                None => caveats.push((says, vec![answer])),
            }
        }
    }
    caveats
}

/// What must be said of an answer that is not one about the path.
fn caveat(goal: &GoalResult) -> Option<&'static str> {
    Some(match goal.limit {
        Limit::Sender => "our sender could not offer more: the path may carry more than this",
        Limit::Receiver => "our receiver lost packets above this: the path may carry more",
        Limit::Reflector => "the reflector lost packets above this: the path may carry more",
        Limit::MaxRate => {
            "the highest rate asked for was carried: give a higher --max-rate to find the limit"
        }
        Limit::MinRate => {
            "not even the lowest rate was carried: give a lower --min-rate, or look at the path with dropless send"
        }
        Limit::Unknown => "the search did not get far enough to tell",
        Limit::Path | Limit::Line => return None,
    })
}

fn rfc2544(size: &SizeResult, further: &Rfc2544Result, style: &Style) -> String {
    let mut text = String::new();
    let ns = |value: Option<f64>| value.map_or("-".to_owned(), |ns| format_duration(ns.round() as u64));
    if let Some(latency) = &further.latency {
        let mut table = Table::section(
            "Latency",
            &[">rate", ">min", ">mean", ">p50", ">p99", ">max", ">trials"],
        );
        table.item(
            &size.size,
            [
                Cell::right(format_rate(latency.rate_pps)),
                Cell::right(ns(latency.min_ns.map(|ns| ns as f64))),
                Cell::right(ns(latency.mean_ns)),
                Cell::right(ns(latency.p50_ns)),
                Cell::right(ns(latency.p99_ns)),
                Cell::right(ns(latency.max_ns.map(|ns| ns as f64))),
                Cell::right(latency.trials.to_string()),
            ],
        );
        text.push('\n');
        text.push_str(&table.render(style));
        if let Some(lost) = latency.lost.filter(|lost| *lost > 0) {
            let lost = counted(lost, "packet");
            // A `String` takes everything.
            let _ = writeln!(text, "  {lost} of these trials never came, and have no latency");
        }
    }
    if !further.frame_loss.is_empty() {
        let mut table = Table::section(
            "Frame loss",
            &[">of highest", ">asked", ">offered", ">lost", "by"],
        );
        for row in &further.frame_loss {
            let cells = [
                Cell::right(format!("{} %", row.percent)),
                Cell::right(format_rate(row.asked_pps)),
                Cell::right(format_rate(row.offered_pps)),
                Cell::right(format!("{:.4} %", row.loss_ratio * 100.0)),
                Cell::left(row.limit.map_or(String::new(), |limit| limit.to_string())),
            ];
            table.item(&size.size, cells);
        }
        text.push('\n');
        text.push_str(&table.render(style));
    }
    if let Some(burst) = &further.back_to_back {
        text.push('\n');
        text.push_str(&back_to_back(&size.size, burst, style).render(style));
    }
    text
}

/// Narrower than this, the table has no room for what says least.
const COLUMNS_OF_BURSTS: usize = 92;
const SAYS_LEAST: [&str; 2] = [">deviation", ">times"];

fn back_to_back(size: &str, burst: &BackToBackResult, style: &Style) -> Table {
    let seconds = |value: f64| format_duration((value * 1e9).round() as u64);
    let most = if burst.is_open { "or more" } else { "" };
    let mut columns = vec![
        (">rate", Cell::right(format_rate(burst.rate_pps))),
        (">packets", Cell::right(format!("{:.0}", burst.packets_mean))),
        (">least", Cell::right(format_count(burst.packets_min))),
        (
            ">most",
            Cell::right(format!("{} {most}", format_count(burst.packets_max)).trim()),
        ),
        (
            ">deviation",
            Cell::right(format!("{:.1}", burst.packets_deviation)),
        ),
        (">buffer", Cell::right(seconds(burst.implied_buffer_s))),
        (
            ">corrected",
            Cell::right(burst.corrected_buffer_s.map_or("-".to_owned(), seconds)),
        ),
        (">times", Cell::right(burst.repeats.to_string())),
        (
            "limit",
            Cell::left(burst.limit.map_or(String::new(), |limit| limit.to_string())),
        ),
    ];
    columns.retain(|(title, _)| !SAYS_LEAST.contains(title) || style.width >= COLUMNS_OF_BURSTS);
    let titles: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
    let mut table = Table::section("Back-to-back", &titles);
    table.item(size, columns.into_iter().map(|(_, cell)| cell));
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::search::SearchResult;

    fn report() -> SearchReport {
        let bound = |rate_pps: f64| Bound {
            rate_pps,
            rate_bps_l1: 6.727e6,
            rate_bps_l2: 5.125e6,
            ..Bound::default()
        };
        let goal = GoalResult {
            name: "throughput".into(),
            loss_ratio: 0.0,
            complete: true,
            limit: Limit::Reflector,
            throughput_pps: Some(123_456.0),
            conditional_throughput_pps: Some(123_456.0),
            lower: Some(bound(123_456.0)),
            upper: Some(bound(234_567.0)),
        };
        let size = |size: &str| SizeResult {
            size: size.into(),
            mean_frame_bytes: 64.0,
            range: None,
            result: SearchResult::default(),
        };
        let mut done = size("1518");
        done.range = Some(measure::search::Range {
            min_pps: 1.0,
            max_pps: 1e6,
            ceiling: measure::search::Ceiling::Asked,
        });
        done.result.goals.push(goal);
        SearchReport {
            reasons: vec![Note::new("interrupted", "interrupted")],
            sizes: vec![done, size("imix")],
            ..SearchReport::default()
        }
    }

    #[test]
    fn the_table_fits_the_terminal() {
        for (width, has_layer_2) in [(80, false), (100, true)] {
            let style = Style {
                width,
                ..Style::plain()
            };
            let table = goals(&report(), &style).render(&style);
            let longest = table.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(width), "{table}");
            assert_eq!(table.contains("layer 2"), has_layer_2, "{table}");
        }
    }

    #[test]
    fn a_size_that_was_not_reached_is_named() {
        let style = Style::plain();
        let text = render(&report(), &style);
        let row = text.lines().find(|line| line.contains("imix"));
        assert!(row.is_some_and(|row| row.ends_with("not begun")), "{text}");
    }
}
