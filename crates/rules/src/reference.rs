//! What the language means: one rule after the other. Slow, and the judge of all faster ways.

use std::collections::HashMap;

use crate::limit::{Interval, Over};
use crate::{Action, Facts, Layer, Malformed, RuleSet, Unmet, Verdict};

/// What became of a packet, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// Its fate.
    pub verdict: Verdict,
    /// The rule that decided, by its place in the set; `None`: the default.
    pub rule: Option<u16>,
    /// A rate had no entry left for its group.
    pub is_full: bool,
}

/// When each group may send again, by rate and family: without a bound.
#[derive(Debug, Default)]
pub struct Groups(HashMap<(usize, bool, u128), u64>);

/// What a rule said of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A condition was not met.
    Unmet(Unmet),
    /// It decided.
    Decided(Verdict),
    /// The packet is within the rate, and goes on.
    Within,
    /// It is above the rate, and dropped.
    Over,
}

impl RuleSet {
    /// Judges what [`crate::look`] found, at this time; tells every rule's answer to `step`.
    pub fn judge(
        &self,
        packet: &Result<Facts, Malformed>,
        now_ns: u64,
        groups: &mut Groups,
        mut step: impl FnMut(usize, Step),
    ) -> Decision {
        let mut rate = 0;
        for (number, rule) in self.rules.iter().enumerate() {
            let this_rate = rate;
            rate += usize::from(matches!(rule.action, Action::Limit(_)));
            let said = match rule.when.check(packet) {
                Err(unmet) => Step::Unmet(unmet),
                Ok(()) => match &rule.action {
                    Action::Decide(verdict) => Step::Decided(*verdict),
                    Action::Limit(limit) => {
                        let group = packet
                            .as_ref()
                            .ok()
                            .and_then(|facts| Some((limit.group(facts)?, facts.layer)));
                        let within = group.is_none_or(|(group, layer)| {
                            groups
                                .pass((this_rate, layer == Layer::V6, group), limit.into(), now_ns)
                                .is_ok()
                        });
                        if within { Step::Within } else { Step::Over }
                    }
                },
            };
            step(number, said);
            let verdict = match said {
                Step::Decided(verdict) => verdict,
                Step::Over => Verdict::Deny,
                Step::Unmet(_) | Step::Within => continue,
            };
            return Decision {
                verdict,
                rule: Some(number as u16),
                is_full: false,
            };
        }
        Decision {
            verdict: self.default,
            rule: None,
            is_full: false,
        }
    }
}

impl Groups {
    fn pass(&mut self, group: (usize, bool, u128), interval: Interval, now_ns: u64) -> Result<(), Over> {
        let due = self.0.entry(group).or_default();
        *due = interval.next(*due, now_ns).ok_or(Over::Rate)?;
        Ok(())
    }
}
