//! One packet's verdict, rule by rule, as the language means it.

use std::fmt::Write as _;

use anyhow::Result;
use capture::input::Packet;
use dissect::{Clock, Printer, Show, TimeFormat};
use report::out;
use rules::{Decision, Facts, Groups, Malformed, RuleSet, Step, Unmet, Verdict, is_cut, look};

use super::times::{self, Times};
use crate::run::output::Output;

/// Rules, and what rates have seen.
pub struct Why<'r> {
    set: &'r RuleSet,
    groups: Groups,
    times: Times,
}

impl<'r> Why<'r> {
    pub fn new(set: &'r RuleSet) -> Self {
        Self {
            set,
            groups: Groups::default(),
            times: Times::new(set),
        }
    }

    /// What a packet is; `None` where too little of it was captured.
    fn look(&self, packet: &Packet<'_>) -> Option<Result<Facts, Malformed>> {
        let len = packet.original_len as usize;
        let found = look(packet.data, len, self.set.reasons());
        (!is_cut(packet.data, len, &found)).then_some(found)
    }

    /// Judges a packet as the language means it.
    fn judge(
        &mut self,
        time_ns: u64,
        found: &Result<Facts, Malformed>,
        step: impl FnMut(usize, Step),
    ) -> Decision {
        self.set.judge(found, time_ns, &mut self.groups, step)
    }

    /// Accounts for a packet before the one that is explained.
    pub fn pass(&mut self, packet: &Packet<'_>) {
        let time_ns = self.times.of(packet);
        if let Some(found) = self.look(packet) {
            self.judge(time_ns, &found, |_, _| {});
        }
    }

    /// Prints how a packet is judged.
    pub fn explain(&mut self, packet: &Packet<'_>) -> Result<()> {
        let mut line = Output::new();
        let clock = Clock::new(TimeFormat::Clock, false);
        Printer::new(clock, Show { ethernet: true }).line(&mut line.text, packet);
        line.flush()?;
        let set = self.set;
        let time_ns = self.times.of(packet);
        let Some(found) = self.look(packet) else {
            return Ok(out::print_stdout(
                "cut off: not all of its headers were captured, and so it cannot be judged\n",
            )?);
        };
        let mut text = match found {
            Ok(_) => String::new(),
            Err(reason) => format!(
                "malformed: {}; nothing else that it says is believed\n",
                reason.name()
            ),
        };
        let decision = self.judge(time_ns, &found, |number, step| {
            let rule = &set.rules[number];
            let said = match step {
                Step::Unmet(unmet) => format!("no: {}", reason(unmet)),
                Step::Within => "met, and within the rate: goes on".into(),
                Step::Over => "met, and above the rate: denied".into(),
                Step::Decided(verdict) => format!("met: {}", past(verdict)),
            };
            let _ = writeln!(text, "{}: {}\n    {said}", set.place(rule), rule.text);
        });
        if decision.rule.is_none() {
            let _ = writeln!(text, "default {}: {}", set.default.word(), past(set.default));
        }
        if self.times.has_rates {
            let _ = writeln!(
                text,
                "(rates have seen the packets before it in this file{})",
                times::told(self.times.missing())
            );
        }
        Ok(out::print_stdout(&text)?)
    }
}

const fn past(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allowed",
        Verdict::Deny => "denied",
    }
}

const fn reason(unmet: Unmet) -> &'static str {
    match unmet {
        Unmet::Malformed => {
            "it is not malformed in this way, or is malformed and the rule asks for something else"
        }
        Unmet::Vlan => "its VLAN is another",
        Unmet::Network => "its network layer is another",
        Unmet::Protocol => "its protocol is another",
        Unmet::Fragment => "it is not such a fragment",
        Unmet::Source => "its source address is another",
        Unmet::Destination => "its destination address is another",
        Unmet::SourcePort => "its source port is another, or it has none",
        Unmet::DestinationPort => "its destination port is another, or it has none",
        Unmet::Flags => "its TCP flags are others",
        Unmet::Type => "its ICMP type is another",
    }
}
