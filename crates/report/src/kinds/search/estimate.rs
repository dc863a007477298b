//! How long a search would take, for people and for scripts.

use measure::search::Estimate;

use crate::number::{count, span as time};
use crate::sheet::Sheet;
use crate::style::{Paint, Style};
use crate::wrap::wrapped;

/// How long it would take: each size, and all of them.
pub fn render(sizes: &[(String, Estimate)], style: &Style) -> String {
    let all = ("all".to_owned(), total(sizes));
    let rows = sizes.iter().chain((sizes.len() > 1).then_some(&all));
    let mut text = Sheet::of(rows)
        .always()
        .name("", |(size, _)| size.clone())
        .number("trials", |(_, estimate)| count(estimate.trials))
        .number("time", |(_, estimate)| time(estimate.seconds))
        .number("at most", |(_, estimate)| count(estimate.trials_max))
        .number("time", |(_, estimate)| time(estimate.seconds_max))
        .terminal("Size", style);
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
