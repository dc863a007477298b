//! What firewall rules cost the kernel's sockets, and how that is said.

use serde::{Deserialize, Serialize};

use super::result::{MethodResult, Trial};
use crate::units::{format_count, format_duration, format_rate};

/// What firewall rules cost, by floods in turns with and without them: medians.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct FirewallCost {
    /// How many rules, at each end.
    pub rules: u32,
    /// Floods of each kind.
    pub turns: u32,
    /// What came back through the rules, packets/s.
    pub with_pps: f64,
    /// What came back without them.
    pub without_pps: f64,
    /// Processor time that they cost, for a packet sent and returned; `None` where that could not be measured.
    pub ns_per_packet: Option<f64>,
    /// Every flood without them brought back more than every flood with them: that is hardly chance.
    pub is_apart: bool,
}

impl FirewallCost {
    /// What `rules` cost, by the floods through them and the floods without them, as many of each.
    pub fn of(rules: u32, with: &[Trial], without: &[Trial]) -> Self {
        let best_with = with.iter().map(|flood| flood.received_pps).fold(0.0, f64::max);
        let worst_without = without
            .iter()
            .map(|flood| flood.received_pps)
            .fold(f64::INFINITY, f64::min);
        let cost = median(with, Trial::ns_per_packet)
            .zip(median(without, Trial::ns_per_packet))
            .map(|(with, without)| with - without);
        let pps = |trials: &[Trial]| median(trials, |flood| Some(flood.received_pps)).unwrap_or_default();
        Self {
            is_apart: best_with < worst_without,
            rules,
            turns: with.len() as u32,
            with_pps: pps(with),
            without_pps: pps(without),
            ns_per_packet: cost,
        }
    }

    /// The cost of a packet, ns, where it can be told from chance.
    pub fn told_ns(&self) -> Option<f64> {
        self.ns_per_packet
            .filter(|ns| self.is_apart && self.with_pps < self.without_pps && *ns > 0.0)
    }
}

/// Of the trials in which it was measured; `None` where it was in none.
fn median(trials: &[Trial], pick: fn(&Trial) -> Option<f64>) -> Option<f64> {
    let mut values: Vec<f64> = trials.iter().filter_map(pick).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// What they cost each way, in a sentence; nothing where there were no rules.
pub fn words(results: &[MethodResult]) -> Option<String> {
    let costs: Vec<(&str, &FirewallCost)> = results
        .iter()
        .filter_map(|result| Some((result.words.as_str(), result.firewall.as_ref()?)))
        .collect();
    let rules = costs.first()?.1.rules;
    let firewall_rules = match rules {
        1 => "1 firewall rule".to_owned(),
        rules => format!("{} firewall rules", format_count(rules.into())),
    };
    let each: Vec<String> = costs.iter().map(|(way, cost)| one(way, cost)).collect();
    Some(format!(
        "What {firewall_rules} cost at both ends, flooded with and without them: {}. AF_PACKET, AF_XDP and DPDK pass the rules by: they cost nothing there, and filter nothing.",
        each.join("; ")
    ))
}

fn one(way: &str, cost: &FirewallCost) -> String {
    let FirewallCost {
        with_pps,
        without_pps,
        ..
    } = *cost;
    let Some(ns_per_packet) = cost.told_ns() else {
        return format!("{way} nothing that could be told from chance");
    };
    format!(
        "{way} {:.0} % of the packets ({} instead of {}), which is {} of processor time a packet",
        (1.0 - with_pps / without_pps) * 100.0,
        format_rate(with_pps),
        format_rate(without_pps),
        format_duration(ns_per_packet.round() as u64)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(with_pps: f64, without_pps: f64, ns_per_packet: f64) -> MethodResult {
        MethodResult {
            words: "kernel sockets".into(),
            firewall: Some(FirewallCost {
                rules: 50,
                turns: 3,
                with_pps,
                without_pps,
                ns_per_packet: Some(ns_per_packet),
                is_apart: with_pps < without_pps,
            }),
            ..MethodResult::default()
        }
    }

    #[test]
    fn a_cost_is_said_and_none_is_not_made_up() {
        assert_eq!(words(&[MethodResult::default()]), None);
        let dear = words(&[result(60e3, 100e3, 12_000.0)]).unwrap();
        assert!(
            dear.contains("What 50 firewall rules cost")
                && dear.contains("40 % of the packets (60.00 kpps instead of 100.0 kpps)")
                && dear.contains("12.00 us of processor time"),
            "{dear}"
        );
        let free = words(&[result(100e3, 99e3, -100.0)]).unwrap();
        assert!(
            free.contains("kernel sockets nothing that could be told"),
            "{free}"
        );
    }
}
