//! The result of a comparison for people: tables of what was found, and the recommendation.

use std::fmt::Write as _;

use measure::comparison::{Comparison, Cpu, MethodResult, Trial};
use measure::units::{format_duration, format_rate};

use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::terminal::ending;
use crate::wrap::{marked, wrapped};

/// A recommendation is read, not scanned: its lines are no longer than this.
const COLUMNS: usize = 100;

/// The whole result.
pub fn render(comparison: &Comparison, style: &Style) -> String {
    let mut text = String::new();
    wrapped(&mut text, &comparison.setting(), 0, Paint::None, style);
    text.push('\n');
    // Headings over nothing would look like an answer.
    if tried(comparison).next().is_some() {
        let mut tables = vec![rates(comparison)];
        if !asked_rates(comparison).is_empty() {
            tables.push(losses(comparison));
        }
        tables.push(latencies(comparison));
        tables.extend(firewall(comparison));
        let tables: Vec<String> = tables.iter().map(|table| table.render(style)).collect();
        text.push_str(&tables.join("\n"));
    }
    let missing: Vec<&MethodResult> = comparison
        .methods
        .iter()
        .filter(|method| method.missing.is_some())
        .collect();
    if !missing.is_empty() {
        let _ = writeln!(text, "\n{}", style.paint(Paint::Head, "Not compared"));
        for method in missing {
            let why = method.missing.as_deref().unwrap_or_default();
            text += &marked(&format!("  {}:", method.name), Paint::None, why, style);
        }
    }
    let _ = writeln!(text, "\n{}", style.paint(Paint::Head, "Which one to take"));
    let read = Style {
        width: style.width.min(COLUMNS),
        ..*style
    };
    for sentence in &comparison.recommendation.sentences {
        wrapped(&mut text, sentence, 2, Paint::None, &read);
    }
    text.push('\n');
    text.push_str(&ending(&comparison.notes, &comparison.run, style));
    text
}

pub fn tried(comparison: &Comparison) -> impl Iterator<Item = &MethodResult> {
    comparison
        .methods
        .iter()
        .filter(|method| method.missing.is_none())
}

/// The highest rate without loss, and what it took.
fn rates(comparison: &Comparison) -> Table {
    let titles = [
        ">no loss up to",
        ">flooded",
        ">cores busy",
        ">softirq",
        ">CPU a packet",
    ];
    let mut table = Table::section("Rate", &titles);
    for method in tried(comparison) {
        let lossless = method.lossless_pps.map_or_else(
            || Cell::right("none").paint(Paint::Bad),
            |pps| {
                let mark = if method.may_carry_more() { ">= " } else { "" };
                Cell::right(format!("{mark}{}", format_rate(pps)))
            },
        );
        let flood = method.flood.as_ref();
        let best = method.at_lossless.as_ref();
        let cores = |pick: fn(&Cpu) -> f64| {
            let cpu = best.and_then(|trial| trial.cpu.as_ref());
            Cell::right(cpu.map_or("-".into(), |cpu| format!("{:.2}", pick(cpu))))
        };
        table.item(
            &method.name,
            [
                lossless,
                Cell::right(flood.map_or("-".into(), |trial| format_rate(trial.received_pps))),
                cores(Cpu::cores),
                cores(|cpu| cpu.softirq_cores),
                Cell::right(method.cpu_ns_per_packet.map_or("-".into(), crate::number::time)),
            ],
        );
    }
    table
}

/// What firewall rules cost the ways that they are on.
fn firewall(comparison: &Comparison) -> Option<Table> {
    let costs: Vec<_> = tried(comparison)
        .filter_map(|method| Some((method, method.firewall.as_ref()?)))
        .collect();
    let titles = [">flooded with", ">without", ">cost a packet"];
    let mut table = Table::section(&format!("{} rules", costs.first()?.1.rules), &titles);
    for (method, cost) in costs {
        let each = cost
            .told_ns()
            .map_or_else(|| "none to be told".to_owned(), crate::number::time);
        let cells = [format_rate(cost.with_pps), format_rate(cost.without_pps), each];
        table.item(&method.name, cells.map(Cell::right));
    }
    Some(table)
}

/// What did not come back of each rate that was asked for.
fn losses(comparison: &Comparison) -> Table {
    let asked = asked_rates(comparison);
    let titles: Vec<String> = asked
        .iter()
        .map(|rate| format!(">{}", format_rate(*rate)))
        .collect();
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let mut table = Table::section("Lost at", &titles);
    for method in tried(comparison) {
        table.item(&method.name, asked.iter().map(|rate| loss_cell(method.at(*rate))));
    }
    table
}

/// The rates that loss was asked at, from the lowest.
pub fn asked_rates(comparison: &Comparison) -> Vec<f64> {
    let mut asked: Vec<f64> = tried(comparison)
        .flat_map(|method| &method.at_rates)
        .filter_map(|trial| trial.asked_pps)
        .collect();
    asked.sort_by(f64::total_cmp);
    asked.dedup();
    asked
}

fn loss_cell(trial: Option<&Trial>) -> Cell {
    let Some(trial) = trial else {
        return Cell::right("-");
    };
    let paint = if trial.is_lossless() {
        Paint::Good
    } else {
        Paint::Bad
    };
    Cell::right(loss(trial)).paint(paint)
}

/// What a trial lost, in words.
pub fn loss(trial: &Trial) -> String {
    let lost = percent(trial.lost, trial.sent);
    if trial.is_lossless() {
        "0".to_owned()
    } else if trial.is_offered() {
        lost
    } else {
        // What the sender could not send is not the path's loss, and is no success either.
        let unsent = percent(trial.unsent, trial.sent + trial.unsent);
        format!("{lost}, {unsent} unsent")
    }
}

/// Two digits do; but what is lost is never 0 %.
fn percent(part: u64, whole: u64) -> String {
    let share = part as f64 / whole.max(1) as f64 * 100.0;
    match share {
        _ if part == 0 => "0 %".into(),
        ..0.01 => "< 0.01 %".into(),
        0.01..10.0 => format!("{share:.2} %"),
        _ => format!("{share:.0} %"),
    }
}

fn latencies(comparison: &Comparison) -> Table {
    let at = tried(comparison).find_map(|method| method.latency.as_ref()?.asked_pps);
    let name = at.map_or("Latency".into(), |pps| format!("Latency at {}", format_rate(pps)));
    let mut table = Table::section(&name, &[">min", ">p50", ">p99", ">p99.9", ">max", ">lost"]);
    for method in tried(comparison) {
        let latency = method.latency.as_ref().map(|trial| &trial.latency_ns);
        let time = |pick: fn(&measure::Percentiles) -> Option<u64>| {
            let value = latency.and_then(pick);
            Cell::right(value.map_or("-".into(), format_duration))
        };
        table.item(
            &method.name,
            [
                time(|latency| latency.min),
                time(|latency| latency.p50),
                time(|latency| latency.p99),
                time(|latency| latency.p999),
                time(|latency| latency.max),
                loss_cell(method.latency.as_ref()),
            ],
        );
    }
    table
}
