//! What goes to one destination, or comes from one source: rates by class over a short window, what is usual, and some of its usual packets.

use std::collections::VecDeque;

use rules::Facts;

use crate::settings::Settings;
use crate::{CLASSES, Class, Limit, TICK_NS};

/// Ticks that a rate is taken over.
pub const WINDOW: usize = 3;
/// Usual packets that are remembered of a destination.
const REMEMBERED: usize = 128;
/// Ticks that wait before they count as usual: by then a flood would have been found.
const DELAY: usize = 10;
/// Ticks in which three that were too much are a flood, though there was peace between them: 2 s.
const PULSES: u32 = (1 << 20) - 1;
/// One of so many ticks gives a packet that is remembered in the place of another.
const TURN: u64 = 8;
/// What was so long ago counts an e-th; s.
const MEMORY_S: f64 = 300.0;
/// What is usual of a source is believed after so long, and so is who spoke with whom; ns.
pub const ACQUAINTED_NS: u64 = 20_000_000_000;
/// So many times its usual rate is too much of a source, where `--factor` does not say it.
const FACTOR: f64 = 5.0;

/// Packets and bits by class.
#[derive(Clone, Copy, Debug, Default)]
pub struct Amounts {
    packets: [u64; CLASSES],
    bits: [u64; CLASSES],
}

impl Amounts {
    fn add(&mut self, class: Class, packets: u64, bits: u64) {
        self.packets[class as usize] += packets;
        self.bits[class as usize] += bits;
    }
}

/// Packets and bits a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Packets a second.
    pub pps: f64,
    /// Bits a second.
    pub bps: f64,
}

/// Of one destination or source, host or prefix.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    now: Amounts,
    last: [Amounts; WINDOW],
    /// Ticks that ended since the last packet: most of those watched are silent at any time, and cost little.
    silent: usize,
    /// What is usual.
    mean: [Rates; CLASSES],
    /// How long that was learned; ns.
    pub learned_ns: u64,
    /// Usual packets, each for about as much time.
    pub usual: Vec<Facts>,
    /// Ticks that do not count as usual yet: one of their packets, and what there was.
    waiting: VecDeque<(Option<Facts>, Amounts)>,
    /// One of this tick's packets, each as likely as another.
    picked: Option<Facts>,
    seen: u64,
    /// Which of the last ticks were too much: the lowest bit is the latest.
    over: u32,
    /// When the first of them began.
    pub since_ns: u64,
}

impl Traffic {
    /// A packet; `chance` is any number.
    pub fn add(&mut self, facts: &Facts, (packets, bits): (u64, u64), chance: u64) {
        for class in Class::ALL {
            if class.holds(facts) {
                self.now.add(class, packets, bits);
            }
        }
        self.silent = 0;
        self.seen += 1;
        if chance % self.seen == 0 {
            self.picked = Some(*facts);
        }
    }

    /// A packet that is of this class alone.
    pub fn add_of(&mut self, class: Class, packets: u64, bits: u64) {
        self.silent = 0;
        self.now.add(class, packets, bits);
    }

    /// The rates of a class, over the window.
    pub fn rates(&self, class: Class) -> Rates {
        let seconds = WINDOW as f64 * TICK_NS as f64 / 1e9;
        let sum = |of: fn(&Amounts) -> &[u64; CLASSES]| {
            let sum: u64 = self.last.iter().map(|amounts| of(amounts)[class as usize]).sum();
            sum as f64 / seconds
        };
        Rates {
            pps: sum(|amounts| &amounts.packets),
            bps: sum(|amounts| &amounts.bits),
        }
    }

    /// What is usual of a class, once it was learned for long enough.
    fn usual_rates(&self, class: Class, settings: &Settings) -> Option<Rates> {
        let learn = settings.learn?;
        (self.learned_ns >= learn.after_ns).then(|| self.mean[class as usize])
    }

    /// What has been usual so far, if there is any experience at all; packets a second.
    pub fn usual_pps(&self, class: Class) -> Option<f64> {
        (self.learned_ns >= 10 * TICK_NS).then(|| self.mean[class as usize].pps)
    }

    /// What has been usual so far.
    pub fn mean(&self, class: Class) -> Rates {
        self.mean[class as usize]
    }

    /// Takes up what was learned before.
    pub fn set_mean(&mut self, class: Class, rates: Rates) {
        self.mean[class as usize] = rates;
    }

    /// What is too much of a class for a source: the user's word or the default, `times`; but if more than that is usual,
    /// a multiple of what is usual. What was learned never lowers it: others' machines may change what they do.
    pub fn limit_of_source(&self, class: Class, settings: &Settings, times: u64) -> Limit {
        let limit = settings.thresholds[class as usize].unwrap_or(Settings::by_default(class));
        let limit = limit.times(times);
        if self.learned_ns < ACQUAINTED_NS {
            return limit;
        }
        let factor = settings.learn.map_or(FACTOR, |learn| learn.factor);
        let mean = self.mean[class as usize];
        Limit {
            pps: limit.pps.map(|pps| pps.max((mean.pps * factor) as u64)),
            bps: limit.bps.map(|bps| bps.max((mean.bps * factor) as u64)),
        }
    }

    /// What is too much of a class for a destination: the user's word, else what was learned, else the default.
    pub fn limit(&self, class: Class, settings: &Settings) -> Limit {
        if let Some(limit) = settings.thresholds[class as usize] {
            return limit;
        }
        let learned = settings.learn.zip(self.usual_rates(class, settings));
        learned.map_or(Settings::by_default(class), |(learn, usual)| Limit {
            pps: Some(learn.floor_pps.max((usual.pps * learn.factor) as u64)),
            bps: None,
        })
    }

    /// The end of a tick at `now_ns`. The class that is above its limit, if one has been for long enough. What is held is
    /// not learned from.
    pub fn tick(
        &mut self,
        now_ns: u64,
        is_held: bool,
        limit: impl Fn(&Self, Class) -> Limit,
    ) -> Option<(Class, Limit)> {
        self.last.rotate_right(1);
        self.last[0] = std::mem::take(&mut self.now);
        self.seen = 0;
        let picked = self.picked.take();
        let last_s = TICK_NS as f64 / 1e9;
        // Nothing in the whole window is never too much.
        let is_silent = self.silent >= WINDOW;
        self.silent = (self.silent + 1).min(WINDOW);
        let asked: &[Class] = if is_silent { &[] } else { &Class::ALL };
        let all = asked.iter().map(|class| (*class, limit(self, *class)));
        let found = { all }.find(|(class, limit)| {
            let rates = self.rates(*class);
            // And it goes on: a burst that is over is no flood.
            let (packets, bits) = (
                self.last[0].packets[*class as usize],
                self.last[0].bits[*class as usize],
            );
            limit.is_over(rates.pps, rates.bps)
                && limit.is_over(packets as f64 / last_s * 2.0, bits as f64 / last_s * 2.0)
        });
        self.over = self.over << 1 & PULSES;
        if found.is_none() {
            if !is_held {
                self.learn(picked);
            }
            return None;
        }
        self.over |= 1;
        let ticks = u64::from(u32::BITS - self.over.leading_zeros());
        self.since_ns = now_ns.saturating_sub(ticks * TICK_NS);
        self.waiting.clear();
        // Twice running, or in pulses.
        found.filter(|_| self.over & 0b11 == 0b11 || self.over.count_ones() >= 3)
    }

    /// What was too much is dealt with: the window begins anew.
    pub fn settle(&mut self) {
        self.last = Default::default();
        self.over = 0;
    }

    /// The tick broke off, and nothing is known of what came then: it counts for nothing, and the window begins anew.
    pub fn break_off(&mut self) {
        self.settle();
        self.now = Amounts::default();
        self.seen = 0;
        self.picked = None;
    }

    fn learn(&mut self, picked: Option<Facts>) {
        self.waiting.push_back((picked, self.last[0]));
        if self.waiting.len() <= DELAY {
            return;
        }
        let Some((picked, amounts)) = self.waiting.pop_front() else {
            return;
        };
        self.learned_ns += TICK_NS;
        let ticks = self.learned_ns / TICK_NS;
        let last_s = TICK_NS as f64 / 1e9;
        let share = (1.0 / ticks as f64).max(last_s / MEMORY_S);
        for (at, mean) in self.mean.iter_mut().enumerate() {
            // Most have packets of few classes: none then, and none now, stay none.
            if (amounts.packets[at], amounts.bits[at]) == (0, 0) && *mean == Rates::default() {
                continue;
            }
            mean.pps += (amounts.packets[at] as f64 / last_s - mean.pps) * share;
            mean.bps += (amounts.bits[at] as f64 / last_s - mean.bps) * share;
        }
        let Some(facts) = picked else { return };
        if self.usual.len() < REMEMBERED {
            self.usual.push(facts);
        } else if ticks % TURN == 0 {
            // In turns that have no common measure with their number, so that old ones stay for about as long.
            let at = (ticks / TURN).wrapping_mul(37) as usize % REMEMBERED;
            self.usual[at] = facts;
        }
    }
}
