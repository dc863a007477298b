//! The guard: samples in, rules out.

use rules::limit::{Limiter, WAYS};
use rules::{Facts, Layer, Malformed, Prefix, Verdict};

use crate::block::{Action, Block, Meets};
use crate::event::{Blocked, Event, Expired, Over, Refused};
use crate::explain::{Case, Found, explain};
use crate::heavy::Heavy;
use crate::known::Known;
use crate::settings::Settings;
use crate::traffic::{Rates, Traffic, WINDOW};
use crate::{Baseline, Class, Learned, Limit, Sample};

/// How often it decides; ns.
pub const TICK_NS: u64 = 100_000_000;
/// Hosts that are watched at once.
const HOSTS: usize = 4096;
/// Prefixes of each length.
const PREFIXES: usize = 2048;
/// Prefixes of destinations that are watched beside hosts: bits of IPv4, of IPv6, and how many times the limit of a host
/// they may have.
const LEVELS: [(u8, u8, u64); 2] = [(24, 64, 4), (16, 48, 16)];
/// Pairs that are known.
const PAIRS: usize = 1 << 16;
/// Samples that lie ready to be explained.
const RECENT: usize = 1 << 15;
/// Of these, how many are looked at.
const EXPLAINED: usize = 2048;
/// Packets of known sources, of different kinds, that are looked at.
const COMPARED: usize = 4096;
/// Whoever was met so long before a flood belongs to what was there before; ns.
const BEFORE_NS: u64 = 1_000_000_000;
/// Rules are taken back one by one, so far apart; ns.
const STEP_NS: u64 = 1_000_000_000;
/// What was refused is told again after so long; ns.
const TOLD_NS: u64 = 10_000_000_000;
/// Floods that are looked at in one tick.
const FLOODS: usize = 8;
/// Ticks between two halvings of what makes a destination busy.
const DECAY: u64 = 10;

/// A packet that lies ready.
#[derive(Clone, Copy, Debug)]
struct Recent {
    facts: Facts,
    time_ns: u64,
    /// A rule meets it already.
    is_met: bool,
}

/// A destination above its limit.
struct Flood {
    to: Prefix,
    class: Class,
    rates: Rates,
    limit: Limit,
    /// Packets a second.
    usual: Option<f64>,
    since_ns: u64,
}

impl Flood {
    /// It began no later than the window in which it was too much.
    fn begun_ns(&self) -> u64 {
        self.since_ns.saturating_sub(WINDOW as u64 * TICK_NS)
    }
}

/// Watches traffic, and says what to block.
#[derive(Debug)]
pub struct Guard {
    settings: Settings,
    limiter: Limiter,
    hosts: Heavy<Prefix, Traffic>,
    levels: [Heavy<Prefix, Traffic>; LEVELS.len()],
    malformed: [Traffic; Malformed::ALL.len()],
    known: Known,
    recent: Vec<Recent>,
    /// Where the next sample goes.
    next: usize,
    blocks: Vec<Block>,
    /// All packets, by tick, for the cap.
    packets: [u64; WINDOW],
    chance: u64,
    ticks: u64,
    removed_ns: u64,
    told: Vec<(Option<Prefix>, Class, u64)>,
    generation: u64,
}

impl Guard {
    /// A guard that has seen nothing; the seed decides what is left to chance.
    pub fn new(settings: Settings, seed: u64) -> Self {
        Self {
            settings,
            limiter: Limiter::new(WAYS, seed),
            hosts: Heavy::new(HOSTS, seed),
            levels: [Heavy::new(PREFIXES, seed), Heavy::new(PREFIXES, seed)],
            malformed: Default::default(),
            known: Known::new(PAIRS, seed),
            recent: Vec::new(),
            next: 0,
            blocks: Vec::new(),
            packets: [0; WINDOW],
            chance: seed | 1,
            ticks: 0,
            removed_ns: 0,
            told: Vec::new(),
            generation: 0,
        }
    }

    /// A packet, whatever became of it.
    pub fn observe(&mut self, sample: &Sample) {
        self.packets[0] += u64::from(sample.weight);
        let amount = (u64::from(sample.weight), sample.bits());
        let met = self
            .blocks
            .iter()
            .position(|block| block.meets.holds(&sample.packet));
        let facts = match &sample.packet {
            Ok(facts) if facts.layer != Layer::Other => facts,
            Ok(_) => return,
            Err(reason) => {
                match met {
                    Some(at) => self.blocks[at].meet(sample, false),
                    None => self.malformed[*reason as usize].add_of(Class::Malformed, amount.0, amount.1),
                }
                return;
            }
        };
        if let Some(at) = met {
            let since = self.blocks[at].since_ns;
            let is_known = self.known.knows(facts, since.saturating_sub(BEFORE_NS));
            self.blocks[at].meet(sample, is_known);
        } else {
            self.count(facts, amount, sample.time_ns);
        }
        if self.is_allowed(&sample.packet) {
            return;
        }
        let recent = Recent {
            facts: *facts,
            time_ns: sample.time_ns,
            is_met: met.is_some(),
        };
        if self.recent.len() < RECENT {
            self.recent.push(recent);
        } else {
            self.recent[self.next] = recent;
        }
        self.next = (self.next + 1) % RECENT;
    }

    fn count(&mut self, facts: &Facts, amount: (u64, u64), now_ns: u64) {
        let is_v6 = facts.layer == Layer::V6;
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        let host = Prefix::of_bits(facts.destination, is_v6, 128);
        self.hosts
            .entry(host, amount.0, Traffic::default)
            .add(facts, amount, self.chance);
        for (level, (v4, v6, _)) in self.levels.iter_mut().zip(LEVELS) {
            let prefix = Prefix::of_bits(facts.destination, is_v6, if is_v6 { v6 } else { v4 });
            level
                .entry(prefix, amount.0, Traffic::default)
                .add(facts, amount, self.chance);
        }
        if !self.is_held(host) {
            self.known.meet(facts, now_ns);
        }
    }

    /// Whether a flood of this destination is being blocked.
    fn is_held(&self, host: Prefix) -> bool {
        holds(&self.blocks, host)
    }

    /// Whether it is never blocked.
    fn is_allowed(&self, packet: &Result<Facts, Malformed>) -> bool {
        let Some(allowed) = &self.settings.allowed else {
            return false;
        };
        // Rules that allow ask for no rate.
        allowed.decide(packet, &self.limiter, 0).verdict == Verdict::Allow
    }

    /// Decides, at the end of a tick of [`TICK_NS`]. Whether rules changed, [`Guard::generation`] tells.
    pub fn tick(&mut self, now_ns: u64) -> Vec<Event> {
        let mut events = Vec::new();
        self.ticks += 1;
        self.expire(now_ns, &mut events);
        let floods = self.floods(now_ns);
        for flood in floods.into_iter().take(FLOODS) {
            self.stop(&flood, now_ns, &mut events);
        }
        for (reason, flood) in self.malformed_floods(now_ns) {
            self.stop_malformed(reason, &flood, now_ns, &mut events);
        }
        if self.ticks % DECAY == 0 {
            self.hosts.decay();
            self.levels.iter_mut().for_each(Heavy::decay);
        }
        self.packets.rotate_right(1);
        self.packets[0] = 0;
        events
    }

    /// Rules that met little for long enough go, one at a time.
    fn expire(&mut self, now_ns: u64, events: &mut Vec<Event>) {
        for block in &mut self.blocks {
            block.tick(now_ns, self.settings.expire_ns);
        }
        if now_ns.saturating_sub(self.removed_ns) < STEP_NS {
            return;
        }
        let due = |block: &&Block| block.until_ns <= now_ns;
        let oldest = self.blocks.iter().filter(due).min_by_key(|block| block.until_ns);
        if let Some(at) =
            oldest.and_then(|oldest| self.blocks.iter().position(|block| block.meets == oldest.meets))
        {
            self.remove(at, now_ns, Over::Quiet, events);
            self.removed_ns = now_ns;
        }
    }

    fn remove(&mut self, at: usize, now_ns: u64, why: Over, events: &mut Vec<Event>) {
        let block = self.blocks.remove(at);
        self.generation += 1;
        events.push(Event::Expired(Expired {
            time_ns: now_ns,
            rule: block.text(),
            lasted_ns: now_ns.saturating_sub(block.since_ns),
            packets: block.packets,
            known_packets: block.known_packets,
            why,
        }));
    }

    fn floods(&mut self, now_ns: u64) -> Vec<Flood> {
        let (settings, blocks) = (&self.settings, &self.blocks);
        let mut floods: Vec<Flood> = Vec::new();
        let look = |to: Prefix, traffic: &mut Traffic, times: u64, floods: &[Flood]| {
            let class = traffic.tick(now_ns, settings, times, holds(blocks, to))?;
            let rates = traffic.rates(class);
            let limit = traffic.limit(class, settings).times(times);
            // What floods its hosts is none of the prefix.
            let within = floods.iter().filter(|flood| to.covers(&flood.to));
            let (pps, bps) = within.fold((0.0, 0.0), |sum, flood| {
                (sum.0 + flood.rates.pps, sum.1 + flood.rates.bps)
            });
            limit.is_over(rates.pps - pps, rates.bps - bps).then(|| Flood {
                to,
                class,
                rates,
                limit,
                usual: traffic.usual_pps(class),
                since_ns: traffic.since_ns,
            })
        };
        for (to, traffic) in self.hosts.iter_mut() {
            floods.extend(look(to, traffic, 1, &[]));
        }
        for (level, (_, _, times)) in self.levels.iter_mut().zip(LEVELS) {
            let mut wide = Vec::new();
            for (to, traffic) in level.iter_mut() {
                wide.extend(look(to, traffic, times, &floods));
            }
            floods.extend(wide);
        }
        floods.sort_by(|one, other| {
            other
                .rates
                .pps
                .total_cmp(&one.rates.pps)
                .then(one.to.cmp(&other.to))
        });
        floods
    }

    fn malformed_floods(&mut self, now_ns: u64) -> Vec<(Malformed, Flood)> {
        let mut floods = Vec::new();
        for (reason, traffic) in Malformed::ALL.into_iter().zip(&mut self.malformed) {
            if traffic.tick(now_ns, &self.settings, 1, false) == Some(Class::Malformed) {
                let rates = traffic.rates(Class::Malformed);
                floods.push((
                    reason,
                    Flood {
                        to: Prefix::of_bits(0, false, 0),
                        class: Class::Malformed,
                        rates,
                        limit: traffic.limit(Class::Malformed, &self.settings),
                        usual: traffic.usual_pps(Class::Malformed),
                        since_ns: traffic.since_ns,
                    },
                ));
            }
        }
        floods
    }

    fn stop_malformed(&mut self, reason: Malformed, flood: &Flood, now_ns: u64, events: &mut Vec<Event>) {
        let found = Found {
            meets: Meets::Malformed(reason),
            action: Action::Deny,
            explained: 1.0,
            cost: 0.0,
        };
        self.block(flood, found, 0, now_ns, events);
    }

    /// Finds rules against a flood, and puts those in force that may be.
    fn stop(&mut self, flood: &Flood, now_ns: u64, events: &mut Vec<Event>) {
        let before_ns = flood.since_ns.saturating_sub(BEFORE_NS);
        let is_v6 = flood.to.is_v6();
        let is_here = |facts: &Facts| flood.to.contains(facts.destination, facts.layer == Layer::V6);
        let ours = |block: &&Block| block.meets.destination() == Some(flood.to);
        let newest = (1..=self.recent.len()).map(|back| &self.recent[(self.next + RECENT - back) % RECENT]);
        let newest = newest.filter(|recent| is_here(&recent.facts));
        let wanted = newest.filter(|recent| !recent.is_met && recent.time_ns >= flood.since_ns);
        let of_class = wanted.filter(|recent| flood.class.holds(&recent.facts));
        let met: Vec<&Facts> = of_class.map(|recent| &recent.facts).take(EXPLAINED).collect();
        let (known, strangers): (Vec<&Facts>, Vec<&Facts>) = met
            .iter()
            .copied()
            .partition(|facts| self.known.knows(facts, before_ns));
        let usual: Vec<&Facts> = if flood.to.bits() == if is_v6 { 128 } else { 32 } {
            let host = self.hosts.get(flood.to);
            host.into_iter().flat_map(|traffic| &traffic.usual).collect()
        } else {
            let within = self.hosts.iter().filter(|(host, _)| flood.to.covers(host));
            within
                .flat_map(|(_, traffic)| &traffic.usual)
                .take(EXPLAINED)
                .collect()
        };
        let is_meant = |destination: u128, v6: bool| flood.to.contains(destination, v6);
        let known_sources = self.known.sources(before_ns, is_meant);
        let kinds = self.known.kinds(before_ns, COMPARED, is_meant);
        let bits_each = flood.rates.bps / flood.rates.pps.max(1.0);
        let limit_pps = flood.limit.pps.or(flood
            .limit
            .bps
            .map(|bps| (bps as f64 / bits_each.max(1.0)) as u64));
        let case = Case {
            flood: strangers,
            usual,
            known,
            kinds,
            known_sources,
            to: flood.to,
            before: self
                .blocks
                .iter()
                .filter(ours)
                .filter_map(|block| block.meets.shape())
                .collect(),
            rate_pps: flood.rates.pps,
            limit_pps: limit_pps.unwrap_or_default(),
            usual_pps: flood.usual,
            cap: &self.settings.cap,
        };
        let by = case.usual.len() + case.known.len() + case.kinds.len();
        let found = explain(&case);
        if found.is_empty() {
            self.refuse(
                flood,
                None,
                "no rule explains it without legitimate packets",
                now_ns,
                events,
            );
        }
        for found in found {
            self.block(flood, found, by as u64, now_ns, events);
        }
    }

    fn refuse(
        &mut self,
        flood: &Flood,
        rule: Option<String>,
        why: &str,
        now_ns: u64,
        events: &mut Vec<Event>,
    ) {
        self.told.retain(|(_, _, until_ns)| *until_ns > now_ns);
        let to = (flood.class != Class::Malformed).then_some(flood.to);
        if self
            .told
            .iter()
            .any(|(known, class, _)| *known == to && *class == flood.class)
        {
            return;
        }
        self.told.push((to, flood.class, now_ns + TOLD_NS));
        events.push(Event::Refused(Refused {
            time_ns: now_ns,
            rule,
            destination: to.map(|to| to.to_string()),
            class: flood.class,
            rate_pps: flood.rates.pps as u64,
            why: why.to_owned(),
        }));
    }

    /// Puts a rule in force, if it may be.
    fn block(&mut self, flood: &Flood, found: Found, by: u64, now_ns: u64, events: &mut Vec<Event>) {
        let pps = flood.rates.pps * found.explained;
        let (cap, meets) = (self.settings.cap, found.meets);
        let block = Block::new(meets, found.action, pps, (now_ns, self.settings.expire_ns));
        let rule = block.text();
        if self.blocks.iter().any(|known| known.meets == block.meets) {
            return;
        }
        // Those that it makes superfluous.
        let is_narrower = |known: &Block| block.meets.covers(&known.meets);
        let narrower = self.blocks.iter().filter(|known| is_narrower(known)).count();
        let rates = self
            .blocks
            .iter()
            .filter(|block| block.action != Action::Deny)
            .count();
        let seconds = WINDOW as f64 * TICK_NS as f64 / 1e9;
        let all_pps = self.packets.iter().sum::<u64>() as f64 / seconds;
        let blocked_pps: f64 = self.blocks.iter().map(|block| block.pps).sum();
        let why = if self.blocks.len() - narrower >= cap.rules {
            Some(format!(
                "{} rules are in force, and the cap is {}",
                self.blocks.len(),
                cap.rules
            ))
        } else if block.action != Action::Deny && rates >= cap.rates {
            Some(format!(
                "{rates} rates are in force, and the cap is {}",
                cap.rates
            ))
        } else if block.action == Action::Deny && found.cost > cap.cost {
            Some(format!(
                "it would meet {:.1} % of the legitimate packets that are known, and the cap is {:.1} %",
                found.cost * 100.0,
                cap.cost * 100.0
            ))
        } else if cap.share < 1.0 && blocked_pps + pps > cap.share * all_pps {
            Some(format!(
                "more than {:.1} % of all packets would be blocked",
                cap.share * 100.0
            ))
        } else {
            None
        };
        if let Some(why) = why {
            self.refuse(flood, Some(rule), &why, now_ns, events);
            return;
        }
        while let Some(at) = self.blocks.iter().position(is_narrower) {
            self.remove(at, now_ns, Over::Wider, events);
        }
        let first_ns = self.first_of(&block, flood.begun_ns());
        events.push(Event::Blocked(Blocked {
            time_ns: now_ns,
            since_ns: flood.since_ns,
            first_ns,
            rule,
            destination: block.meets.destination().map(|to| to.to_string()),
            class: flood.class,
            rate_pps: flood.rates.pps as u64,
            rate_bps: flood.rates.bps as u64,
            limit_pps: flood.limit.pps,
            limit_bps: flood.limit.bps,
            usual_pps: flood.usual.map(|pps| pps as u64),
            explained: found.explained,
            cost: found.cost,
            cost_by: by,
        }));
        for recent in &mut self.recent {
            recent.is_met |= block.meets.holds(&Ok(recent.facts));
        }
        if flood.class == Class::Malformed {
            self.malformed.iter_mut().for_each(Traffic::settle);
        } else {
            self.settle(flood.to);
            self.known
                .forget(flood.begun_ns(), |to, is_v6| flood.to.contains(to, is_v6));
        }
        self.blocks.push(block);
        self.generation += 1;
    }

    /// When the first packet came that a rule meets, of those since then: then, where that is not known any more.
    fn first_of(&self, block: &Block, begun_ns: u64) -> Option<u64> {
        let is_cut = self.recent.len() == RECENT && self.recent[self.next].time_ns > begun_ns;
        if is_cut {
            return Some(begun_ns);
        }
        let since = self.recent.iter().filter(|recent| recent.time_ns >= begun_ns);
        let met = since.filter(|recent| block.meets.holds(&Ok(recent.facts)));
        met.map(|recent| recent.time_ns).min()
    }

    /// What was counted before the rule was in force is no reason for another.
    fn settle(&mut self, to: Prefix) {
        let tables = std::iter::once(&mut self.hosts).chain(&mut self.levels);
        for (there, traffic) in tables.flat_map(Heavy::iter_mut) {
            if to.covers(&there) || there.covers(&to) {
                traffic.settle();
            }
        }
    }

    /// The rules in force, one a line: they go before the user's own.
    pub fn rules(&self) -> String {
        self.blocks.iter().map(|block| block.text() + "\n").collect()
    }

    /// Changes whenever [`Guard::rules`] does.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The rules in force with the packets that each has met, and of them those of sources that were known before.
    pub fn in_force(&self) -> impl Iterator<Item = (String, u64, u64)> {
        let told = |block: &Block| (block.text(), block.packets, block.known_packets);
        self.blocks.iter().map(told)
    }

    /// Places in tables that are taken: of destinations, of pairs that are known, of samples.
    pub fn places(&self) -> usize {
        let levels: usize = self.levels.iter().map(|level| level.iter().count()).sum();
        self.hosts.iter().count() + levels + self.known.len() + self.recent.len()
    }

    /// What is usual, to be kept.
    pub fn baseline(&self) -> Baseline {
        let learned = |(to, traffic): (Prefix, &Traffic)| {
            let classes = Class::ALL.into_iter().map(|class| (class, traffic.mean(class)));
            Learned {
                destination: to.to_string(),
                learned_ns: traffic.learned_ns,
                classes: classes
                    .map(|(class, rates)| (class, rates.pps.round() as u64, rates.bps.round() as u64))
                    .filter(|(_, pps, _)| *pps > 0)
                    .collect(),
            }
        };
        let levels = self.levels.iter().flat_map(Heavy::iter);
        let mut destinations: Vec<_> = self.hosts.iter().chain(levels).map(learned).collect();
        destinations.sort_by(|one, other| one.destination.cmp(&other.destination));
        Baseline {
            version: 1,
            destinations,
        }
    }

    /// Takes up what was usual.
    ///
    /// # Errors
    ///
    /// A destination that is none.
    pub fn learn(&mut self, baseline: &Baseline) -> Result<(), String> {
        for learned in &baseline.destinations {
            let to: Prefix = learned.destination.parse()?;
            let at = LEVELS
                .iter()
                .position(|(v4, v6, _)| to.bits() == if to.is_v6() { *v6 } else { *v4 });
            let table = match at {
                Some(at) => &mut self.levels[at],
                None => &mut self.hosts,
            };
            let traffic = table.entry(to, 1, Traffic::default);
            traffic.learned_ns = learned.learned_ns;
            for (class, pps, bps) in &learned.classes {
                traffic.set_mean(
                    *class,
                    Rates {
                        pps: *pps as f64,
                        bps: *bps as f64,
                    },
                );
            }
        }
        Ok(())
    }
}

fn holds(blocks: &[Block], to: Prefix) -> bool {
    let goes_there = |block: &Block| {
        block
            .meets
            .destination()
            .is_some_and(|there| there.covers(&to) || to.covers(&there))
    };
    blocks.iter().any(goes_there)
}
