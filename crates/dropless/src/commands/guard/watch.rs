//! The guard at work: ticks as time goes, the log, and what it all comes to.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use guard::{Blocked, Event, Expired, Guard, Over, Refused, SETTLED_NS, Sample, TICK_NS};
use measure::{GuardRefusal, GuardRule, GuardSummary, Note};
use report::number::{self, count, loss, pps};
use report::rundir::RunDir;
use rules::{RuleSet, Totals};

use super::baseline::Keeper;
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
    /// Of what the guard knew when it began.
    note: Option<Note>,
    log: Log,
    keeper: Keeper,
    begun_ns: Option<u64>,
    next_ns: u64,
    /// Generation of the guard's rules that was taken last.
    taken: u64,
    /// Lines for people that were not said yet.
    said: Vec<String>,
    /// Nothing is put in force.
    is_dry: bool,
    rules: Vec<Made>,
    further_rules: u64,
    refusals: Vec<GuardRefusal>,
    further_refusals: u64,
    samples: u64,
    /// Those that found no room, or are not to be told from what did not.
    missed: u64,
    /// When the last look at samples began.
    looked_ns: Option<u64>,
    /// How often nothing was known of what came, for how long in all, and when the last such time was over.
    pauses: u64,
    blind_ns: u64,
    seen_from_ns: u64,
    /// Samples stand for more than themselves: what they count is an estimate.
    is_estimate: bool,
    /// What all rules had met when others came into force last.
    met_before: Totals,
}

/// A rule, and the flood's first packet.
struct Made {
    told: GuardRule,
    first_ns: Option<u64>,
    /// None if it never was in force.
    before: Option<Before>,
    /// It was taken back, and whoever judges has it still: what it met to its end is not known yet.
    ending: Option<Expired>,
}

/// What a rule had met when it came into force.
struct Before {
    /// Packets that it would have met, by samples, and of them those of known sources.
    packets: u64,
    known: u64,
    /// What an earlier rule of the same text had met.
    counted: u64,
}

impl Made {
    /// What samples say that it met becomes what it met while it was in force, counted by whoever judged.
    fn settle(&mut self, totals: &Totals) {
        let told = &mut self.told;
        let Some(before) = &self.before else {
            (told.packets, told.known_packets, told.counted) = (0, 0, true);
            return;
        };
        told.packets = told.packets.saturating_sub(before.packets);
        told.known_packets = told.known_packets.saturating_sub(before.known);
        let counted = counted(totals, &told.made.rule).checked_sub(before.counted);
        // Of very many rules that are gone only the sum is known.
        if let Some(packets) = counted.filter(|packets| *packets > 0 || told.packets == 0) {
            told.packets = packets;
            told.known_packets = told.known_packets.min(packets);
            told.counted = true;
        }
    }
}

/// What rules of this text met.
fn counted(totals: &Totals, text: &str) -> u64 {
    let met = totals.rules.iter().filter(|(spelling, _)| spelling.text == text);
    met.map(|(_, count)| count.packets).sum()
}

impl Watch {
    pub fn new((guard, note): (Guard, Option<Note>), dir: &RunDir, is_dry: bool) -> Self {
        Self {
            guard,
            log: Log::new(dir),
            keeper: Keeper::default(),
            begun_ns: None,
            next_ns: 0,
            taken: 0,
            said: note.iter().map(|note| note.text.clone()).collect(),
            note,
            is_dry,
            rules: Vec::new(),
            further_rules: 0,
            refusals: Vec::new(),
            further_refusals: 0,
            samples: 0,
            missed: 0,
            looked_ns: None,
            pauses: 0,
            blind_ns: 0,
            seen_from_ns: 0,
            is_estimate: false,
            met_before: Totals::default(),
        }
    }

    /// Where what is usual is kept.
    pub fn keeping(mut self, baseline: Option<PathBuf>) -> Self {
        self.keeper = Keeper::new(baseline);
        self
    }

    /// A look at the samples that came since the one before, in their order: when it began and when it was over, and how
    /// many found no room meanwhile.
    ///
    /// Those are charged to nobody: that they were like the others is a guess, and when they came, too, so that a rate
    /// could be told too high. After a look that came late nothing is known but that there were some: those that had room
    /// are of its beginning, or of its end, and the time is passed over.
    pub fn look(&mut self, samples: &[Sample], missed: u64, (begun_ns, ended_ns): (u64, u64)) {
        self.said.extend(self.keeper.look(&self.guard, begun_ns));
        self.missed += missed;
        let before_ns = self.looked_ns.replace(begun_ns);
        let blind_ns = before_ns.map_or(0, |before_ns| ended_ns.saturating_sub(before_ns));
        if missed > 0 && blind_ns > TICK_NS {
            self.missed += samples.len() as u64;
            self.pause(blind_ns, ended_ns);
            return;
        }
        for sample in samples {
            // Of a time that was passed over, and read only now.
            if sample.time_ns < self.seen_from_ns {
                self.missed += 1;
            } else {
                self.observe(sample);
            }
        }
        self.advance(begun_ns);
    }

    fn pause(&mut self, blind_ns: u64, until_ns: u64) {
        self.guard.pause(blind_ns);
        self.next_ns = until_ns + TICK_NS;
        self.seen_from_ns = until_ns;
        self.pauses += 1;
        self.blind_ns += blind_ns;
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
        self.is_estimate |= sample.weight != 1;
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

    /// Rules that were made are in force since `now_ns`, and others no longer; so much all rules have met.
    pub fn in_force(&mut self, set: &RuleSet, now_ns: u64, totals: &Totals) {
        let is_there = |text: &str| set.rules.iter().any(|rule| rule.text == text);
        let ended = self.ended(totals, is_there);
        for made in &mut self.rules {
            let is_new = made.before.is_none() && made.told.gone_s.is_none();
            if !is_new || !is_there(&made.told.made.rule) {
                continue;
            }
            let met = self
                .guard
                .in_force()
                .find(|(rule, ..)| *rule == made.told.made.rule);
            let (packets, known) = met.map_or((0, 0), |(_, packets, known)| (packets, known));
            made.before = Some(Before {
                packets,
                known,
                // By now it may have met some itself, but where it goes on in the place of another.
                counted: if ended.contains(&made.told.made.rule) {
                    counted(totals, &made.told.made.rule)
                } else {
                    counted(&self.met_before, &made.told.made.rule)
                },
            });
            let after = made
                .first_ns
                .map(|first_ns| now_ns.saturating_sub(first_ns) as f64 / 1e9);
            made.told.stopped_after_s = after;
        }
        self.met_before = totals.clone();
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
            match event {
                Event::Blocked(blocked) => {
                    self.log(&Event::Blocked(blocked.clone()));
                    self.blocked(blocked);
                }
                Event::Refused(refused) => {
                    self.log(&Event::Refused(refused.clone()));
                    self.refused(refused);
                }
                Event::Expired(expired) => self.expired(expired),
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

    /// Whether what the guard saw of a rule is what whoever judges by it has counted.
    fn sees_all(&self) -> bool {
        !self.is_estimate && !self.is_dry
    }

    /// It is told once whoever judges has it no longer, with what it met.
    fn expired(&mut self, mut expired: Expired) {
        let at_s = self.seconds(expired.time_ns);
        expired.counted = self.sees_all();
        let Some(made) = there(&mut self.rules, &expired.rule) else {
            self.gone(&expired, "it would have met");
            return;
        };
        made.told.gone_s = Some(at_s);
        (made.told.packets, made.told.known_packets) = (expired.packets, expired.known_packets);
        made.told.counted = expired.counted;
        if made.before.is_some() {
            made.ending = Some(expired);
        } else {
            self.gone(&expired, "it would have met");
        }
    }

    /// Rules that were taken back and are not in force any more have met what they met; which ones.
    fn ended(&mut self, totals: &Totals, is_there: impl Fn(&str) -> bool) -> Vec<String> {
        let again: Vec<String> = self
            .rules
            .iter()
            .filter(|made| made.told.gone_s.is_none())
            .map(|made| made.told.made.rule.clone())
            .collect();
        let mut ended = Vec::new();
        for made in &mut self.rules {
            // One that was made again goes on in the place of the first.
            let is_over = |expired: &mut Expired| !is_there(&expired.rule) || again.contains(&expired.rule);
            if let Some(expired) = made.ending.take_if(is_over) {
                made.settle(totals);
                ended.push(Expired {
                    packets: made.told.packets,
                    known_packets: made.told.known_packets,
                    counted: made.told.counted,
                    ..expired
                });
            }
        }
        for expired in &ended {
            self.gone(expired, "it met");
        }
        ended.into_iter().map(|expired| expired.rule).collect()
    }

    /// A rule has gone, and met what it says.
    fn gone(&mut self, expired: &Expired, how: &str) {
        self.log(&Event::Expired(expired.clone()));
        let why = match expired.why {
            Over::Quiet => "",
            Over::Wider => " (a wider one stands for it)",
        };
        let about = |is_estimate| if is_estimate { "about " } else { "" };
        self.said.push(format!(
            "{:.1} s: no longer blocked{why}: {}\n    {how} {}{} packets, {}{} of them of known sources{}",
            self.seconds(expired.time_ns),
            short(&expired.rule),
            about(!expired.counted),
            count(expired.packets),
            about(self.is_estimate),
            count(expired.known_packets),
            if self.is_estimate {
                " (about: by samples)"
            } else {
                ""
            }
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
        let unspared = match made.unspared {
            0 => String::new(),
            more => format!(
                "; it names no more known sources, and {} share the rate with strangers",
                number::counted(more, "further one")
            ),
        };
        let what = if self.is_dry { "would block" } else { "blocked" };
        self.said.push(format!(
            "{made_s:.1} s: {what}: {}\n    {} of {} {}, limit {limit}{usual}; explains {}, costs {} of {} legitimate packets that are known{unspared}",
            short(&made.rule),
            pps(made.rate_pps as f64),
            made.class,
            way(made.destination.as_deref(), made.source.as_deref()),
            loss(made.explained),
            loss(made.cost),
            count(made.cost_by)
        ));
        if self.rules.len() >= RULES_MAX {
            let is_over = |made: &Made| made.told.gone_s.is_some() && made.ending.is_none();
            if let Some(at) = self.rules.iter().position(is_over) {
                self.rules.remove(at);
                self.further_rules += 1;
            }
        }
        self.rules.push(Made {
            first_ns: blocked.first_ns,
            before: None,
            ending: None,
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
            if self.log.missing == 1 {
                self.said.push(format!("the log is not whole: {error}"));
            }
        }
    }

    /// What it came to, with what all rules have met; those that never were in force have met nothing.
    pub fn finish(&mut self, summary: &mut GuardSummary, totals: &Totals) {
        self.ended(totals, |_| false);
        let is_counted = self.sees_all();
        for (rule, packets, known) in self.guard.in_force() {
            if let Some(made) = there(&mut self.rules, &rule) {
                (made.told.packets, made.told.known_packets) = (packets, known);
                made.told.counted = is_counted;
                if !summary.dry_run {
                    made.settle(totals);
                }
            }
        }
        for mut made in self.rules.drain(..) {
            if made.before.is_none() && !summary.dry_run {
                made.settle(totals);
            }
            summary.blocks.push(made.told);
        }
        summary.further_blocks = self.further_rules;
        summary.refusals = std::mem::take(&mut self.refusals);
        summary.further_refusals = self.further_refusals;
        summary.samples = self.samples;
        summary.samples_missed = self.missed;
        summary.notes.extend(self.note.take());
        summary.notes.extend(self.keeper.finish(&self.guard));
        if self.pauses > 0 {
            let text = format!(
                "no flood was looked for during {:.1} s ({}): this process stood still or had no core, and samples of packets found no room (what came was judged by the rules in force, and counted); fix: leave it a core that nothing else keeps busy",
                self.blind_ns as f64 / 1e9,
                number::counted(self.pauses, "pause")
            );
            summary.notes.push(Note::new("not_watched", text));
        }
        summary.log_left_out = self.log.left_out;
        self.log.finish();
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
mod tests;
