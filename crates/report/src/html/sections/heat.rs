//! The heat maps of latency, and what they show as tables.

use maud::{Markup, html};

use super::super::element::details;
use super::super::figures::{chart, moment};
use crate::load::Loaded;
use crate::load::heat::{Heat, Stretch};
use crate::number::{count, time};
use crate::sheet::Sheet;

/// A picture for each run that has one.
pub fn charts(runs: &[Loaded]) -> Markup {
    let heat = |run: &Loaded| run.series.as_ref().and_then(|series| series.heat.clone());
    let with = runs
        .iter()
        .enumerate()
        .filter_map(|(at, run)| Some((at, run, heat(run)?)));
    let charts = with.map(|(at, run, heat)| {
        let title = if runs.len() > 1 {
            format!("Latency heat map of {}", run.name)
        } else {
            "Latency heat map".to_owned()
        };
        let words = "The darker (on a dark page: the brighter), the more of the packets of that time took that long; a single one shows. \
                     Drawn from six percentiles of each interval: where one of them lies there are packets, and between them nothing is painted.";
        chart(&format!("heat-{at}"), &title, &[words.to_owned()], &as_table(&heat))
    });
    html! { @for chart in charts { (chart) } }
}

fn as_table(heat: &Heat) -> Markup {
    let within = |place: usize| move |stretch: &&Stretch| stretch.within_ns.map(|within| time(within[place]));
    let table = Sheet::of(&heat.stretches)
        .number("from", |stretch| moment(stretch.ends_ms.0))
        .number("to", |stretch| moment(stretch.ends_ms.1))
        .number("packets", |stretch| count(stretch.packets as u64))
        .optional("half", within(0))
        .optional("99 %", within(1))
        .optional("all", within(2))
        .html("How long packets took at most, by the upper edges of the picture's cells, each 19 % above its lower one");
    details("The same as a table", &table)
}
