//! The heat maps of latency, and what they show as tables.

use super::super::element::{Cell, details, table};
use super::super::figures::chart;
use crate::load::Loaded;
use crate::load::heat::Heat;
use crate::number::{count, time};

/// A picture for each run that has one.
pub fn charts(runs: &[Loaded]) -> String {
    let heat = |run: &Loaded| run.series.as_ref().and_then(|series| series.heat.clone());
    let with = runs
        .iter()
        .enumerate()
        .filter_map(|(at, run)| Some((at, run, heat(run)?)));
    with.map(|(at, run, heat)| {
        let title = if runs.len() > 1 {
            format!("Latency heat map of {}", run.name)
        } else {
            "Latency heat map".to_owned()
        };
        let words = "The darker (on a dark page: the brighter), the more of the packets of that time took that long; a single one shows. \
                     Drawn from six percentiles of each interval, between which packets are taken to be spread evenly.";
        chart(&format!("heat-{at}"), &title, &[words.to_owned()], &as_table(&heat))
    })
    .collect()
}

fn as_table(heat: &Heat) -> String {
    let rows: Vec<Vec<Cell>> = heat
        .stretches
        .iter()
        .map(|stretch| {
            let (from, to) = stretch.ends_ms;
            let ends = [from, to].map(|ms| Cell::Number(time(ms.max(0.0) * 1e6)));
            let within = [0, 1, 2].map(|place| {
                let edge = stretch.within_ns.map(|within| within[place]);
                Cell::Number(edge.map_or_else(|| "-".to_owned(), time))
            });
            ends.into_iter()
                .chain([Cell::Number(count(stretch.packets as u64))])
                .chain(within)
                .collect()
        })
        .collect();
    let caption = "How long packets took at most, by the upper edges of the picture's cells, each 19 % above its lower one";
    let titles = ["from", "to", "packets", "half", "99 %", "all"];
    details("The same as a table", &table(caption, &titles, &rows))
}
