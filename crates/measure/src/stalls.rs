//! Which stall cost which packets: what a port missed, against who did not poll it then.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::bucket::{Bucket, Ring};
use crate::result::{Stall, StallCause};
use crate::sequence::Hole;
use crate::time::{Clock, Ticks};

/// Stalls that together are shorter than this part of what the ring holds fill no ring, however full it was.
const PART_OF_RING: u64 = 8;

/// Packets that a port missed between two looks at its counter.
#[derive(Debug, Clone, Copy)]
pub struct MissedPackets {
    /// The port.
    pub port: usize,
    /// The look before.
    pub from: Ticks,
    /// The look that saw them.
    pub to: Ticks,
    /// How many.
    pub count: u64,
    /// Packets that came through it meanwhile.
    pub received: u64,
}

impl MissedPackets {
    /// How much of a stall lay between the looks, ticks.
    fn within(&self, stall: &WorkerStall) -> u64 {
        stall.to.min(self.to).since(stall.from.max(self.from))
    }

    /// At most so many came within `ticks` between the looks, as if they had come evenly: nothing tells when they came.
    fn came_in(&self, ticks: u64) -> u64 {
        let came = u128::from(self.count) + u128::from(self.received);
        let between = u128::from(self.to.since(self.from).max(1));
        u64::try_from((came * u128::from(ticks)).div_ceil(between)).unwrap_or(u64::MAX)
    }
}

/// A stall of a worker that polls some ports.
#[derive(Debug)]
pub struct WorkerStall {
    /// The poll before.
    pub from: Ticks,
    /// The poll after.
    pub to: Ticks,
    /// The ports that nobody polled meanwhile.
    pub ports: Vec<usize>,
    /// Something waited after it, or may have: else it filled no ring.
    pub waited: bool,
    /// Its row.
    pub stall: Stall,
    /// See [`StallBurst`].
    pub pile: StallBurst,
}

/// Stalls that followed each other before the ring was empty again, of which this is one: they fill it together.
#[derive(Debug, Clone, Copy, Default)]
pub struct StallBurst {
    /// How long all of them took, ns.
    pub gaps_ns: f64,
    /// Of that what the ring could not hold, ns.
    pub beyond_ns: f64,
}

/// Finds the piles among the stalls of one worker, in their order, which works `speed` times as fast as packets come.
pub fn pile_up(stalls: &mut [WorkerStall], speed: f64, clock: &Clock) {
    let Some(ring_holds_ns) = stalls.first().map(|first| first.stall.ring_holds_ns) else {
        return;
    };
    let seconds = |ticks: Ticks| clock.ns(ticks).0 as f64 / 1e9;
    // A packet here is a second's worth of them.
    let mut bucket = Bucket::new(Ring {
        rate_pps: 1.0,
        service_pps: speed.max(1.0),
        free: ring_holds_ns as f64 / 1e9,
    });
    let mut begin = 0;
    let mut pile = StallBurst::default();
    for index in 0..=stalls.len() {
        let next = stalls.get(index).map(|one| (one.from, one.to));
        if next.is_none_or(|(from, _)| bucket.waiting(seconds(from)) <= 0.0) {
            for one in &mut stalls[begin..index] {
                one.pile = pile;
            }
            (begin, pile) = (index, StallBurst::default());
        }
        if let Some((from, to)) = next {
            pile.beyond_ns += bucket.stall(seconds(from), seconds(to)) * 1e9;
            pile.gaps_ns += stalls[index].stall.gap_ns as f64;
        }
    }
}

/// Charges every miss to the stalls of its port at that time, by how long each of them, or the pile that it is part of,
/// lasted beyond what the ring holds; if none did, by how long they lasted: both within the time of the miss. What no stall can
/// have cost stays uncharged: none costs more than came in it in that time, and nothing where its ring was empty after it.
pub fn charge(stalls: &mut [WorkerStall], missed: &[MissedPackets]) {
    // Those of a worker follow each other; there may be many misses, too.
    let mut workers = Vec::new();
    for one in stalls.chunk_by(|one, next| one.to <= next.from) {
        let first = workers.last().map_or(0, |last: &Range<usize>| last.end);
        workers.push(first..first + one.len());
    }
    for miss in missed {
        let then = |worker: &Range<usize>| {
            let first = worker.start + stalls[worker.clone()].partition_point(|one| one.to < miss.from);
            (first..worker.end).take_while(|&index| stalls[index].from <= miss.to)
        };
        let guilty: Vec<usize> = workers
            .iter()
            .flat_map(then)
            .filter(|&index| {
                let one = &stalls[index];
                let can_fill = (one.stall.ring_holds_ns / PART_OF_RING) as f64;
                // The counter may have been read late, by a control thread that had to wait for a core, too.
                one.ports.contains(&miss.port) && one.waited && one.pile.gaps_ns >= can_fill
            })
            .collect();
        let any_beyond = guilty.iter().any(|&index| stalls[index].pile.beyond_ns > 0.0);
        let weights: Vec<u128> = guilty
            .iter()
            .map(|&index| {
                let pile = stalls[index].pile;
                let part = if any_beyond {
                    pile.beyond_ns / pile.gaps_ns
                } else {
                    1.0
                };
                (miss.within(&stalls[index]) as f64 * part).ceil() as u128
            })
            .collect();
        let total: u128 = weights.iter().sum();
        if total == 0 {
            continue;
        }
        // Shares are rounded so that they add up to the miss, to the packet, where each can have cost its own.
        let (mut so_far, mut given) = (0, 0);
        for (&index, weight) in guilty.iter().zip(&weights) {
            so_far += weight;
            let until = (u128::from(miss.count) * so_far / total) as u64;
            let most = miss.came_in(miss.within(&stalls[index]));
            stalls[index].stall.lost += (until - given).min(most);
            given = until;
        }
    }
}

/// Ranges of sequence numbers told of one stall; more are only counted.
const RANGES_MAX: usize = 16;

/// Gives every stall that cost packets the sequence numbers that were missing when its core went on: those of holes seen
/// after it, and before the next one that cost any.
pub fn name_sequences(stalls: &mut [WorkerStall], core: u32, holes: &[Hole], clock: &Clock) {
    let mut rest = holes;
    let costly: Vec<usize> = (0..stalls.len())
        .filter(|&index| stalls[index].stall.core == core && stalls[index].stall.lost > 0)
        .collect();
    for (place, &index) in costly.iter().enumerate() {
        let begin = clock.ns(stalls[index].to);
        let end = costly.get(place + 1).map(|&next| clock.ns(stalls[next].to));
        rest = &rest[rest.partition_point(|hole| hole.at < begin)..];
        let of_it = &rest[..rest.partition_point(|hole| end.is_none_or(|end| hole.at < end))];
        let mut ranges: Vec<String> = of_it
            .iter()
            .take(RANGES_MAX)
            .map(|hole| format!("{}:{}-{}", hole.lane, hole.first, hole.first + hole.count - 1))
            .collect();
        if of_it.len() > RANGES_MAX {
            ranges.push(format!("and {} more ranges", of_it.len() - RANGES_MAX));
        }
        stalls[index].stall.sequences = ranges.join(" ");
    }
}

/// Sums by core and cause; what cost most comes first, then what took most time.
pub fn by_cause(stalls: &[WorkerStall]) -> Vec<StallCause> {
    let mut sums: BTreeMap<(u32, &str), StallCause> = BTreeMap::new();
    for WorkerStall { stall, .. } in stalls {
        let cause = stall.cause.as_deref().unwrap_or("unknown");
        let sum = sums.entry((stall.core, cause)).or_insert_with(|| StallCause {
            cause: cause.to_owned(),
            core: stall.core,
            ..StallCause::default()
        });
        sum.pauses += 1;
        sum.costly += u64::from(stall.lost > 0);
        sum.total_ns += stall.gap_ns;
        sum.max_ns = sum.max_ns.max(stall.gap_ns);
        sum.lost += stall.lost;
    }
    let mut all: Vec<StallCause> = sums.into_values().collect();
    all.sort_by_key(|one| std::cmp::Reverse((one.lost, one.total_ns)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Nanos;
    use proptest::prelude::*;

    fn stall(port: usize, from: u64, to: u64, holds: u64, cause: &str) -> WorkerStall {
        WorkerStall {
            from: Ticks(from),
            to: Ticks(to),
            ports: vec![port],
            waited: true,
            stall: Stall {
                core: 1,
                gap_ns: to - from,
                ring_holds_ns: holds,
                cause: Some(cause.into()),
                ..Stall::default()
            },
            pile: StallBurst::default(),
        }
    }

    /// Piled up by a worker that is twice as fast as packets come.
    fn piled(mut all: Vec<WorkerStall>) -> Vec<WorkerStall> {
        all.sort_by_key(|one| (one.ports[0], one.from));
        for of_port in all.chunk_by_mut(|one, next| one.ports == next.ports) {
            pile_up(of_port, 2.0, &Clock::from_calibration(0, 0, 1e9));
        }
        all
    }

    /// A packet comes every tick.
    fn missed(port: usize, from: u64, to: u64, count: u64) -> MissedPackets {
        MissedPackets {
            port,
            from: Ticks(from),
            to: Ticks(to),
            count,
            received: (to - from).saturating_sub(count),
        }
    }

    #[test]
    fn a_stall_costs_no_more_than_came_in_it() {
        let mut all = piled(vec![
            stall(0, 100, 250, 1000, "tick"),
            stall(0, 9000, 12_000, 1000, "hog"),
        ]);
        // Under overload, and what is missed of what waited when the stall is over.
        charge(
            &mut all,
            &[
                missed(0, 0, 5000, 2865),
                missed(0, 8000, 11_000, 1000),
                missed(0, 11_000, 16_000, 1000),
            ],
        );
        let lost: Vec<_> = all.iter().map(|one| one.stall.lost).collect();
        assert_eq!(lost, [150, 2000]);
    }

    /// Packets come in bursts: one overflows the ring after the stall that ended as the time of the miss began, and one beside
    /// a stall after which nothing waited.
    #[test]
    fn a_burst_beside_a_stall_is_not_charged_to_it() {
        let mut before = piled(vec![stall(0, 0, 50_100, 1000, "hog")]);
        charge(&mut before, &[missed(0, 50_000, 55_000, 3000)]);
        assert_eq!(before[0].stall.lost, 100);

        let mut beside = piled(vec![stall(0, 1000, 3000, 1000, "hog")]);
        beside[0].waited = false;
        charge(&mut beside, &[missed(0, 0, 5000, 3000)]);
        assert_eq!(beside[0].stall.lost, 0);
    }

    #[test]
    fn a_stall_pays_for_each_of_its_ports() {
        let mut all = piled(vec![stall(0, 0, 2000, 1000, "hog")]);
        all[0].ports.push(1);
        charge(&mut all, &[missed(0, 0, 3000, 1500), missed(1, 0, 3000, 1500)]);
        assert_eq!(all[0].stall.lost, 3000);
    }

    #[test]
    fn the_stall_that_outlasted_the_ring_pays() {
        let mut all = piled(vec![
            stall(0, 100, 150, 1000, "tick"),
            stall(0, 200, 2200, 1000, "hog"),
            stall(1, 200, 9000, 1000, "another port"),
        ]);
        charge(&mut all, &[missed(0, 0, 1000, 30), missed(0, 1000, 3000, 12)]);
        let causes = by_cause(&all);
        assert_eq!(
            (causes[0].cause.as_str(), causes[0].lost, causes[0].costly),
            ("hog", 42, 1)
        );
        assert!(causes[1..].iter().all(|cause| cause.lost == 0), "{causes:?}");
    }

    #[test]
    fn stalls_that_pile_up_pay_by_their_length() {
        // Each takes a tenth of what the ring holds, and the worker catches up by a hundredth between two.
        let mut all: Vec<_> = (0..30)
            .map(|nth| stall(0, nth * 110, nth * 110 + 100, 1000, "storm"))
            .collect();
        all.push(stall(0, 3300, 3350, 1000, "tick"));
        all.push(stall(0, 9000, 9100, 1000, "later"));
        let mut all = piled(all);
        charge(&mut all, &[missed(0, 0, 20_000, 3050)]);
        let told = by_cause(&all);
        let lost: Vec<_> = told.iter().map(|one| (one.cause.as_str(), one.lost)).collect();
        assert_eq!(lost, [("storm", 3000), ("tick", 50), ("later", 0)]);
    }

    #[test]
    fn what_no_stall_can_have_cost_is_charged_to_none() {
        let mut all = piled(vec![
            stall(0, 100, 200, 1000, "tick"),
            stall(0, 9000, 20_000, 1000, "hog"),
        ]);
        charge(&mut all, &[missed(0, 50, 300, 7), missed(0, 400, 8000, 5)]);
        assert_eq!(by_cause(&all).iter().map(|cause| cause.lost).sum::<u64>(), 0);
    }

    #[test]
    fn the_numbers_that_were_skipped_belong_to_the_stall_before() {
        let clock = Clock::from_calibration(0, 0, 1e9);
        let mut all = piled(vec![
            stall(0, 100, 2200, 1000, "hog"),
            stall(0, 4300, 4310, 1000, "tick"),
            stall(0, 6000, 8200, 1000, "hog"),
        ]);
        charge(&mut all, &[missed(0, 0, 4500, 30), missed(0, 5900, 8300, 12)]);
        let hole = |at, first, count| Hole {
            lane: 3,
            first,
            count,
            at: Nanos(at),
        };
        let holes = [
            hole(50, 1, 9),
            hole(4400, 100, 30),
            hole(8201, 500, 11),
            hole(8300, 600, 1),
        ];
        name_sequences(&mut all, 1, &holes, &clock);
        let told: Vec<_> = all.iter().map(|one| &one.stall.sequences).collect();
        assert_eq!(told, ["3:100-129", "", "3:500-510 3:600-600"]);
    }

    proptest! {
        /// Nothing is charged twice, and nothing is made up.
        #[test]
        fn charges_are_conserved(
            stalls in prop::collection::vec((0_usize..2, 0_u64..10_000, 1_u64..3000, 0_u64..4000), 0..30),
            misses in prop::collection::vec((0_usize..2, 0_u64..1000, 0_u64..2000, 1_u64..500), 0..30),
        ) {
            let mut all = piled(stalls
                .into_iter()
                .map(|(port, from, ticks, holds)| stall(port, from, from + ticks, holds, "x"))
                .collect());
            let mut looked = [0, 0];
            for (port, later, ticks, count) in misses {
                let (from, ticks) = (looked[port] + later, ticks.max(count));
                looked[port] = from + ticks;
                let before: u64 = all.iter().map(|one| one.stall.lost).sum();
                charge(&mut all, &[missed(port, from, from + ticks, count)]);
                let after: u64 = all.iter().map(|one| one.stall.lost).sum();
                prop_assert!(after - before <= count);
            }
            prop_assert!(all.iter().all(|one| one.stall.lost <= one.stall.gap_ns));
        }
    }
}
