//! The tables that a recommendation is worked out of.

use measure::Percentiles;
use measure::comparison::{Comparison, Cpu, FirewallCost, MethodResult, Trial};

use crate::number::{ns, pps, time, two_digits};
use crate::sheet::Sheet;
use crate::style::Paint;
use crate::table::Cell;

/// The ways that were tried.
pub fn tried(comparison: &Comparison) -> impl Iterator<Item = &MethodResult> {
    comparison
        .methods
        .iter()
        .filter(|method| method.missing.is_none())
}

fn of_tried(comparison: &Comparison) -> Sheet<&MethodResult> {
    Sheet::of(tried(comparison))
        .always()
        .name("way", |method| method.name.clone())
        .words("", |method| method.words.clone())
        .on_page()
}

fn most(comparison: &Comparison, pick: fn(&MethodResult) -> Option<f64>) -> f64 {
    tried(comparison).filter_map(pick).fold(1.0, f64::max)
}

/// The highest rate without loss, and in a terminal what it took.
pub fn rates(comparison: &Comparison) -> Sheet<&MethodResult> {
    let whole = most(comparison, |method| method.lossless_pps);
    let flood = most(comparison, |method| Some(method.flood.as_ref()?.received_pps));
    let lossless = |method: &MethodResult, mark: &str| match method.lossless_pps {
        None => Cell::right("none").paint(Paint::Bad),
        Some(rate) => {
            let mark = if method.may_carry_more() { mark } else { "" };
            Cell::bar(rate / whole, format!("{mark}{}", pps(rate)))
        }
    };
    of_tried(comparison)
        .cell("no loss up to", |method| lossless(method, ">= "))
        .in_terminal()
        .cell("no loss up to", |method| lossless(method, "\u{2265} "))
        .on_page()
        .cell("flooded", |method| {
            let received = method.flood.as_ref().map(|trial| trial.received_pps);
            bar_or_none(received, flood, pps)
        })
        .optional("cores busy", |method| cores(method, Cpu::cores))
        .in_terminal()
        .optional("softirq", |method| cores(method, |cpu| cpu.softirq_cores))
        .in_terminal()
        .optional("CPU a packet", |method| method.cpu_ns_per_packet.map(time))
        .in_terminal()
}

/// What the highest rate without loss took, in a page.
pub fn processors(comparison: &Comparison) -> Sheet<&MethodResult> {
    let most = most(comparison, |method| method.cpu_ns_per_packet);
    of_tried(comparison)
        .cell("a packet", |method| {
            bar_or_none(method.cpu_ns_per_packet, most, time)
        })
        .optional("cores busy", |method| cores(method, Cpu::cores))
        .optional("cores in soft interrupts", |method| {
            cores(method, |cpu| cpu.softirq_cores)
        })
}

fn bar_or_none(value: Option<f64>, most: f64, shown: fn(f64) -> String) -> Cell {
    value.map_or_else(|| Cell::right("-"), |value| Cell::bar(value / most, shown(value)))
}

fn cores(method: &MethodResult, pick: fn(&Cpu) -> f64) -> Option<String> {
    let cpu = method.at_lossless.as_ref()?.cpu.as_ref()?;
    Some(format!("{:.2}", pick(cpu)))
}

/// What did not come back of each rate that was asked for.
pub fn losses(comparison: &Comparison) -> Sheet<&MethodResult> {
    let mut sheet = of_tried(comparison);
    for rate in asked_rates(comparison) {
        sheet = sheet.cell(&pps(rate), |method| loss_cell(method.at(rate)));
    }
    sheet
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
    match trial {
        None => Cell::right("-"),
        Some(trial) if trial.is_lossless() => Cell::right("0").paint(Paint::Good),
        Some(trial) => Cell::right(loss(trial)).paint(Paint::Bad),
    }
}

/// What a trial lost, in words.
fn loss(trial: &Trial) -> String {
    let lost = percent(trial.lost, trial.sent);
    if trial.is_offered() {
        return lost;
    }
    if trial.has_sent_what_was_due() {
        return format!("{lost}, sent at {}", pps(trial.sent_pps));
    }
    // What the sender could not send is not the path's loss, and is no success either.
    let unsent = percent(trial.unsent, trial.sent + trial.unsent);
    format!("{lost}, {unsent} unsent")
}

fn percent(part: u64, whole: u64) -> String {
    two_digits(part as f64 / whole.max(1) as f64)
}

/// The rate at which latency was measured, and what it was.
pub fn latencies(comparison: &Comparison) -> (Option<f64>, Sheet<&MethodResult>) {
    let at = tried(comparison).find_map(|method| method.latency.as_ref()?.asked_pps);
    let time = |pick: fn(&Percentiles) -> Option<u64>| {
        move |method: &&MethodResult| ns(pick(&method.latency.as_ref()?.latency_ns))
    };
    let sheet = of_tried(comparison)
        .optional("min", time(|latency| latency.min))
        .optional("p50", time(|latency| latency.p50))
        .optional("p99", time(|latency| latency.p99))
        .optional("p99.9", time(|latency| latency.p999))
        .optional("max", time(|latency| latency.max))
        .cell("lost", |method| loss_cell(method.latency.as_ref()));
    (at, sheet)
}

/// How many firewall rules there were, and what they cost the ways that they are on.
pub fn firewall(comparison: &Comparison) -> Option<(u32, Sheet<(&MethodResult, &FirewallCost)>)> {
    let costs = || tried(comparison).filter_map(|method| Some((method, method.firewall.as_ref()?)));
    let rules = costs().next()?.1.rules;
    let most = costs().map(|(_, cost)| cost.without_pps).fold(1.0, f64::max);
    let sheet = Sheet::of(costs())
        .name("way", |(method, _)| method.name.clone())
        .words("", |(method, _)| method.words.clone())
        .on_page()
        .cell("with", |(_, cost)| {
            Cell::bar(cost.with_pps / most, pps(cost.with_pps))
        })
        .short("flooded with")
        .cell("without", |(_, cost)| {
            Cell::bar(cost.without_pps / most, pps(cost.without_pps))
        })
        .number("cost a packet", |(_, cost)| {
            cost.told_ns().map_or_else(|| "none to be told".to_owned(), time)
        });
    Some((rules, sheet))
}

/// The ways that could not be tried, and why.
pub fn missing(comparison: &Comparison) -> impl Iterator<Item = (&MethodResult, &str)> {
    let methods = comparison.methods.iter();
    methods.filter_map(|method| Some((method, method.missing.as_deref()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trial that took too long left nothing out: its fault is the rate.
    #[test]
    fn a_trial_says_why_it_is_refused() {
        let trial = |sent_pps: f64, unsent: u64| Trial {
            asked_pps: Some(5000.0),
            sent_pps,
            sent: 1000 - unsent,
            unsent,
            ..Trial::default()
        };
        let said = [(4922.0, 0), (4922.0, 1), (4625.0, 75), (5000.0, 75)]
            .map(|(rate, unsent)| loss(&trial(rate, unsent)));
        let late = "0 %, sent at 4.922 kpps";
        assert_eq!(said, [late, late, "0 %, 7.5 % unsent", "0 %, 7.5 % unsent"]);
    }
}
