//! The result of a search for people: a table for each frame size, and what it means in words.

use std::fmt::Write as _;

use measure::Note;
use measure::search::{GoalResult, Limit, Rfc2544Result, SearchReport, SizeResult};

use super::{spent, tables};
use crate::number::counted;
use crate::style::{Paint, Style};
use crate::terminal::{ending, join};
use crate::wrap::{marked, wrapped};

/// The whole report.
pub fn render(report: &SearchReport, style: &Style) -> String {
    let of_size = |size: &SizeResult| {
        let further = size.result.rfc2544.as_ref();
        further.map_or_else(String::new, |further| rfc2544(size, further, style))
    };
    let mut sections: Vec<String> = report.sizes.iter().map(of_size).collect();
    let mut rates = tables::rates(tables::answers(report)).terminal("Rate", style);
    for (says, answers) in caveats(report) {
        let line = format!("{}: {says}", answers.join(", "));
        wrapped(&mut rates, &line, 0, Paint::Warn, style);
    }
    sections.extend([
        ending(&report.notes, &report.run, style),
        rates,
        headline(report, style),
    ]);
    join(&sections)
}

fn headline(report: &SearchReport, style: &Style) -> String {
    let spent = spent(report);
    if report.complete {
        return format!("{}: {spent}\n", style.paint(Paint::Good, "FOUND"));
    }
    let reasons = Note::texts(&report.reasons).join("; ");
    marked("NOT FINISHED:", Paint::Bad, &reasons, style) + &spent + "\n"
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
        Limit::Port => {
            "the port took no more above this: the link or the far side pushed back, and the path may carry more"
        }
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
    let mut sections = Vec::new();
    if let Some(latency) = &further.latency {
        let mut text = tables::latency(&size.size, latency).terminal("Latency", style);
        if let Some(lost) = latency.lost.filter(|lost| *lost > 0) {
            let lost = counted(lost, "packet");
            // A `String` takes everything.
            let _ = writeln!(text, "  {lost} of these trials never came, and have no latency");
        }
        sections.push(text);
    }
    if !further.frame_loss.is_empty() {
        sections.push(tables::frame_loss(&size.size, &further.frame_loss).terminal("Frame loss", style));
    }
    if let Some(burst) = &further.back_to_back {
        sections.push(tables::back_to_back(&size.size, burst).terminal("Back-to-back", style));
    }
    join(&sections)
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::search::{Bound, SearchResult};

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
            let table = tables::rates(tables::answers(&report())).terminal("Rate", &style);
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

    #[test]
    fn a_short_search_has_sent_for_a_while() {
        let of = |trials, seconds| {
            let report = SearchReport {
                trials,
                seconds,
                ..SearchReport::default()
            };
            spent(&report)
        };
        assert_eq!(of(2, 0.2), "2 trials, 200 ms of sending");
        assert_eq!(of(9, 3.0), "9 trials, 3 s of sending");
        assert_eq!(of(49, 139.8), "49 trials, 2 min 20 s of sending");
        assert_eq!(of(0, 0.0), "0 trials, 0 s of sending");
    }
}
