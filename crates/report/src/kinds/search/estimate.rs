//! How long a search would take, for people and for scripts.

use measure::search::Estimate;
use measure::units::format_count;

use crate::number::span as time;
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::wrap::wrapped;

/// How long it would take: each size, and all of them.
pub fn render(sizes: &[(String, Estimate)], style: &Style) -> String {
    let mut table = Table::section("Size", &[">trials", ">time", ">at most", ">time"]);
    let row = |table: &mut Table, name: &str, estimate: &Estimate| {
        table.item(
            name,
            [
                Cell::right(format_count(estimate.trials)),
                Cell::right(time(estimate.seconds)),
                Cell::right(format_count(estimate.trials_max)),
                Cell::right(time(estimate.seconds_max)),
            ],
        );
    };
    for (size, estimate) in sizes {
        row(&mut table, size, estimate);
    }
    if sizes.len() > 1 {
        row(&mut table, "all", &total(sizes));
    }
    let mut text = table.render(style);
    let about =
        "on a path whose loss is the same in every trial; one that wavers takes longer. Nothing was sent.";
    wrapped(&mut text, about, 0, Paint::None, style);
    text
}

fn total(sizes: &[(String, Estimate)]) -> Estimate {
    sizes
        .iter()
        .fold(Estimate::default(), |sum, (_, estimate)| sum.and(*estimate))
}

/// The same for scripts.
pub fn json(sizes: &[(String, Estimate)]) -> serde_json::Value {
    let one = |estimate: &Estimate| {
        serde_json::json!({
            "trials": estimate.trials,
            "seconds": estimate.seconds,
            "trials_max": estimate.trials_max,
            "seconds_max": estimate.seconds_max,
        })
    };
    let mut all = one(&total(sizes));
    all["version"] = measure::VERSION.into();
    all["command"] = "search".into();
    all["dry_run"] = true.into();
    all["sizes"] = sizes
        .iter()
        .map(|(size, estimate)| {
            let mut value = one(estimate);
            value["size"] = size.clone().into();
            value
        })
        .collect();
    all
}
