//! The comparison for people, before it: what is about to be tried.

use measure::units::{format_duration, format_rate};
use report::Style;
use report::style::Paint;
use report::table::{Cell, Table};
use report::wrap::marked;

use super::plan::ComparePlan;

pub fn dry_run(plan: &ComparePlan, style: &Style) -> String {
    let beside = ways(plan, true);
    // A port is there to be copied: whole.
    let table = if beside.width() > style.width {
        ways(plan, false)
    } else {
        beside
    };
    let mut text = format!("{}\n{}", beginning(plan), table.render(style));
    for way in &plan.ways {
        if let Some(why) = &way.missing {
            text += &marked(&format!("  {}:", way.method.name()), Paint::Warn, why, style);
        }
    }
    text
}

/// The ways, with their reflectors beside their senders or below them.
fn ways(plan: &ComparePlan, is_beside: bool) -> Table {
    let titles: &[&str] = if is_beside {
        &["sender", "reflector", ""]
    } else {
        &["sender, reflector", ""]
    };
    let mut table = Table::section("Way", titles);
    for way in &plan.ways {
        let far = Cell::left(way.far.as_deref().unwrap_or("there already"));
        let tried = Cell::left("would be tried").paint(Paint::Good);
        let name = way.method.name();
        match &way.missing {
            None if is_beside => table.item(name, [Cell::left(&way.near), far, tried]),
            None => {
                table.item(name, [Cell::left(&way.near), tried]);
                table.item("", [far]);
            }
            Some(_) => {
                let none = std::iter::repeat_n(Cell::left("-"), titles.len() - 1);
                table.item(
                    name,
                    none.chain([Cell::left("cannot be tried").paint(Paint::Warn)]),
                );
            }
        }
    }
    table
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
