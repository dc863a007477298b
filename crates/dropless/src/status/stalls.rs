//! Workers' stalls as they pass: what the histograms of their poll gaps have gained since the last look.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use dataplane::worker::WorkerCounters;
use measure::Clock;
use report::published::{RecentStall, Worker};

use crate::run::workers;

/// Stalls told at a time.
const TOLD_MAX: usize = 64;

pub struct StallWatch<'w> {
    roles: &'w [(usize, Vec<&'static str>)],
    counters: &'w [Arc<WorkerCounters>],
    clock: Clock,
    threshold_ticks: u64,
    /// By worker and bucket: what was counted at the last look.
    seen: Vec<BTreeMap<u64, u64>>,
    recent: VecDeque<RecentStall>,
}

impl<'w> StallWatch<'w> {
    pub fn new(
        roles: &'w [(usize, Vec<&'static str>)],
        counters: &'w [Arc<WorkerCounters>],
        clock: Clock,
        threshold_ticks: u64,
    ) -> Self {
        Self {
            roles,
            counters,
            clock,
            threshold_ticks,
            seen: vec![BTreeMap::new(); counters.len()],
            recent: VecDeque::new(),
        }
    }

    /// The workers at `at_s` seconds into the run, with the stalls they have had.
    pub fn look(&mut self, at_s: f64) -> Vec<Worker> {
        let mut workers = Vec::with_capacity(self.counters.len());
        for (((core, roles), counters), seen) in self.roles.iter().zip(self.counters).zip(&mut self.seen) {
            let mut stalls = 0;
            let gaps = counters.gap_ticks.snapshot();
            // The end of a bucket may lie above the longest stall, which is known exactly.
            let longest = gaps.max().unwrap_or(0);
            for (ticks, count) in gaps.buckets() {
                if ticks <= self.threshold_ticks {
                    continue;
                }
                stalls += count;
                let before = seen.insert(ticks, count).unwrap_or(0);
                if count > before {
                    self.recent.push_back(RecentStall {
                        at_s,
                        core: *core as u32,
                        gap_ns: self.clock.ns_from_ticks(ticks.min(longest)),
                        times: count - before,
                    });
                }
            }
            workers.push(Worker {
                summary: workers::summary(*core, roles, counters, &self.clock),
                busy: counters.busy.get(),
                stalls,
            });
        }
        while self.recent.len() > TOLD_MAX {
            self.recent.pop_front();
        }
        workers
    }

    /// The latest stalls, the newest last.
    pub fn recent(&self) -> Vec<RecentStall> {
        self.recent.iter().copied().collect()
    }
}
