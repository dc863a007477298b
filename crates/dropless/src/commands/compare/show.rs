//! The comparison for people, before it: what is about to be tried.

use measure::units::{format_duration, format_rate};
use report::Style;
use report::style::Paint;
use report::table::{Cell, Table};

use super::plan::ComparePlan;

pub fn dry_run(plan: &ComparePlan, style: &Style) -> String {
    let mut table = Table::section("Way", &["sender", "reflector", ""]);
    for way in &plan.ways {
        let cells = match &way.missing {
            None => [
                Cell::left(&way.near),
                Cell::left(way.far.as_deref().unwrap_or("there already")),
                Cell::left("would be tried").paint(Paint::Good),
            ],
            Some(why) => [
                Cell::left("-"),
                Cell::left("-"),
                Cell::left(why).paint(Paint::Warn),
            ],
        };
        table.item(way.method.name(), cells);
    }
    format!("{}\n{}", beginning(plan), table.render(style))
}

/// What is about to be done, in a line or two.
pub fn beginning(plan: &ComparePlan) -> String {
    let rates: Vec<String> = plan.rates_pps.iter().map(|rate| format_rate(*rate)).collect();
    format!(
        "comparing {} over {}, on {}: each at {}, latency at {}, and the highest rate without loss\nup to {} trials of {} in all: at most {}\n",
        report::number::counted(plan.possible().count() as u64, "way"),
        plan.link(),
        plan.cores_in_words(),
        rates.join(", "),
        format_rate(plan.latency_pps),
        plan.trials_in_all(),
        format_duration(plan.duration.as_nanos() as u64),
        report::number::span(plan.takes().as_secs_f64())
    )
}
