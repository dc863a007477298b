//! Stalls summed up by their cause.

use std::collections::{BTreeMap, BTreeSet};

use measure::bucket::{Bucket, Ring};

use super::attribute::{AttributedStall, Span};
use super::cause::Cause;

/// All stalls with one cause.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    /// The cause in words.
    pub cause: String,
    /// Whether it is one that the kernel did not see, or did not tell.
    pub outside: bool,
    /// Stalls of which it is the largest part.
    pub stalls: u64,
    /// All of its time, in whichever stall, ticks.
    pub total: u64,
    /// Of its stalls, 99 in a hundred are no longer, ticks.
    pub p99: u64,
    /// The longest of its stalls, ticks.
    pub max: u64,
    /// Packets that its stalls would have cost.
    pub lost: f64,
    /// How far apart its stalls begin, ticks, where that is regular.
    pub period: Option<f64>,
}

/// Sums up the stalls of one core; the cause that took most comes first. `hz` is what makes ticks seconds.
pub fn tally(named: &[AttributedStall], ring: Option<Ring>, hz: f64) -> Vec<Tally> {
    #[derive(Default)]
    struct Sum {
        stalls: Vec<Span>,
        total: u64,
        lost: f64,
        outside: bool,
    }
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    let labels = Labels::of(named);
    let mut bucket = ring.map(Bucket::new);
    let first = named.first().map_or(0, |first| first.stall.from);
    for one in named {
        let seconds = |at: u64| at.saturating_sub(first) as f64 / hz;
        let lost = bucket.as_mut().map_or(0.0, |bucket| {
            bucket.stall(seconds(one.stall.from), seconds(one.stall.to))
        });
        for (cause, ticks) in &one.parts {
            let sum = sums.entry(labels.label(cause)).or_default();
            sum.outside |= matches!(cause, Cause::Outside | Cause::Unrecorded);
            sum.total += ticks;
        }
        let sum = sums.entry(labels.label(one.cause())).or_default();
        sum.stalls.push(one.stall);
        sum.lost += lost;
    }
    let mut all: Vec<Tally> = sums
        .into_iter()
        .map(|(cause, sum)| {
            let mut lengths: Vec<u64> = sum.stalls.iter().map(|stall| stall.ticks()).collect();
            lengths.sort_unstable();
            // Nearest rank.
            let rank = (lengths.len() * 99).div_ceil(100);
            Tally {
                cause,
                outside: sum.outside,
                stalls: lengths.len() as u64,
                total: sum.total,
                p99: rank.checked_sub(1).map_or(0, |index| lengths[index]),
                max: lengths.last().copied().unwrap_or(0),
                lost: sum.lost,
                period: period(&sum.stalls),
            }
        })
        .collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.total));
    all
}

/// What causes are called among others: tasks of one name are one cause.
#[derive(Debug)]
pub struct Labels<'n>(BTreeMap<&'n str, BTreeSet<u32>>);

impl<'n> Labels<'n> {
    /// For the causes of these stalls.
    pub fn of(named: &'n [AttributedStall]) -> Self {
        let mut tasks: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        for (cause, _) in named.iter().flat_map(|one| &one.parts) {
            if let Cause::Task {
                name,
                pid,
                work: None,
            } = cause
            {
                tasks.entry(name).or_default().insert(*pid);
            }
        }
        Self(tasks)
    }

    /// The cause in words.
    pub fn label(&self, cause: &Cause) -> String {
        let alike = match cause {
            Cause::Task { name, work: None, .. } => self.0.get(name.as_str()).map_or(0, BTreeSet::len),
            _ => 0,
        };
        match cause {
            Cause::Task { name, .. } if alike > 1 => format!("preempted by {name} ({alike} tasks)"),
            cause => cause.to_string(),
        }
    }
}

/// Fewer beginnings than this show no period.
const PERIODS_MIN: usize = 10;

/// The time from one stall to the next, if most of them lie a whole number of it apart.
fn period(stalls: &[Span]) -> Option<f64> {
    if stalls.len() <= PERIODS_MIN {
        return None;
    }
    let apart: Vec<f64> = stalls
        .windows(2)
        .map(|pair| pair[1].from.saturating_sub(pair[0].from) as f64)
        .collect();
    let mut sorted = apart.clone();
    sorted.sort_by(f64::total_cmp);
    let median = sorted[sorted.len() / 2];
    // A twentieth off is still regular; where stalls are missing they lie a few periods apart.
    let regular = apart.iter().filter(|&&time| {
        let periods = (time / median).round();
        (1.0..=10.0).contains(&periods) && (time - periods * median).abs() < median / 20.0
    });
    (median > 0.0 && regular.count() * 5 >= apart.len() * 4).then_some(median)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outside(from: u64, ticks: u64) -> AttributedStall {
        let stall = Span {
            from,
            to: from + ticks,
            core: 1,
        };
        AttributedStall::whole(stall, Cause::Outside)
    }

    fn tick(from: u64) -> AttributedStall {
        let mut tick = outside(from, 30);
        tick.reassign(|_| true, &Cause::Vector("local_timer"), 20);
        tick
    }

    #[test]
    fn times_are_the_parts_and_counts_are_the_stalls() {
        let all = tally(&[tick(100), outside(200, 500), tick(1000)], None, 1e9);
        let said: Vec<_> = all
            .iter()
            .map(|one| (one.cause.as_str(), one.stalls, one.total, one.max))
            .collect();
        assert_eq!(
            said,
            [
                ("outside the kernel (inferred)", 1, 520, 500),
                ("tick", 2, 40, 30)
            ]
        );
        assert!(all[0].outside && !all[1].outside);
    }

    #[test]
    fn packets_are_charged_to_the_stall_that_overflowed() {
        let ring = Ring {
            rate_pps: 1e6,
            service_pps: 2e6,
            free: 100.0,
        };
        let all = tally(&[tick(0), outside(1_000_000, 150_000)], Some(ring), 1e9);
        assert!((all[0].lost - 50.0).abs() < 1e-6 && all[1].lost == 0.0, "{all:?}");
    }

    #[test]
    fn a_period_is_found_and_none_made_up() {
        let regular: Vec<_> = (0..30)
            .filter(|n| n % 7 != 3)
            .map(|n| outside(n * 1000 + n % 3, 10))
            .collect();
        let found = tally(&regular, None, 1e9)[0].period;
        assert!(
            found.is_some_and(|period| (period - 1000.0).abs() < 20.0),
            "{found:?}"
        );
        let irregular: Vec<_> = (0..30_u64).map(|n| outside(n * n * 97 + n * 1000, 10)).collect();
        assert_eq!(tally(&irregular, None, 1e9)[0].period, None);
    }
}
