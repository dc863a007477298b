//! The prefixes whose traffic is watched: hosts, and two lengths of networks, the busiest of each.

use rules::Prefix;

use crate::Learned;
use crate::flood::{Flood, Where};
use crate::heavy::Heavy;
use crate::settings::Settings;
use crate::traffic::{ACQUAINTED_NS, Rates, Traffic};
use crate::{Class, Limit};

/// Bits of a prefix of IPv4, of IPv6, and how many times the limit of a host it may have.
type Level = (u8, u8, u64);

/// Which end of packets is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Destination,
    /// A /64 of IPv6 is one host's: it has as many addresses as it likes.
    Source,
}

impl End {
    const fn levels(self) -> [Level; 3] {
        match self {
            Self::Destination => [(32, 128, 1), (24, 64, 4), (16, 48, 16)],
            Self::Source => [(32, 64, 1), (24, 48, 4), (16, 32, 16)],
        }
    }

    /// Places for hosts, and for networks of each length.
    const fn places(self) -> [usize; 3] {
        match self {
            Self::Destination => [4096, 2048, 2048],
            Self::Source => [2048, 1024, 1024],
        }
    }

    const fn flood(self, prefix: Prefix) -> Where {
        match self {
            Self::Destination => Where::To(prefix),
            Self::Source => Where::From(prefix),
        }
    }
}

/// Whose traffic may be too much. Of the others all is learned from, whatever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    Nobody,
    /// Those that nothing was learned of.
    Strangers,
    All,
}

/// Tables of prefixes, by their lengths, hosts first.
#[derive(Debug)]
pub struct Watched {
    end: End,
    levels: [Heavy<Prefix, Traffic>; 3],
}

impl Watched {
    pub fn new(end: End, seed: u64) -> Self {
        Self {
            end,
            levels: end.places().map(|places| Heavy::new(places, seed)),
        }
    }

    /// What counts for this address, at each length.
    pub fn count(&mut self, address: u128, is_v6: bool, weight: u64, mut add: impl FnMut(&mut Traffic)) {
        for (level, (v4, v6, _)) in self.levels.iter_mut().zip(self.end.levels()) {
            let prefix = Prefix::of_bits(address, is_v6, if is_v6 { v6 } else { v4 });
            add(level.entry(prefix, weight, Traffic::default));
        }
    }

    /// The end of a tick: those that had too much, but for what their own hosts had. What is held is not learned from.
    pub fn tick(
        &mut self,
        now_ns: u64,
        (settings, judged): (&Settings, Judged),
        is_held: impl Fn(Prefix) -> bool,
    ) -> Vec<Flood> {
        let end = self.end;
        let mut floods: Vec<(Prefix, Flood)> = Vec::new();
        for (level, (_, _, times)) in self.levels.iter_mut().zip(end.levels()) {
            let limit = |traffic: &Traffic, class| match (judged, end) {
                (Judged::Nobody, _) => Limit::default(),
                (Judged::Strangers, _) if traffic.learned_ns >= ACQUAINTED_NS => Limit::default(),
                (_, End::Destination) => traffic.limit(class, settings).times(times),
                (_, End::Source) => traffic.limit_of_source(class, settings, times),
            };
            let mut found = Vec::new();
            for (prefix, traffic) in level.iter_mut() {
                let Some((class, limit)) = traffic.tick(now_ns, is_held(prefix), limit) else {
                    continue;
                };
                let flood = flood(end.flood(prefix), class, limit, traffic);
                let within = floods.iter().filter(|(host, _)| prefix.covers(host));
                let (pps, bps) = within.fold((0.0, 0.0), |sum, (_, flood)| {
                    (sum.0 + flood.rates.pps, sum.1 + flood.rates.bps)
                });
                if limit.is_over(flood.rates.pps - pps, flood.rates.bps - bps) {
                    found.push((prefix, flood));
                }
            }
            floods.extend(found);
        }
        floods.into_iter().map(|(_, flood)| flood).collect()
    }

    /// What was counted before a rule was in force is no reason for another.
    pub fn settle(&mut self, prefix: Prefix) {
        for (there, traffic) in self.levels.iter_mut().flat_map(Heavy::iter_mut) {
            if prefix.covers(&there) || there.covers(&prefix) {
                traffic.settle();
            }
        }
    }

    /// Nothing is known of what came for a while.
    pub fn break_off(&mut self) {
        let all = self.levels.iter_mut().flat_map(Heavy::iter_mut);
        all.for_each(|(_, traffic)| traffic.break_off());
    }

    /// What was long ago counts less for who stays.
    pub fn decay(&mut self) {
        self.levels.iter_mut().for_each(Heavy::decay);
    }

    /// The hosts of a prefix.
    pub fn within(&self, prefix: Prefix) -> impl Iterator<Item = &Traffic> {
        let hosts = self.levels[0].iter();
        hosts
            .filter(move |(host, _)| prefix.covers(host))
            .map(|(_, traffic)| traffic)
    }

    /// Places that are taken.
    pub fn len(&self) -> usize {
        self.levels.iter().map(|level| level.iter().count()).sum()
    }

    /// What is usual, to be kept.
    pub fn learned(&self) -> Vec<Learned> {
        let learned = |(prefix, traffic): (Prefix, &Traffic)| {
            let classes = Class::ALL.into_iter().map(|class| (class, traffic.mean(class)));
            Learned {
                prefix: prefix.to_string(),
                learned_ns: traffic.learned_ns,
                classes: classes
                    .map(|(class, rates)| (class, rates.pps.round() as u64, rates.bps.round() as u64))
                    .filter(|(_, pps, _)| *pps > 0)
                    .collect(),
            }
        };
        let mut all: Vec<_> = self.levels.iter().flat_map(Heavy::iter).map(learned).collect();
        all.sort_by(|one, other| one.prefix.cmp(&other.prefix));
        all
    }

    /// Takes up what was usual.
    pub fn learn(&mut self, all: &[Learned]) -> Result<(), String> {
        for learned in all {
            let prefix: Prefix = learned.prefix.parse()?;
            let levels = self.end.levels();
            let at = levels.iter().position(|(v4, v6, _)| {
                let bits = if prefix.is_v6() { *v6 } else { *v4 };
                prefix.bits() == bits
            });
            let traffic = self.levels[at.unwrap_or_default()].entry(prefix, 1, Traffic::default);
            traffic.learned_ns = learned.learned_ns;
            for (class, pps, bps) in &learned.classes {
                let (pps, bps) = (*pps as f64, *bps as f64);
                traffic.set_mean(*class, Rates { pps, bps });
            }
        }
        Ok(())
    }
}

/// What there is too much of.
pub fn flood(at: Where, class: Class, limit: Limit, traffic: &Traffic) -> Flood {
    Flood {
        at,
        class,
        rates: traffic.rates(class),
        limit,
        usual: traffic.usual_pps(class),
        since_ns: traffic.since_ns,
    }
}
