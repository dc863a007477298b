//! A comparison of ways in a page: the tables that its recommendation was worked out of.

use measure::comparison::{Comparison, Cpu, MethodResult, Trial};

use super::terminal::{asked_rates, loss, tried};
use crate::html::element::{Cell, escape, table};
use crate::number::{pps, time};

/// The tables.
pub fn render(comparison: &Comparison, named: &str) -> String {
    format!(
        "<section><h2>Ways compared{}</h2>\n<p class=note>{}</p>\n{}{}{}{}{}{}</section>\n",
        escape(named),
        escape(&comparison.setting()),
        rates(comparison),
        losses(comparison),
        latencies(comparison),
        processors(comparison),
        firewall(comparison),
        missing(comparison),
    )
}

fn name(method: &MethodResult) -> [Cell; 2] {
    [Cell::Name(method.name.clone()), Cell::Text(method.words.clone())]
}

fn each(comparison: &Comparison, cells: impl Fn(&MethodResult) -> Vec<Cell>) -> Vec<Vec<Cell>> {
    tried(comparison)
        .map(|method| name(method).into_iter().chain(cells(method)).collect())
        .collect()
}

fn rates(comparison: &Comparison) -> String {
    let most =
        |pick: fn(&MethodResult) -> Option<f64>| tried(comparison).filter_map(pick).fold(1.0, f64::max);
    let (whole, flood) = (
        most(|method| method.lossless_pps),
        most(|method| Some(method.flood.as_ref()?.received_pps)),
    );
    let rows = each(comparison, |method| {
        let lossless = method.lossless_pps.map_or_else(
            || Cell::Bad("none".to_owned()),
            |rate| {
                let mark = if method.may_carry_more() { "\u{2265} " } else { "" };
                Cell::Bar(rate / whole, format!("{mark}{}", pps(rate)))
            },
        );
        let flooded = method.flood.as_ref().map_or_else(
            || Cell::Number("-".to_owned()),
            |trial| Cell::Bar(trial.received_pps / flood, pps(trial.received_pps)),
        );
        vec![lossless, flooded]
    });
    let caption = "The highest rate that came back whole, and what came back when nobody held back; \u{2265}: there the sender could offer no more, and the path may carry more";
    table(caption, &["way", "", "no loss up to", "flooded"], &rows)
}

fn losses(comparison: &Comparison) -> String {
    let asked = asked_rates(comparison);
    let titles: Vec<String> = asked.iter().map(|rate| pps(*rate)).collect();
    let head: Vec<&str> = ["way", ""]
        .into_iter()
        .chain(titles.iter().map(String::as_str))
        .collect();
    let rows = each(comparison, |method| {
        asked.iter().map(|rate| lost(method.at(*rate))).collect()
    });
    table(
        "Lost at each rate offered; unsent is what was scheduled but never sent",
        &head,
        &rows,
    )
}

fn lost(trial: Option<&Trial>) -> Cell {
    match trial {
        None => Cell::Number("-".to_owned()),
        Some(trial) if trial.is_lossless() => Cell::Number("0".to_owned()),
        Some(trial) => Cell::Bad(loss(trial)),
    }
}

fn latencies(comparison: &Comparison) -> String {
    let at = tried(comparison).find_map(|method| method.latency.as_ref()?.asked_pps);
    let caption = at.map_or_else(
        || "Latency".to_owned(),
        |rate| format!("Latency there and back at {}", pps(rate)),
    );
    let rows = each(comparison, |method| {
        let latency = method
            .latency
            .as_ref()
            .map(|trial| trial.latency_ns)
            .unwrap_or_default();
        [latency.min, latency.p50, latency.p99, latency.p999, latency.max]
            .into_iter()
            .map(|value| Cell::Number(value.map_or_else(|| "-".to_owned(), |ns| time(ns as f64))))
            .chain([lost(method.latency.as_ref())])
            .collect()
    });
    table(
        &caption,
        &["way", "", "min", "p50", "p99", "p99.9", "max", "lost"],
        &rows,
    )
}

fn processors(comparison: &Comparison) -> String {
    let most = tried(comparison)
        .filter_map(|method| method.cpu_ns_per_packet)
        .fold(1.0, f64::max);
    let rows = each(comparison, |method| {
        let cores = |pick: fn(&Cpu) -> f64| {
            let value = method
                .at_lossless
                .as_ref()
                .and_then(|trial| trial.cpu.as_ref().map(pick));
            Cell::Number(value.map_or_else(|| "-".to_owned(), |cores| format!("{cores:.2}")))
        };
        let each_packet = method.cpu_ns_per_packet.map_or_else(
            || Cell::Number("-".to_owned()),
            |ns| Cell::Bar(ns / most, time(ns)),
        );
        vec![each_packet, cores(Cpu::cores), cores(|cpu| cpu.softirq_cores)]
    });
    let caption =
        "Processor time at the highest rate without loss; soft interrupts are mostly counted in it already";
    table(
        caption,
        &["way", "", "a packet", "cores busy", "cores in soft interrupts"],
        &rows,
    )
}

/// What firewall rules cost the ways that they are on.
fn firewall(comparison: &Comparison) -> String {
    let costs: Vec<_> = tried(comparison)
        .filter_map(|method| Some((method, method.firewall.as_ref()?)))
        .collect();
    let Some(rules) = costs.first().map(|(_, cost)| cost.rules) else {
        return String::new();
    };
    let most = costs.iter().map(|(_, cost)| cost.without_pps).fold(1.0, f64::max);
    let rows: Vec<Vec<Cell>> = costs
        .iter()
        .map(|(method, cost)| {
            let [name, words] = name(method);
            let bar = |rate: f64| Cell::Bar(rate / most, pps(rate));
            let each = cost.told_ns().map_or_else(|| "none to be told".to_owned(), time);
            vec![
                name,
                words,
                bar(cost.with_pps),
                bar(cost.without_pps),
                Cell::Number(each),
            ]
        })
        .collect();
    let caption = format!(
        "What {rules} firewall rules cost at both ends: floods in turns, with the rules and without them"
    );
    table(&caption, &["way", "", "with", "without", "cost a packet"], &rows)
}

fn missing(comparison: &Comparison) -> String {
    let rows: Vec<Vec<Cell>> = comparison
        .methods
        .iter()
        .filter_map(|method| Some((method, method.missing.clone()?)))
        .map(|(method, why)| {
            let [name, words] = name(method);
            vec![name, words, Cell::Text(why)]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    table("Not compared", &["way", "", "because"], &rows)
}
