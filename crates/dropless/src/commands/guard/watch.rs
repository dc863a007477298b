//! The guard at work: ticks as time goes, the log, and what it all comes to.

use anyhow::{Result, anyhow};
use guard::{Blocked, Event, Expired, Guard, Over, Refused, SETTLED_NS, Sample, TICK_NS};
use measure::{GuardRefusal, GuardRule, GuardSummary, Note};
use report::number::{count, pps};
use report::rundir::RunDir;
use rules::RuleSet;

use super::log::Log;

/// A silence of more ticks is not lived through one by one.
const TICKS_MAX: u64 = 6000;
/// Rules that are kept for the result, where they are not in force any more: floods that change for days make many.
const RULES_MAX: usize = 1000;
/// Refusals that the result has.
const REFUSALS_MAX: usize = 1000;
/// Characters of a rule on a terminal.
const SHOWN: usize = 160;

/// A guard, and its log.
pub struct Watch {
    pub guard: Guard,
    log: Log,
    begun_ns: Option<u64>,
    next_ns: u64,
    /// Generation of the guard's rules that was taken last.
    taken: u64,
    /// Lines for people that were not said yet.
    said: Vec<String>,
    log_failed: bool,
    /// Nothing is put in force.
    is_dry: bool,
    rules: Vec<Made>,
    further_rules: u64,
    refusals: Vec<GuardRefusal>,
    further_refusals: u64,
    samples: u64,
}

/// A rule, and the flood's first packet.
struct Made {
    told: GuardRule,
    first_ns: Option<u64>,
    /// Packets that it would have met before it was in force, and of them those of known sources; none if it never was.
    in_vain: Option<(u64, u64)>,
}

impl Made {
    /// What it met, of what it would have met in all.
    fn met(&self, (packets, known): (u64, u64), dry_run: bool) -> (u64, u64) {
        let (before, before_known) = match self.in_vain {
            _ if dry_run => (0, 0),
            Some(before) => before,
            None => (packets, known),
        };
        (packets.saturating_sub(before), known.saturating_sub(before_known))
    }
}

impl Watch {
    pub fn new(guard: Guard, dir: &RunDir, is_dry: bool) -> Self {
        Self {
            guard,
            log: Log::new(dir),
            begun_ns: None,
            next_ns: 0,
            taken: 0,
            said: Vec::new(),
            log_failed: false,
            is_dry,
            rules: Vec::new(),
            further_rules: 0,
            refusals: Vec::new(),
            further_refusals: 0,
            samples: 0,
        }
    }

    /// Time has come so far.
    pub fn advance(&mut self, now_ns: u64) {
        if self.begun_ns.is_none() {
            self.begun_ns = Some(now_ns);
            self.next_ns = now_ns + TICK_NS;
        }
        let mut ticks = 0;
        while self.next_ns <= now_ns {
            let at_ns = self.next_ns;
            let events = self.guard.tick(at_ns);
            self.take(events);
            self.next_ns += TICK_NS;
            ticks += 1;
            if ticks == TICKS_MAX {
                self.next_ns = self.next_ns.max(now_ns);
            }
        }
    }

    /// A packet.
    pub fn observe(&mut self, sample: &Sample) {
        self.advance(sample.time_ns);
        self.samples += 1;
        self.guard.observe(sample);
    }

    /// The guard's rules, if they are others than when this was asked last.
    pub fn changed(&mut self) -> Option<Result<RuleSet>> {
        let generation = self.guard.generation();
        if generation == self.taken {
            return None;
        }
        self.taken = generation;
        // Of what it does not block it says nothing.
        let text = self.guard.rules() + "default allow\n";
        let set = rules::parse("guard", &|_| Ok(text.clone()));
        Some(set.map_err(|problems| anyhow!("the guard's own rules: {problems:?}")))
    }

    /// Rules that were made are in force since `now_ns`.
    pub fn in_force(&mut self, set: &RuleSet, now_ns: u64) {
        for made in &mut self.rules {
            let is_new = made.in_vain.is_none() && made.told.gone_s.is_none();
            if !is_new || !set.rules.iter().any(|rule| rule.text == made.told.made.rule) {
                continue;
            }
            let met = self
                .guard
                .in_force()
                .find(|(rule, ..)| *rule == made.told.made.rule);
            made.in_vain = Some(met.map_or((0, 0), |(_, packets, known)| (packets, known)));
            let after = made
                .first_ns
                .map(|first_ns| now_ns.saturating_sub(first_ns) as f64 / 1e9);
            made.told.stopped_after_s = after;
        }
    }

    /// Lines for people, each once.
    pub fn says(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }

    fn seconds(&self, time_ns: u64) -> f64 {
        time_ns.saturating_sub(self.begun_ns.unwrap_or(time_ns)) as f64 / 1e9
    }

    fn take(&mut self, events: Vec<Event>) {
        for event in events {
            self.log(&event);
            match event {
                Event::Blocked(blocked) => self.blocked(blocked),
                Event::Refused(refused) => self.refused(refused),
                Event::Expired(expired) => self.expired(&expired),
            }
        }
    }

    fn refused(&mut self, Refused { time_ns, refused }: Refused) {
        let at_s = self.seconds(time_ns);
        self.said.push(format!(
            "{at_s:.1} s: not blocked: {} of {} {}: {}",
            pps(refused.rate_pps as f64),
            refused.class,
            way(refused.destination.as_deref(), refused.source.as_deref()),
            refused.why
        ));
        if self.refusals.len() == REFUSALS_MAX {
            self.further_refusals += 1;
        } else {
            self.refusals.push(GuardRefusal { at_s, refused });
        }
    }

    fn expired(&mut self, expired: &Expired) {
        let at_s = self.seconds(expired.time_ns);
        let why = match expired.why {
            Over::Quiet => "",
            Over::Wider => " (a wider one stands for it)",
        };
        let all = (expired.packets, expired.known_packets);
        let mut met = ("it would have met", all);
        if let Some(made) = there(&mut self.rules, &expired.rule) {
            made.told.gone_s = Some(at_s);
            (made.told.packets, made.told.known_packets) = all;
            if made.in_vain.is_some() {
                met = ("it met", made.met(all, false));
            }
        }
        let (how, (packets, known)) = met;
        self.said.push(format!(
            "{at_s:.1} s: no longer blocked{why}: {}\n    {how} {} packets, {} of them of known sources",
            short(&expired.rule),
            count(packets),
            count(known)
        ));
    }

    fn blocked(&mut self, blocked: Blocked) {
        let made_s = self.seconds(blocked.time_ns);
        let made = blocked.made;
        let limit = match (made.limit_pps, made.limit_bps) {
            (Some(limit), _) => pps(limit as f64),
            (None, bits) => format!("{} bit/s", count(bits.unwrap_or_default())),
        };
        let usual = made
            .usual_pps
            .map_or_else(String::new, |usual| format!(", usual {}", pps(usual as f64)));
        let what = if self.is_dry { "would block" } else { "blocked" };
        self.said.push(format!(
            "{made_s:.1} s: {what}: {}\n    {} of {} {}, limit {limit}{usual}; explains {:.1} %, costs {:.1} % of {} legitimate packets that are known",
            short(&made.rule),
            pps(made.rate_pps as f64),
            made.class,
            way(made.destination.as_deref(), made.source.as_deref()),
            made.explained * 100.0,
            made.cost * 100.0,
            count(made.cost_by)
        ));
        if self.rules.len() >= RULES_MAX {
            if let Some(at) = self.rules.iter().position(|made| made.told.gone_s.is_some()) {
                self.rules.remove(at);
                self.further_rules += 1;
            }
        }
        self.rules.push(Made {
            first_ns: blocked.first_ns,
            in_vain: None,
            told: GuardRule {
                made,
                made_s,
                ..GuardRule::default()
            },
        });
    }

    /// A line of the log; a full disk is said once.
    fn log(&mut self, event: &Event) {
        if let Err(error) = self.log.write(event) {
            if !std::mem::replace(&mut self.log_failed, true) {
                self.said.push(format!("the log is not whole: {error}"));
            }
        }
    }

    /// What it came to; rules that are there still have met so much, and those that never were in force nothing.
    pub fn finish(&mut self, summary: &mut GuardSummary) {
        for (rule, packets, known) in self.guard.in_force() {
            if let Some(made) = there(&mut self.rules, &rule) {
                (made.told.packets, made.told.known_packets) = (packets, known);
            }
        }
        for mut made in self.rules.drain(..) {
            let all = (made.told.packets, made.told.known_packets);
            (made.told.packets, made.told.known_packets) = made.met(all, summary.dry_run);
            summary.blocks.push(made.told);
        }
        summary.further_blocks = self.further_rules;
        summary.refusals = std::mem::take(&mut self.refusals);
        summary.further_refusals = self.further_refusals;
        summary.samples = self.samples;
        summary.log_left_out = self.log.left_out;
        if !self.guard.judges_sources() {
            let text = format!(
                "sources that flood many destinations are told from the {}th second on, and it ended before: --baseline FILE takes up what an earlier run has seen",
                SETTLED_NS / 1_000_000_000
            );
            summary.notes.push(Note::new("sources_not_judged", text));
        }
    }
}

/// The rule of this text that is not gone.
fn there<'r>(rules: &'r mut [Made], text: &str) -> Option<&'r mut Made> {
    let mut newest = rules.iter_mut().rev();
    newest.find(|made| made.told.gone_s.is_none() && made.told.made.rule == text)
}

/// Where a flood goes, or who sends it to many.
fn way(destination: Option<&str>, source: Option<&str>) -> String {
    match (destination, source) {
        (Some(to), _) => format!("to {to}"),
        (None, Some(from)) => format!("from {from} to many"),
        (None, None) => "to anybody".to_owned(),
    }
}

fn short(rule: &str) -> String {
    match rule.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}...", &rule[..at]),
        None => rule.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use guard::Settings;
    use rules::{Detail, Facts, Layer, Part};

    use super::*;

    /// A second of a flood, sixty thousand packets of it, from `from_s` on.
    fn flood(watch: &mut Watch, from_s: u64) {
        for number in 0..60_000_u64 {
            let packet = Ok(Facts {
                vlan: None,
                ether_type: 0x0800,
                layer: Layer::V4,
                protocol: 17,
                part: Part::Whole,
                source: u128::from(0x0B00_0000 + number as u32 * 7919) << 96,
                destination: 0xC000_0201 << 96,
                ports: Some((123, 7)),
                detail: Detail::None,
            });
            watch.observe(&Sample {
                packet,
                len: 60,
                weight: 1,
                time_ns: from_s * 1_000_000_000 + number * 1_000_000_000 / 60_000,
            });
        }
    }

    /// What a rule met by the result: after a second before it is in force, if it is then, and another.
    fn met(loads: bool, dry_run: bool) -> (u64, Option<f64>) {
        let dir = tempfile::tempdir().unwrap();
        let mut watch = Watch::new(
            Guard::new(Settings::default(), 1),
            &RunDir::reopen(dir.path()),
            dry_run,
        );
        flood(&mut watch, 1);
        let set = watch.changed().unwrap().unwrap();
        if loads {
            watch.in_force(&set, 2_000_000_000);
            // Others are loaded, with it among them.
            watch.in_force(&set, 2_500_000_000);
        }
        flood(&mut watch, 2);
        let mut summary = GuardSummary {
            dry_run,
            ..GuardSummary::default()
        };
        watch.finish(&mut summary);
        assert_eq!(summary.blocks.len(), 1, "{:?}", summary.blocks);
        (summary.blocks[0].packets, summary.blocks[0].stopped_after_s)
    }

    #[test]
    fn a_rule_has_met_what_came_while_it_was_in_force() {
        let (packets, after_s) = met(true, false);
        assert_eq!(packets, 60_000);
        assert!(
            after_s.is_some_and(|after_s| (0.9..1.1).contains(&after_s)),
            "{after_s:?}"
        );
        assert_eq!(met(false, false), (0, None), "it could not be loaded");
        let (would_have, after_s) = met(false, true);
        assert!(would_have > 90_000 && after_s.is_none(), "{would_have}");
    }
}
