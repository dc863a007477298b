//! What a guard found and stopped.

use serde::{Deserialize, Serialize};

use crate::filter::{InterfaceCheck, Judged};
use crate::forward::ForwardSummary;
use crate::note::Note;
use crate::result::is_zero;
use crate::summary::{exit_code, nothing_yet};
use crate::verdict::Validity;

/// A flood, and the rule against it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleMade {
    /// As the rule language says it.
    pub rule: String,
    /// What the flood is made of.
    pub class: String,
    /// Where it goes; none for malformed packets, and where it goes to many.
    pub destination: Option<String>,
    /// Who sends it, where it goes to many.
    pub source: Option<String>,
    /// Packets a second of this class for this destination, or from this source.
    pub rate_pps: u64,
    /// Bits a second.
    pub rate_bps: u64,
    /// What was too much, packets a second.
    pub limit_pps: Option<u64>,
    /// What was too much, bits a second.
    pub limit_bps: Option<u64>,
    /// What is usual, packets a second.
    pub usual_pps: Option<u64>,
    /// Share of the flood that the rule meets.
    pub explained: f64,
    /// Share that it meets of the legitimate packets that are known.
    pub cost: f64,
    /// So many legitimate packets were known.
    pub cost_by: u64,
    /// Known sources that share the rate with strangers, as a rule names no more.
    #[serde(skip_serializing_if = "is_zero")]
    pub unspared: u64,
}

/// A flood that no rule was made against.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleRefused {
    /// The rule, if one was found.
    pub rule: Option<String>,
    /// Where it goes.
    pub destination: Option<String>,
    /// Who sends it, where it goes to many.
    pub source: Option<String>,
    /// What it is made of.
    pub class: String,
    /// Packets a second.
    pub rate_pps: u64,
    /// Why.
    pub why: String,
}

/// A rule that it made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GuardRule {
    /// The rule, and why.
    #[serde(flatten)]
    pub made: RuleMade,
    /// When the rule was made, s from the beginning.
    pub made_s: f64,
    /// When it was taken back, s from the beginning; none if it was there at the end.
    pub gone_s: Option<f64>,
    /// From the flood's first packet to the rule in force, s.
    pub stopped_after_s: Option<f64>,
    /// Packets that it met.
    pub packets: u64,
    /// They were counted one by one, by whatever judged them; otherwise it is what samples stand for.
    pub counted: bool,
    /// Of these, those of sources that spoke with the destination before, by what samples stand for.
    pub known_packets: u64,
}

/// A flood that was seen, and no rule made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GuardRefusal {
    /// When, s from the beginning.
    pub at_s: f64,
    /// What, and why not.
    #[serde(flatten)]
    pub refused: RuleRefused,
}

/// The whole result of `dropless guard`, as `summary.json` and `--json` carry it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GuardSummary {
    /// Version of this format.
    pub version: u32,
    /// The subcommand, `guard`.
    pub command: String,
    /// The run directory.
    pub run: String,
    /// Whether the counts may be believed.
    pub verdict: Validity,
    /// Why not; empty when valid.
    pub reasons: Vec<Note>,
    /// The interface, the file, or the two ports.
    pub source: String,
    /// `native` or `generic` on an interface, `replay` over a file, `forward` between ports.
    pub mode: String,
    /// Nothing was blocked, only told.
    pub dry_run: bool,
    /// The user's own rules; empty if there were none.
    pub rules: String,
    /// What became of packets by all rules: of a dry run, by the user's.
    pub judged: Judged,
    /// Packets whose headers were cut off: of a file when they were captured, on an interface behind what samples have of them.
    pub not_judged: u64,
    /// Rules that were made, in their order.
    pub blocks: Vec<GuardRule>,
    /// Further rules, of those that were taken back first; they are in the log only.
    pub further_blocks: u64,
    /// Rules that were not.
    pub refusals: Vec<GuardRefusal>,
    /// Further refusals, which are in the log only.
    pub further_refusals: u64,
    /// Events of which only the number is known: the log keeps the newest.
    pub log_left_out: u64,
    /// Packets that it saw one by one.
    pub samples: u64,
    /// Packets that it should have seen and had no room for.
    pub samples_missed: u64,
    /// Packets a second.
    pub rate_pps: f64,
    /// The same packets by the interface's own counter, where that can be trusted.
    pub interface_check: Option<InterfaceCheck>,
    /// What forwarding came to, between two ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward: Option<Box<ForwardSummary>>,
    /// Whether somebody ended it.
    pub interrupted: bool,
    /// How long it lasted, s; of a file, by the times in it.
    pub duration_s: f64,
    /// What the user should know.
    pub notes: Vec<Note>,
}

nothing_yet! {
    GuardSummary, "guard":
    run verdict reasons source mode dry_run rules judged not_judged blocks further_blocks refusals further_refusals log_left_out
    samples samples_missed rate_pps interface_check forward interrupted duration_s notes
}

impl GuardSummary {
    /// The process exit code. What is blocked is no loss; between ports what is lost is one, as in forwarding.
    pub fn exit_code(&self) -> u8 {
        match &self.forward {
            Some(forward) => forward.exit_code(),
            None => exit_code(self.verdict, &[], true),
        }
    }
}
