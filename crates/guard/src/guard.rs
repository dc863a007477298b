//! The guard: samples in, rules out.

mod cases;

use rules::limit::{Limiter, WAYS};
use rules::{Facts, Layer, Looked, Malformed, ON_REQUEST, Prefix, Verdict};

use crate::block::{Action, Block, Meets};
use crate::event::{Blocked, Event, Refused};
use crate::explain::Found;
use crate::flood::{Flood, Where};
use crate::in_force::InForce;
use crate::known::Known;
use crate::recent::{Recent, Seen};
use crate::settings::Settings;
use crate::traffic::{ACQUAINTED_NS, Traffic, WINDOW};
use crate::watched::{End, Judged, Watched, flood};
use crate::{Baseline, Class, Sample};
use measure::{RuleMade, RuleRefused};

/// How often it decides; ns.
pub const TICK_NS: u64 = 100_000_000;
/// Pairs that are known.
const PAIRS: usize = 1 << 16;
/// Whoever was met so long before a flood belongs to what was there before; ns.
const BEFORE_NS: u64 = 1_000_000_000;
/// What was refused is told again after so long; ns.
const TOLD_NS: u64 = 10_000_000_000;
/// Floods that are looked at in one tick.
const FLOODS: usize = 8;
/// Ticks between two halvings of what makes a destination or source busy.
const DECAY: u64 = 10;
/// Sources are judged after so long: before, the busiest resolver is as strange as a flood; ns.
pub const SETTLED_NS: u64 = 30_000_000_000;

/// Watches traffic, and says what to block.
#[derive(Debug)]
pub struct Guard {
    settings: Settings,
    limiter: Limiter,
    destinations: Watched,
    sources: Watched,
    /// What is usual of sources was told at the start.
    has_sources: bool,
    malformed: [Traffic; Malformed::ALL.len()],
    known: Known,
    recent: Recent,
    in_force: InForce,
    /// All packets, by tick, for the cap.
    packets: [u64; WINDOW],
    chance: u64,
    ticks: u64,
    /// What was refused, and until when that is not told again.
    told: Vec<(Where, Class, u64)>,
}

impl Guard {
    /// A guard that has seen nothing; the seed decides what is left to chance.
    pub fn new(settings: Settings, seed: u64) -> Self {
        Self {
            settings,
            limiter: Limiter::new(WAYS, seed),
            destinations: Watched::new(End::Destination, seed),
            sources: Watched::new(End::Source, seed),
            has_sources: false,
            malformed: Default::default(),
            known: Known::new(PAIRS, seed),
            recent: Recent::default(),
            in_force: InForce::default(),
            packets: [0; WINDOW],
            chance: seed | 1,
            ticks: 0,
            told: Vec::new(),
        }
    }

    /// A packet, whatever became of it.
    pub fn observe(&mut self, sample: &Sample) {
        self.packets[0] += u64::from(sample.weight);
        let amount = (u64::from(sample.weight), sample.bits());
        // What is allowed passes before any rule of the guard is asked, and floods nobody.
        let is_allowed = self.is_allowed(&sample.packet);
        let packet = sample.packet.asked(ON_REQUEST);
        let met = if is_allowed {
            None
        } else {
            self.in_force.meeting(&packet)
        };
        let is_met = met.is_some();
        let facts = match &packet {
            Ok(facts) if facts.layer != Layer::Other => facts,
            Ok(_) => return,
            Err(reason) => {
                match met {
                    Some(block) => block.meet(sample, false),
                    None if is_allowed => {}
                    None => self.malformed[*reason as usize].add_of(Class::Malformed, amount.0, amount.1),
                }
                return;
            }
        };
        if let Some(block) = met {
            let before_ns = block.since_ns.saturating_sub(BEFORE_NS);
            block.meet(sample, self.known.knows(facts, before_ns));
        } else {
            if !is_allowed {
                self.count(facts, amount);
            }
            self.acquaint(facts, sample.time_ns);
        }
        if !is_allowed {
            self.recent.push(Seen {
                facts: *facts,
                time_ns: sample.time_ns,
                is_met,
                is_counted: !is_met,
            });
        }
    }

    /// A packet that may be part of a flood, and is learned from. What is allowed is neither: strangers beside it would be
    /// charged with its rate.
    fn count(&mut self, facts: &Facts, amount: (u64, u64)) {
        let is_v6 = facts.layer == Layer::V6;
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        let chance = self.chance;
        for (watched, address) in [
            (&mut self.destinations, facts.destination),
            (&mut self.sources, facts.source),
        ] {
            watched.count(address, is_v6, amount.0, |traffic| {
                traffic.add(facts, amount, chance);
            });
        }
    }

    /// Who speaks with whom; also of those that are allowed, so that rules spare what they send.
    fn acquaint(&mut self, facts: &Facts, now_ns: u64) {
        let is_v6 = facts.layer == Layer::V6;
        let [to, from] =
            [facts.destination, facts.source].map(|address| Prefix::of_bits(address, is_v6, 128));
        if !self.in_force.holds(to) && !self.in_force.holds_source(from) {
            self.known.meet(facts, now_ns);
        }
    }

    /// Whether it is never blocked. What is wrong with it that the list does not name is nothing to the list.
    fn is_allowed(&self, packet: &Looked) -> bool {
        let Some(allowed) = &self.settings.allowed else {
            return false;
        };
        let packet = packet.asked(allowed.reasons);
        // Rules that allow ask for no rate.
        allowed.decide(&packet, &self.limiter, 0).verdict == Verdict::Allow
    }

    /// Decides, at the end of a tick of [`TICK_NS`]. Whether rules changed, [`Guard::generation`] tells.
    pub fn tick(&mut self, now_ns: u64) -> Vec<Event> {
        self.ticks += 1;
        let expired = self.in_force.expire(now_ns, self.settings.expire_ns);
        let mut events: Vec<Event> = expired.into_iter().map(Event::Expired).collect();
        let floods = self.floods(now_ns);
        let flooded: Vec<Prefix> = floods.iter().filter_map(Flood::to).collect();
        for flood in floods.iter().take(FLOODS) {
            self.stop(flood, &flooded, now_ns, &mut events);
        }
        for flood in self.malformed_floods(now_ns) {
            self.stop(&flood, &[], now_ns, &mut events);
        }
        if self.ticks % DECAY == 0 {
            self.destinations.decay();
            self.sources.decay();
        }
        self.packets.rotate_right(1);
        self.packets[0] = 0;
        events
    }

    /// In the place of the ticks of a time of which too little is known, since the process stood still or had no core:
    /// nothing is decided, learned or taken back. What was seen of it would be charged for what was not, and a rate be told
    /// that there never was. What is not over goes on in the ticks that follow.
    pub fn pause(&mut self, blind_ns: u64) {
        self.destinations.break_off();
        self.sources.break_off();
        self.malformed.iter_mut().for_each(Traffic::break_off);
        self.in_force.break_off(blind_ns);
        self.packets = [0; WINDOW];
    }

    /// Whether it has seen enough to judge sources, or was told enough.
    pub fn judges_sources(&self) -> bool {
        self.judged_sources() != Judged::Nobody
    }

    const fn judged_sources(&self) -> Judged {
        match (self.ticks * TICK_NS >= SETTLED_NS, self.has_sources) {
            (true, _) => Judged::All,
            (false, true) => Judged::Strangers,
            (false, false) => Judged::Nobody,
        }
    }

    /// Those of well-formed packets: of destinations, the largest first, and then of sources.
    fn floods(&mut self, now_ns: u64) -> Vec<Flood> {
        let judged = self.judged_sources();
        let (in_force, settings) = (&self.in_force, &self.settings);
        let mut floods = self
            .destinations
            .tick(now_ns, (settings, Judged::All), |to| in_force.holds(to));
        let of_sources = self
            .sources
            .tick(now_ns, (settings, judged), |from| in_force.holds_source(from));
        floods.extend(of_sources);
        floods.sort_by(|one, other| {
            let by_rate = other.rates.pps.total_cmp(&one.rates.pps);
            let by_end = one.from().is_some().cmp(&other.from().is_some());
            by_end
                .then(by_rate)
                .then((one.to(), one.from()).cmp(&(other.to(), other.from())))
        });
        floods
    }

    fn malformed_floods(&mut self, now_ns: u64) -> Vec<Flood> {
        let settings = &self.settings;
        let all = Malformed::ALL.into_iter().zip(&mut self.malformed);
        let floods = all.filter_map(|(reason, traffic)| {
            let (class, limit) =
                traffic.tick(now_ns, false, |traffic, class| traffic.limit(class, settings))?;
            Some(flood(Where::Malformed(reason), class, limit, traffic))
        });
        floods.collect()
    }

    /// Finds rules against a flood, and puts those in force that may be. Others that go on are of these destinations.
    fn stop(&mut self, flood: &Flood, flooded: &[Prefix], now_ns: u64, events: &mut Vec<Event>) {
        let mut flood = *flood;
        let (found, by) = match flood.at {
            Where::To(to) => self.explained(&flood, to),
            Where::From(from) => {
                let Some(rest) = self.spread(&flood, from, flooded) else {
                    return;
                };
                flood = rest.flood;
                if let Some(why) = rest.why {
                    events.extend(self.refuse(&flood, None, why.to_owned(), now_ns));
                    return;
                }
                (rest.found, rest.by)
            }
            Where::Malformed(reason) => {
                let all = Found {
                    meets: Meets::Malformed(reason),
                    action: Action::Deny,
                    explained: 1.0,
                    cost: 0.0,
                    unspared: 0,
                };
                (vec![all], 0)
            }
        };
        if found.is_empty() {
            let why = "no rule explains it without legitimate packets".to_owned();
            events.extend(self.refuse(&flood, None, why, now_ns));
        }
        for mut found in found {
            if found.action == Action::Deny && flood.from().is_some() {
                found.meets = self.in_force.joined(found.meets);
            }
            self.block(&flood, found, by, now_ns, events);
        }
    }

    /// Says that there is no rule; once in a while.
    fn refuse(&mut self, flood: &Flood, rule: Option<String>, why: String, now_ns: u64) -> Option<Event> {
        self.told.retain(|(_, _, until_ns)| *until_ns > now_ns);
        let is_it = |(at, class, _): &(Where, Class, u64)| (*at, *class) == (flood.at, flood.class);
        if self.told.iter().any(is_it) {
            return None;
        }
        self.told.push((flood.at, flood.class, now_ns + TOLD_NS));
        Some(Event::Refused(Refused {
            time_ns: now_ns,
            refused: RuleRefused {
                rule,
                destination: flood.to().map(|to| to.to_string()),
                source: flood.from().map(|from| from.to_string()),
                class: flood.class.name().to_owned(),
                rate_pps: flood.rates.pps as u64,
                why,
            },
        }))
    }

    /// Puts a rule in force, if it may be.
    fn block(&mut self, flood: &Flood, found: Found, by: u64, now_ns: u64, events: &mut Vec<Event>) {
        let pps = flood.rates.pps * found.explained;
        let expire_ns = self.settings.expire_ns;
        let block = Block::new(found.meets, found.action, pps, (now_ns, expire_ns));
        if self.in_force.has(&block) {
            return;
        }
        let seconds = WINDOW as f64 * TICK_NS as f64 / 1e9;
        let all_pps = self.packets.iter().sum::<u64>() as f64 / seconds;
        let forbids = self
            .in_force
            .forbids(&block, found.cost, all_pps, &self.settings.cap);
        if let Some(why) = forbids {
            events.extend(self.refuse(flood, Some(block.text()), why, now_ns));
            return;
        }
        let blocked = Blocked {
            time_ns: now_ns,
            since_ns: flood.since_ns,
            first_ns: self.recent.first_of(&block.meets, flood.begun_ns()),
            made: RuleMade {
                rule: block.text(),
                destination: flood.to().map(|to| to.to_string()),
                source: flood.from().map(|from| from.to_string()),
                class: flood.class.name().to_owned(),
                rate_pps: flood.rates.pps as u64,
                rate_bps: flood.rates.bps as u64,
                limit_pps: flood.limit.pps,
                limit_bps: flood.limit.bps,
                usual_pps: flood.usual.map(|pps| pps as u64),
                explained: found.explained,
                cost: found.cost,
                cost_by: by,
                unspared: found.unspared as u64,
            },
        };
        self.recent.meet(&block.meets);
        match flood.at {
            Where::To(to) => {
                self.destinations.settle(to);
                self.known
                    .forget(flood.begun_ns(), |ends| to.contains(ends.destination, ends.is_v6));
            }
            Where::From(from) => {
                self.sources.settle(from);
                self.known
                    .forget(flood.begun_ns(), |ends| from.contains(ends.source, ends.is_v6));
            }
            Where::Malformed(_) => self.malformed.iter_mut().for_each(Traffic::settle),
        }
        events.extend(self.in_force.put(block, now_ns).into_iter().map(Event::Expired));
        events.push(Event::Blocked(blocked));
    }

    /// The rules in force, one a line: they go before the user's own.
    pub fn rules(&self) -> String {
        self.in_force.iter().map(|block| block.text() + "\n").collect()
    }

    /// Changes whenever [`Guard::rules`] does.
    pub fn generation(&self) -> u64 {
        self.in_force.generation
    }

    /// The rules in force with the packets that each has met, and of them those of sources that were known before.
    pub fn in_force(&self) -> impl Iterator<Item = (String, u64, u64)> {
        let told = |block: &Block| (block.text(), block.packets, block.known_packets);
        self.in_force.iter().map(told)
    }

    /// Places in tables that are taken: of destinations, of sources, of pairs that are known, of samples.
    pub fn places(&self) -> usize {
        self.destinations.len() + self.sources.len() + self.known.len() + self.recent.len()
    }

    /// What is usual, to be kept.
    pub fn baseline(&self) -> Baseline {
        Baseline {
            version: 1,
            destinations: self.destinations.learned(),
            sources: self.sources.learned(),
        }
    }

    /// Takes up what was usual: all of it or nothing.
    ///
    /// # Errors
    ///
    /// A destination or source that is none.
    pub fn learn(&mut self, baseline: &Baseline) -> Result<(), String> {
        for learned in baseline.sources.iter().chain(&baseline.destinations) {
            learned.prefix.parse::<Prefix>()?;
        }
        // Of a run that ended too soon nobody is known any better than of none.
        self.has_sources |= baseline
            .sources
            .iter()
            .any(|learned| learned.learned_ns >= ACQUAINTED_NS);
        self.sources.learn(&baseline.sources)?;
        self.destinations.learn(&baseline.destinations)
    }
}
