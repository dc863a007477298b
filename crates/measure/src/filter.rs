//! What rules have met, of a filter or of whatever else decides by rules.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A rule, and what it met.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleCount {
    /// Where it stands, `FILE:LINE`; empty for the default, and for a rule that is no longer in force.
    pub place: String,
    /// As it is written.
    pub rule: String,
    /// Whether what it met was dropped; of a rate, only what was above it is counted.
    pub denies: bool,
    /// Packets.
    pub packets: u64,
    /// Their bytes, without FCS.
    pub bytes: u64,
}

/// What became of packets by rules.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Judged {
    /// Packets that passed.
    pub allowed: u64,
    /// Their bytes, without FCS.
    pub allowed_bytes: u64,
    /// Packets that were dropped.
    pub denied: u64,
    /// Their bytes, without FCS.
    pub denied_bytes: u64,
    /// What met which rule: in their order, the default last, then rules that are no longer in force.
    pub rules: Vec<RuleCount>,
    /// Rules that met something and are not listed, where only the busiest are: in the status of a run.
    pub further_rules: u64,
    /// Malformed packets by reason, counted above, too.
    pub malformed: BTreeMap<String, u64>,
    /// Packets that were dropped since a rate had no entry left for their group: counted at its rule, too.
    pub groups_full: u64,
}

impl Judged {
    /// All packets that were judged.
    pub fn packets(&self) -> u64 {
        self.allowed + self.denied
    }

    /// The same with the `most` busiest rules alone, in their order; the default is always among them.
    #[must_use]
    pub fn busiest(&self, most: usize) -> Self {
        let mut by_packets: Vec<usize> = (0..self.rules.len()).collect();
        let is_default = |rule: &RuleCount| rule.place.is_empty();
        by_packets.sort_by_key(|at| {
            let rule = &self.rules[*at];
            (!is_default(rule), std::cmp::Reverse(rule.packets))
        });
        let (kept, left) = by_packets.split_at(most.min(by_packets.len()));
        let met = left.iter().filter(|at| self.rules[**at].packets > 0).count();
        let mut kept = kept.to_vec();
        kept.sort_unstable();
        Self {
            rules: kept.into_iter().map(|at| self.rules[at].clone()).collect(),
            further_rules: met as u64,
            ..self.clone()
        }
    }
}
