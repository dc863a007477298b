//! The distributions of a run: latency percentiles, and the gaps between departures.

use maud::{Markup, html};

use super::super::element::{details, section};
use super::super::figures::chart;
use crate::load::Loaded;
use crate::number::time;
use crate::sheet::Sheet;

/// Latency, and the gaps between departures: how many were not above a value.
pub fn curves(runs: &[Loaded]) -> Markup {
    let is_timed = runs.iter().any(|run| !run.latency.is_empty());
    let is_paced = runs.iter().any(|run| run.result.departures().max.is_some());
    let charts = html! {
        @if is_timed { (latency(runs)) }
        @if is_paced { (pacing(runs)) }
    };
    section("Distributions", &charts)
}

fn latency(runs: &[Loaded]) -> Markup {
    let words = "Read it from the right: of how many packets was one slower than this? All packets count, from their real departure.";
    let table = quantiles(runs, Loaded::latency_within);
    chart("percentiles", "Latency percentiles", &[words.to_owned()], &table)
}

fn pacing(runs: &[Loaded]) -> Markup {
    let asked = runs
        .iter()
        .filter_map(|run| Some((run, run.result.departures().asked?)));
    let mut words: Vec<String> = asked
        .map(|(run, gap)| format!("Asked of {}: a packet every {}.", run.name, time(gap)))
        .collect();
    words.extend(runs.iter().filter_map(gaps_of_zero));
    words.push(
        "Time between two departures of a queue, as it really was; a burst leaves with gaps near 0."
            .to_owned(),
    );
    let table = quantiles(runs, Loaded::gap_within);
    chart("pacing", "Pacing: gaps between departures", &words, &table)
}

/// What a logarithmic axis cannot show.
fn gaps_of_zero(run: &Loaded) -> Option<String> {
    let zero = run.pacing.iter().take_while(|row| row.value_ns <= 0.0).last()?;
    Some(format!(
        "In {} {:.1} % of the gaps were 0, which a logarithmic axis cannot show: its line begins behind them.",
        run.name,
        zero.share * 100.0
    ))
}

/// The usual percentiles of each run, folded away.
fn quantiles(runs: &[Loaded], within: fn(&Loaded, f64) -> Option<f64>) -> Markup {
    let with: Vec<&Loaded> = runs.iter().filter(|run| within(run, 1.0).is_some()).collect();
    if with.is_empty() {
        return Markup::default();
    }
    let shares = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 1.0];
    // Rounded: 0.99999 * 100 is 99.99900000000001.
    let percent = |share: &f64| format!("{} %", (share * 1e5).round() / 1e3);
    let mut sheet = Sheet::of(shares).name("share of packets", percent);
    for run in with {
        sheet = sheet.optional(&run.name, |share| within(run, *share).map(time));
    }
    details("The same as a table", &sheet.html("Not slower than"))
}
