//! What rules have met, of a filter or of whatever else decides by rules.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::note::Note;
use crate::result::is_zero;
use crate::summary::{exit_code, nothing_yet};
use crate::verdict::Validity;

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
    /// While it goes: packets a second, over the last one.
    #[serde(skip_serializing_if = "is_zero")]
    pub rate_pps: u64,
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

/// What the interface counted itself while a filter was in force: frames that it received, which is no counter of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InterfaceCheck {
    /// Packets that the filter judged meanwhile.
    pub judged: u64,
    /// As many there must have been at least, by the interface.
    pub at_least: u64,
    /// And at most.
    pub at_most: u64,
}

impl InterfaceCheck {
    /// Whether both can be true.
    pub fn holds(&self) -> bool {
        (self.at_least..=self.at_most).contains(&self.judged)
    }
}

/// Packets that were written to a file as samples.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SampleSummary {
    /// The file.
    pub file: String,
    /// Denied packets that stand in it.
    pub written: u64,
    /// Denied packets that do not: there were more than so many a second, or there was no room.
    pub left_out: u64,
}

/// The whole result of `dropless filter run`, as `summary.json` and `--json` carry it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilterSummary {
    /// Version of this format.
    pub version: u32,
    /// The subcommand, `filter`.
    pub command: String,
    /// The run directory.
    pub run: String,
    /// Whether the counts may be believed.
    pub verdict: Validity,
    /// Why not; empty when valid.
    pub reasons: Vec<Note>,
    /// The interface.
    pub interface: String,
    /// Where packets met the program, as the kernel said: `native` or `generic`.
    pub mode: String,
    /// The rule file.
    pub rules: String,
    /// The number of the set that was in force at the end, of all that were since the filter was put there.
    pub generation: u64,
    /// How often rules were read again, and how often what was read was refused.
    pub reloads: u64,
    /// How often what was read was refused.
    pub reloads_refused: u64,
    /// What the rules met since the filter was put there.
    pub judged: Judged,
    /// How many of these packets runs before this one counted, whose filter it took over.
    pub taken_over: u64,
    /// Whether the filter stays in force after its process.
    pub stays: bool,
    /// Packets that were judged, per second of this run.
    pub rate_pps: f64,
    /// Packets that passed, per second of this run.
    pub rate_allowed_pps: f64,
    /// The same packets by the interface's own counter, where that can be trusted.
    pub interface_check: Option<InterfaceCheck>,
    /// Denied packets in a file.
    pub samples: Option<SampleSummary>,
    /// Whether somebody ended it.
    pub interrupted: bool,
    /// How long it was in force, s.
    pub duration_s: f64,
    /// What the user should know.
    pub notes: Vec<Note>,
}

nothing_yet! {
    FilterSummary, "filter":
    run verdict reasons interface mode rules generation reloads reloads_refused judged taken_over stays rate_pps
    rate_allowed_pps interface_check samples interrupted duration_s notes
}

impl FilterSummary {
    /// The process exit code. What rules deny is no loss.
    pub fn exit_code(&self) -> u8 {
        exit_code(self.verdict, &[], true)
    }
}
