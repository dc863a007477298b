//! The guard at work: ticks as time goes, the log, and what it all comes to.

use std::io::Write as _;

use anyhow::{Result, anyhow};
use guard::{Blocked, Event, Guard, Over, Sample, TICK_NS};
use measure::{GuardRefusal, GuardRule, GuardSummary};
use report::number::{count, pps};
use report::rundir::RunDir;
use rules::RuleSet;

/// Its log in the run directory, an event a line.
const LOG: &str = "guard.jsonl";
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
    dir: RunDir,
    begun_ns: Option<u64>,
    next_ns: u64,
    /// Generation of the guard's rules that was taken last.
    taken: u64,
    /// Lines for people that were not said yet.
    said: Vec<String>,
    log_failed: bool,
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
}

impl Watch {
    pub fn new(guard: Guard, dir: &RunDir) -> Self {
        Self {
            guard,
            dir: dir.clone(),
            begun_ns: None,
            next_ns: 0,
            taken: 0,
            said: Vec::new(),
            log_failed: false,
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
        let text = self.guard.rules();
        let set = rules::parse("guard", &|_| Ok(text.clone()));
        Some(set.map_err(|problems| anyhow!("the guard's own rules: {problems:?}")))
    }

    /// Rules that were made are in force since `now_ns`.
    pub fn in_force(&mut self, set: &RuleSet, now_ns: u64) {
        for made in &mut self.rules {
            let is_there = || set.rules.iter().any(|rule| rule.text == made.told.rule);
            if made.told.stopped_after_s.is_none() && made.told.gone_s.is_none() && is_there() {
                let after = made
                    .first_ns
                    .map(|first_ns| now_ns.saturating_sub(first_ns) as f64 / 1e9);
                made.told.stopped_after_s = after;
            }
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
                Event::Refused(refused) => {
                    let at_s = self.seconds(refused.time_ns);
                    let to = refused.destination.as_deref().unwrap_or("anybody");
                    self.said.push(format!(
                        "{at_s:.1} s: not blocked: {} of {} to {to}: {}",
                        pps(refused.rate_pps as f64),
                        refused.class.name(),
                        refused.why
                    ));
                    if self.refusals.len() == REFUSALS_MAX {
                        self.further_refusals += 1;
                        continue;
                    }
                    self.refusals.push(GuardRefusal {
                        at_s,
                        rule: refused.rule,
                        destination: refused.destination,
                        class: refused.class.name().to_owned(),
                        rate_pps: refused.rate_pps,
                        why: refused.why,
                    });
                }
                Event::Expired(expired) => {
                    let at_s = self.seconds(expired.time_ns);
                    let why = match expired.why {
                        Over::Quiet => "",
                        Over::Wider => " (a wider one stands for it)",
                    };
                    self.said.push(format!(
                        "{at_s:.1} s: no longer blocked{why}: {}\n    it met {} packets, {} of them of known sources",
                        short(&expired.rule),
                        count(expired.packets),
                        count(expired.known_packets)
                    ));
                    let is_it =
                        |made: &&mut Made| made.told.gone_s.is_none() && made.told.rule == expired.rule;
                    if let Some(made) = self.rules.iter_mut().rev().find(is_it) {
                        made.told.gone_s = Some(at_s);
                        made.told.packets = expired.packets;
                        made.told.known_packets = expired.known_packets;
                    }
                }
            }
        }
    }

    fn blocked(&mut self, blocked: Blocked) {
        let made_s = self.seconds(blocked.time_ns);
        let limit = match (blocked.limit_pps, blocked.limit_bps) {
            (Some(limit), _) => pps(limit as f64),
            (None, bits) => format!("{} bit/s", count(bits.unwrap_or_default())),
        };
        let usual = blocked
            .usual_pps
            .map_or_else(String::new, |usual| format!(", usual {}", pps(usual as f64)));
        self.said.push(format!(
            "{made_s:.1} s: blocked: {}\n    {} of {} to {}, limit {limit}{usual}; explains {:.1} %, costs {:.1} % of {} legitimate packets that are known",
            short(&blocked.rule),
            pps(blocked.rate_pps as f64),
            blocked.class.name(),
            blocked.destination.as_deref().unwrap_or("anybody"),
            blocked.explained * 100.0,
            blocked.cost * 100.0,
            count(blocked.cost_by)
        ));
        if self.rules.len() >= RULES_MAX
            && let Some(at) = self.rules.iter().position(|made| made.told.gone_s.is_some())
        {
            self.rules.remove(at);
            self.further_rules += 1;
        }
        self.rules.push(Made {
            first_ns: blocked.first_ns,
            told: GuardRule {
                rule: blocked.rule,
                class: blocked.class.name().to_owned(),
                destination: blocked.destination,
                made_s,
                rate_pps: blocked.rate_pps,
                rate_bps: blocked.rate_bps,
                limit_pps: blocked.limit_pps,
                limit_bps: blocked.limit_bps,
                usual_pps: blocked.usual_pps,
                explained: blocked.explained,
                cost: blocked.cost,
                cost_by: blocked.cost_by,
                ..GuardRule::default()
            },
        });
    }

    /// A line of the log; a full disk is said once.
    fn log(&mut self, event: &Event) {
        let line = serde_json::to_string(event).map_err(std::io::Error::other);
        let written = line.and_then(|line| writeln!(report::ours::append(&self.dir.file(LOG))?, "{line}"));
        if let Err(error) = written
            && !std::mem::replace(&mut self.log_failed, true)
        {
            self.said.push(format!("{LOG} is not whole: {error}"));
        }
    }

    /// What it came to; rules that are there still have met so much.
    pub fn finish(&mut self, summary: &mut GuardSummary) {
        for (rule, packets, known) in self.guard.in_force() {
            let is_it = |made: &&mut Made| made.told.gone_s.is_none() && made.told.rule == rule;
            if let Some(made) = self.rules.iter_mut().rev().find(is_it) {
                (made.told.packets, made.told.known_packets) = (packets, known);
            }
        }
        summary.blocks = self.rules.drain(..).map(|made| made.told).collect();
        summary.further_blocks = self.further_rules;
        summary.refusals = std::mem::take(&mut self.refusals);
        summary.further_refusals = self.further_refusals;
        summary.samples = self.samples;
    }
}

fn short(rule: &str) -> String {
    match rule.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}...", &rule[..at]),
        None => rule.to_owned(),
    }
}
