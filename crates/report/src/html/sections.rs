//! The sections of a page, from the verdict down.

mod distributions;
mod heat;
mod machine;
mod made;
mod side_by_side;
mod stalls;
mod verdict;

use maud::{Markup, html};

use super::element::{details, prose};
use super::figures::{Column, chart, over_time, peak, show, thinned};
use crate::load::series::{Origin, Untold};
use crate::load::{Channel, DRAWN_MAX, Loaded, Series};
use crate::number::{counted, time};
use crate::rundir::file;

/// Verdicts in frames of their own; more are the rows of a table, and what is known of each run is folded away.
pub const FRAMES_MAX: usize = 4;

/// All of the page between its head and its foot.
pub fn body(runs: &[Loaded]) -> Markup {
    let is_long = runs.len() > FRAMES_MAX;
    let is_over_time = runs.iter().any(Loaded::is_over_time);
    html! {
        @if is_long {
            (side_by_side::list(runs))
        } @else {
            @for run in runs { (verdict::block(run, runs.len() > 1)) }
        }
        @if let [only] = runs {
            // Where packets went, and how long they took, before when.
            (verdict::tiles(only))
            (made::strip(only))
            (only.result.page("", "flow-0"))
            (stalls::lengths(only, ""))
        } @else {
            (side_by_side::sections(runs))
        }
        (distributions::curves(runs))
        @if is_over_time { (charts(runs)) }
        @if let [only] = runs {
            (stalls::by_cause(only, ""))
            (machine::sections(only, ""))
        } @else {
            @for (at, run) in runs.iter().enumerate().take(DRAWN_MAX) { (one_of_many(run, at, is_long)) }
        }
        @if runs.len() > DRAWN_MAX {
            p.note {
                "The charts and the details are those of the first " (DRAWN_MAX)
                " runs; the others have pages of their own in their directories."
            }
        }
    }
}

/// What is known of one run beside others.
fn one_of_many(run: &Loaded, at: usize, is_folded: bool) -> Markup {
    let named = format!(" of {}", run.name);
    let whole = html! {
        // Else they stand in its frame.
        @if is_folded { (verdict::reasons(run)) }
        (run.result.page(&named, &format!("flow-{at}")))
        (stalls::lengths(run, &named))
        (stalls::by_cause(run, &named))
        (machine::sections(run, &named))
    };
    if is_folded && !whole.0.is_empty() {
        details(&format!("All{named}"), &whole)
    } else {
        whole
    }
}

fn charts(runs: &[Loaded]) -> Markup {
    let series: Vec<(&Loaded, &Series)> = runs
        .iter()
        .filter_map(|run| Some((run, run.series.as_ref().filter(|series| series.rows > 0)?)))
        .collect();
    let stalls = stalls::chart_of(runs);
    let is_awaited = |run: &Loaded| run.awaits(file::INTERVALS);
    let has_none =
        series.is_empty() && runs.iter().any(is_awaited) && runs.iter().all(|run| run.missing.is_empty());
    html! {
        @if has_none { p.note { "There is no intervals.csv with rows, so nothing is drawn over time." } }
        @if !series.is_empty() || !stalls.0.is_empty() {
            section {
                h2 { "Over time" }
                p.note.keys {
                    "Move the pointer over a chart for values; drag to zoom, double-click to see all. By keyboard: "
                    kbd { "Tab" } " to a chart, " kbd { "←" } " " kbd { "→" } " to move, " kbd { "+" } " " kbd { "-" } " to zoom, "
                    kbd { "Home" } " " kbd { "End" } ", " kbd { "0" } " for all. All charts over time move together."
                }
                @if !series.is_empty() { (rates(runs, &series)) (loss(runs, &series)) }
                (stalls)
                (latency(runs, &series))
                (heat::charts(runs))
            }
        }
    }
}

/// `words` of each run, with its name before it where there are several that say something else.
fn each(series: &[(&Loaded, &Series)], words: impl Fn(&Loaded, &Series) -> Option<String>) -> Vec<String> {
    let said: Vec<(&str, String)> = series
        .iter()
        .filter_map(|(run, series)| Some((run.name.as_str(), words(run, series)?)))
        .collect();
    let is_the_same = said.len() == series.len() && said.windows(2).all(|two| two[0].1 == two[1].1);
    let is_named = series.len() > 1 && !is_the_same;
    let one = |(name, words)| {
        if is_named {
            format!("{name}: {words}")
        } else {
            words
        }
    };
    let mut said: Vec<String> = said.into_iter().map(one).collect();
    said.dedup();
    said
}

fn rates(runs: &[Loaded], series: &[(&Loaded, &Series)]) -> Markup {
    let mut words = each(series, |run, series| {
        let mut sent = series.origin.out().to_owned();
        sent[..1].make_ascii_uppercase();
        let spans = [
            (Channel::Sent, &*sent, "rate_tx"),
            (Channel::Received, "received", "rate_rx"),
        ]
        .map(|(channel, name, figure)| {
            let span = series.whole.span(channel);
            // The run's own figure, as it stands above and in the terminal: its last interval may be a short one.
            let whole = run.figure(figure).or(span.mean());
            whole.map(|whole| {
                format!(
                    "{name} {} over all, {} to {} in an interval",
                    show(channel, whole),
                    show(channel, span.min),
                    show(channel, span.max)
                )
            })
        });
        Some(spans.into_iter().flatten().collect::<Vec<_>>().join("; ") + ".")
    });
    words.extend(each(series, |_, series| thinned(series)));
    let columns = [Column::Mean(Channel::Sent), Column::Mean(Channel::Received)];
    chart("rates", "Rates", &words, &over_time(runs, &columns))
}

fn loss(runs: &[Loaded], series: &[(&Loaded, &Series)]) -> Markup {
    let word = |series: &Series| match (series.origin, series.untold) {
        (Origin::Send | Origin::Older, _) => "lost",
        (_, Some(Untold::Missed)) => "dropped",
        (Origin::Capture, _) | (_, Some(Untold::TxLost)) => "missed or dropped",
        (Origin::Reflect | Origin::Forward, None) => "missed, dropped or not sent",
    };
    let mut words = each(series, |_, series| {
        let Some(lost) = series.lost() else {
            return Some("More came back than was sent: what was lost nobody knows.".to_owned());
        };
        if lost <= 0.0 && peak(series, Channel::Loss).is_none_or(|(_, percent)| percent <= 0.0) {
            return Some(format!("Nothing was {} in any interval.", word(series)));
        }
        let (at, most) = peak(series, Channel::Loss)?;
        let thing = if series.origin.is_of_arrivals() {
            "frame"
        } else {
            "packet"
        };
        let lost = counted(lost as u64, thing);
        Some(format!(
            "{lost} {} in all; at most {} of an interval, that which ends at {}.",
            word(series),
            show(Channel::Loss, most),
            time(at * 1e6)
        ))
    });
    words.extend(each(series, |_, series| match series.origin {
        _ if series.untold.is_some() => series
            .untold
            .map(|untold| format!("Not all of it: {} is not in intervals.csv.", untold.words())),
        Origin::Send => Some("Loss is charged to the interval in which the packet was sent.".to_owned()),
        Origin::Reflect => Some(
            "What its ports missed or did not send, or the reflector dropped, of all that came.".to_owned(),
        ),
        Origin::Forward => Some(
            "What its ports missed or did not send, or was received, not denied, and could not be handed on, of all that came."
                .to_owned(),
        ),
        Origin::Capture => Some(
            "What was missed before it was received, or found no place in the ring, of all that came."
                .to_owned(),
        ),
        Origin::Older => Some(
            "As the file has it in drop_rate; whether by the time of sending, it does not say.".to_owned(),
        ),
    }));
    words.dedup();
    words.extend(runs.iter().filter_map(|run| run.result.about_loss()));
    let columns = [
        Column::Mean(Channel::Loss),
        Column::Largest(Channel::Loss),
        Column::Lost,
    ];
    let drops = series.iter().all(|(_, series)| series.origin.is_of_arrivals());
    let title = if drops { "Dropped" } else { "Loss" };
    chart("loss", title, &words, &over_time(runs, &columns))
}

fn latency(runs: &[Loaded], series: &[(&Loaded, &Series)]) -> Markup {
    if !series.iter().any(|(_, series)| series.has(Channel::Mean)) {
        return Markup::default();
    }
    let mut words = each(series, |_, series| {
        let (at, most) = peak(series, Channel::Max).or_else(|| peak(series, Channel::Mean))?;
        let of = if series.has(Channel::Max) {
            "slowest packet"
        } else {
            "largest mean of an interval"
        };
        Some(format!(
            "The {of} took {}, in the interval that ends at {}.",
            time(most),
            time(at * 1e6)
        ))
    });
    if series
        .iter()
        .any(|(_, series)| series.has(Channel::Mean) && !series.has(Channel::P99))
    {
        words.push("A file without percentiles has the mean of each interval only.".to_owned());
    }
    let columns: Vec<Column> = if series.iter().any(|(_, series)| series.has(Channel::P99)) {
        // Of percentiles no mean is one.
        vec![
            Column::Largest(Channel::P50),
            Column::Largest(Channel::P99),
            Column::Largest(Channel::Max),
        ]
    } else {
        vec![Column::Mean(Channel::Mean), Column::Largest(Channel::Mean)]
    };
    chart("latency", "Latency over time", &words, &over_time(runs, &columns))
}

/// A list of sentences, or nothing.
fn list(title: &str, sentences: &[String]) -> Markup {
    html! {
        @if !sentences.is_empty() {
            h3 { (title) }
            ul { @for line in sentences { li { (prose(line)) } } }
        }
    }
}
