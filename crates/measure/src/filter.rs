//! What rules have met, of a filter or of whatever else decides by rules.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::note::Note;
use crate::result::is_zero;
use crate::summary::{exit_code, nothing_yet};
use crate::verdict::Validity;

/// Where a rule stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "WrittenPlace", into = "WrittenPlace")]
pub enum RulePlace {
    /// In the set that is in force: `FILE:LINE`.
    InForce(String),
    /// The default of that set.
    #[default]
    Default,
    /// In a set before it alone, as a rule or as its default.
    Gone,
}

/// The same in a result.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct WrittenPlace {
    place: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    gone: bool,
}

impl From<WrittenPlace> for RulePlace {
    fn from(written: WrittenPlace) -> Self {
        match written {
            WrittenPlace { gone: true, .. } => Self::Gone,
            WrittenPlace { place, .. } if place.is_empty() => Self::Default,
            WrittenPlace { place, .. } => Self::InForce(place),
        }
    }
}

impl From<RulePlace> for WrittenPlace {
    fn from(place: RulePlace) -> Self {
        Self {
            gone: place == RulePlace::Gone,
            place: match place {
                RulePlace::InForce(place) => place,
                RulePlace::Default | RulePlace::Gone => String::new(),
            },
        }
    }
}

/// A rule, and what it met.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleCount {
    /// Where it stands.
    #[serde(flatten)]
    pub place: RulePlace,
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
    #[serde(deserialize_with = "told_apart")]
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

    /// The same with the `most` busiest rules alone, in their order. The default is always among them; a rule that is no
    /// longer in force, however much it met, comes after those that meet packets now.
    #[must_use]
    pub fn busiest(&self, most: usize) -> Self {
        let rank = |rule: &RuleCount| match (&rule.place, rule.packets) {
            (RulePlace::Default, _) => 0,
            (_, 0) => 3,
            (RulePlace::InForce(_), _) => 1,
            (RulePlace::Gone, _) => 2,
        };
        let mut by_packets: Vec<usize> = (0..self.rules.len()).collect();
        by_packets.sort_by_key(|at| {
            let rule = &self.rules[*at];
            (rank(rule), std::cmp::Reverse(rule.packets))
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

/// Results of before `gone` was written have no place for the default and for what is no longer in force alike: the default
/// comes first.
fn told_apart<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<RuleCount>, D::Error> {
    let mut rules = Vec::<RuleCount>::deserialize(from)?;
    let is_default = |rule: &&mut RuleCount| rule.place == RulePlace::Default;
    for rule in rules.iter_mut().filter(is_default).skip(1) {
        rule.place = RulePlace::Gone;
    }
    Ok(rules)
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
    /// Whether its numbers may be believed.
    pub fn validity(&self) -> Validity {
        self.verdict
    }

    /// The process exit code. What rules deny is no loss.
    pub fn exit_code(&self) -> u8 {
        exit_code(self.verdict, &[], true)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(place: RulePlace, rule: &str, packets: u64) -> RuleCount {
        RuleCount {
            place,
            rule: rule.into(),
            packets,
            ..RuleCount::default()
        }
    }

    fn in_force(line: u32, packets: u64) -> RuleCount {
        let place = RulePlace::InForce(format!("guard:{line}"));
        rule(place, &format!("deny from 10.0.0.{line}"), packets)
    }

    /// A guard that stopped many floods, and stops one now.
    #[test]
    fn rules_that_are_gone_hide_none_that_drops_packets_now() {
        let mut rules = vec![in_force(1, 5), in_force(2, 0)];
        rules.push(rule(RulePlace::Default, "default allow", 7));
        rules.extend(
            (0..300).map(|number| rule(RulePlace::Gone, &format!("deny tos {number}"), 1000 + number)),
        );
        let judged = Judged {
            rules,
            ..Judged::default()
        };
        let told = judged.busiest(4);
        let packets: Vec<u64> = told.rules.iter().map(|rule| rule.packets).collect();
        assert_eq!(packets, [5, 7, 1298, 1299]);
        assert_eq!(
            told.further_rules, 298,
            "the rule without packets is none of them"
        );
    }

    #[test]
    fn a_default_that_is_gone_is_told_from_the_one_in_force() {
        let judged = Judged {
            rules: vec![
                in_force(1, 5),
                rule(RulePlace::Default, "default deny", 7),
                rule(RulePlace::Gone, "default allow", 9),
            ],
            ..Judged::default()
        };
        let written = serde_json::to_value(&judged).unwrap();
        let keys = |at: usize| (&written["rules"][at]["place"], written["rules"][at].get("gone"));
        assert_eq!(keys(0), (&json!("guard:1"), None));
        assert_eq!(keys(1), (&json!(""), None));
        assert_eq!(keys(2), (&json!(""), Some(&json!(true))));
        assert_eq!(serde_json::from_value::<Judged>(written.clone()).unwrap(), judged);
        // As it was written before.
        let mut before = written;
        before["rules"][2].as_object_mut().unwrap().remove("gone");
        assert_eq!(serde_json::from_value::<Judged>(before).unwrap(), judged);
    }
}
