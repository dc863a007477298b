//! What a run tells while it goes: one file in shared memory, written by its control thread, that `dropless top` finds.

mod age;
mod file;
mod numbers;
mod place;
mod totals;

use std::collections::BTreeMap;
use std::path::PathBuf;

use measure::place::Owner;
use measure::{Balance, FlowsSummary, Judged, Note, Percentiles, PortSummary, QueueSummary, WorkerSummary};
use serde::{Deserialize, Serialize};

pub use file::{BYTES_MAX, Refusal, VERSION, decode, encode, read};
pub use numbers::{in_proc, of_kernel, own_id};
pub use place::{Found, Place, PlaceError, Publisher, is_alive, is_stopped, tap_socket, unix_ms};
pub use totals::Totals;

/// One moment of a run. Counts are since its start.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// Who tells.
    pub process: Process,
    /// The number of this moment; it rises by one each time.
    pub sequence: u64,
    /// When it was told, ms since 1970.
    pub told_unix_ms: u64,
    /// What the run is doing.
    pub phase: Phase,
    /// Since the first packet was scheduled, s.
    pub elapsed_s: f64,
    /// How long it will last, s, where that is known; of a search or a comparison it is not.
    pub planned_s: Option<f64>,
    /// How much of it is done, 0 to 1; `null` when it ends only on request. Of a search or a comparison: an estimate.
    pub done: Option<f64>,
    /// Of a search or a comparison: how far it is.
    pub trials: Option<Trials>,
    /// For how long the ports have taken nothing of what they were offered, s, once that is worth a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_s: Option<f64>,
    /// How fast, over the last second; after the end, over the whole run.
    pub rate: Rates,
    /// How much.
    pub total: Totals,
    /// Latencies of the interval that ended last.
    pub latency_recent_ns: Percentiles,
    /// Latencies of all intervals whose loss is known; of a search or a comparison, those of its last finished trial.
    pub latency_ns: Percentiles,
    /// The same as buckets; of a search or a comparison, those of all its trials.
    pub latency_buckets: Buckets,
    /// Packets by the place that dropped them, as far as the places tell while the run goes.
    pub places: BTreeMap<String, u64>,
    /// The kernel's events so far, of a run that asks for them.
    pub events: Option<u64>,
    /// The ports and their own counters.
    pub ports: Vec<PortSummary>,
    /// The queues.
    pub queues: Vec<QueueSummary>,
    /// The rules by which it decides, of a run that has some.
    pub rules: Option<RulesInForce>,
    /// Who talks to whom, of a run that counts flows: the largest.
    pub flows: Option<FlowsSummary>,
    /// Whoever takes packets out of the ring of a capture.
    pub consumers: Vec<ConsumerLevel>,
    /// The workers.
    pub workers: Vec<Worker>,
    /// The latest stalls of the workers, the newest last.
    pub stalls: Vec<RecentStall>,
    /// The packet buffers.
    pub pool: PoolLevel,
    /// Whether packets move.
    pub health: Health,
    /// How it ended.
    pub ended: Option<Ended>,
}

impl State {
    /// Packets that these places have dropped.
    pub fn lost_at(&self, places: &[&str]) -> u64 {
        places.iter().filter_map(|place| self.places.get(*place)).sum()
    }

    /// Packets that its places lost, although nobody asked for that; as [`measure::Balance::lost`].
    pub fn lost(&self) -> u64 {
        let places = self.places.iter();
        let lost = places.filter(|(name, _)| measure::Place::named(name).owner != Owner::Purpose);
        lost.map(|(_, count)| count).sum()
    }

    /// Packets that consumers of a capture did not get.
    pub fn lost_by_consumers(&self) -> u64 {
        self.consumers
            .iter()
            .map(|consumer| consumer.lost)
            .fold(0, u64::saturating_add)
    }

    /// Makes the places those of the ledger, as far as each was charged.
    pub fn take_places(&mut self, ledger: &Balance) {
        self.places.clear();
        let charges = ledger.places.iter();
        self.add_places(charges.map(|charge| (charge.place.clone(), charge.charged)));
        self.add_places([("unexplained", ledger.unexplained)]);
    }

    /// Adds packets to the places that dropped them; a place that dropped none is not listed.
    pub fn add_places<N: Into<String>>(&mut self, places: impl IntoIterator<Item = (N, u64)>) {
        for (name, count) in places {
            if count > 0 {
                *self.places.entry(name.into()).or_default() += count;
            }
        }
    }
}

/// Rules of a run, which may be read again while it goes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RulesInForce {
    /// Their file.
    pub file: String,
    /// How many rules it has.
    pub rules: u64,
    /// How many sets were in force, this one among them.
    pub generation: u64,
    /// When it came into force, ms since 1970.
    pub since_unix_ms: u64,
    /// How often they were read again, whatever came of it.
    pub asked: u64,
    /// How often it was asked to read them again.
    pub heard: u64,
    /// So many of those that asked first have their answer: one reading may be for several.
    pub answered: u64,
    /// Why those that were read last are not in force; those before are.
    pub refused: Option<Note>,
    /// Why rules that nobody asked to read, those that a guard makes, are not in force; those before are.
    pub failed: Option<Note>,
    /// What they met, and those before them: the busiest rules.
    pub judged: Judged,
}

/// A consumer of a capture's ring.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsumerLevel {
    /// Its name.
    pub name: String,
    /// Whether the ring keeps for it what it has not taken.
    pub lossless: bool,
    /// Packets that it took.
    pub taken: u64,
    /// Packets that it did not get.
    pub lost: u64,
    /// Segments of the ring that it is behind, the one under way among them.
    pub behind: u64,
    /// The most of them so far.
    pub behind_max: u64,
}

/// The process of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Its id, as `/proc` has it where it was published.
    pub id: u32,
    /// The process that started it; a run that is a trial of another has that one here.
    pub parent: u32,
    /// When the kernel started it, ticks since the machine's boot: another process with this id started at another time.
    pub started_ticks: u64,
    /// When it was started, ms since 1970.
    pub started_unix_ms: u64,
    /// The subcommand.
    pub command: String,
    /// Its command line, without the program.
    pub arguments: Vec<String>,
    /// The run directory, absolute.
    pub run: PathBuf,
    /// The version of dropless.
    pub version: String,
}

/// What a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Ports are opened, peers waited for.
    #[default]
    Starting,
    /// Packets are sent.
    Sending,
    /// The last ones are waited for.
    Draining,
    /// Packets are returned.
    Reflecting,
    /// A capture is sent.
    Replaying,
    /// Packets are taken.
    Capturing,
    /// Packets pass or are dropped, by rules.
    Filtering,
    /// Packets go from port to port.
    Forwarding,
    /// Cores are polled on without packets.
    Watching,
    /// Nothing moves, and nothing should: between two trials, for instance.
    Idle,
    /// It is over.
    Ended,
    /// A phase that only a later version knows.
    #[serde(other)]
    Other,
}

impl Phase {
    /// The phase in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Sending => "sending",
            Self::Draining => "draining",
            Self::Reflecting => "reflecting",
            Self::Replaying => "replaying",
            Self::Capturing => "capturing",
            Self::Filtering => "filtering",
            Self::Forwarding => "forwarding",
            Self::Watching => "watching",
            Self::Idle => "idle",
            Self::Ended => "ended",
            Self::Other => "running",
        }
    }
}

/// The trials of a search or a comparison so far.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Trials {
    /// The number of the one that goes on, or went last; the first one is 1.
    pub number: u64,
    /// How much longer all of it will take, s: an estimate, where there is one.
    pub left_s: Option<f64>,
    /// What they have shown.
    pub shown: Vec<Bounds>,
}

/// Between which rates a limit lies, as far as is known.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Bounds {
    /// Whose: of a frame size and a goal, or of a way.
    pub of: String,
    /// The highest rate known to be carried, packets per second.
    pub carried_pps: Option<f64>,
    /// The lowest known not to be.
    pub not_carried_pps: Option<f64>,
    /// The highest rate of a trial that went well, which alone proves nothing.
    pub good_up_to_pps: Option<f64>,
    /// The lowest rate of one that did not.
    pub bad_from_pps: Option<f64>,
}

/// How fast, and over which time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Rates {
    /// They are taken over this long, s.
    pub over_s: f64,
    /// Packets sent, per second.
    pub tx_pps: f64,
    /// Packets received, per second.
    pub rx_pps: f64,
    /// Bits sent per second on layer 1; 0 where bytes are not counted, as of what a reflector returns.
    pub tx_bps: f64,
    /// Bits received per second on layer 1.
    pub rx_bps: f64,
}

/// A histogram for other tools.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Buckets {
    /// Upper ends in ns, and how many packets do not exceed them.
    pub below: Vec<(u64, u64)>,
    /// All packets.
    pub count: u64,
    /// Their sum, s.
    pub sum_s: f64,
}

impl std::ops::Add for Buckets {
    type Output = Self;

    /// Both together: all histograms have the same ends.
    fn add(self, more: Self) -> Self {
        if self.below.len() != more.below.len() {
            // One of them has not begun.
            return if self.below.is_empty() { more } else { self };
        }
        let both = self.below.iter().zip(&more.below);
        Self {
            below: both.map(|(one, other)| (one.0, one.1 + other.1)).collect(),
            count: self.count + more.count,
            sum_s: self.sum_s + more.sum_s,
        }
    }
}

impl Buckets {
    /// `histogram` in steps of 1, 2 and 5 from 100 ns to 10 s.
    pub fn of(histogram: &measure::Histogram) -> Self {
        let mut bounds = (2..=9).flat_map(|power| [1, 2, 5].map(|step| step * 10_u64.pow(power)));
        let mut below: Vec<(u64, u64)> = Vec::new();
        let (mut bound, mut seen) = (bounds.next(), 0);
        for (highest_ns, count) in histogram.buckets() {
            while let Some(end) = bound.filter(|end| *end < highest_ns) {
                below.push((end, seen));
                bound = bounds.next();
            }
            seen += count;
        }
        below.extend(bound.into_iter().chain(bounds).map(|end| (end, seen)));
        Self {
            below,
            count: histogram.count(),
            sum_s: histogram.sum() as f64 / 1e9,
        }
    }
}

/// A worker so far.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Worker {
    /// Core, roles and polls.
    pub summary: WorkerSummary,
    /// Rounds that moved a packet.
    pub busy: u64,
    /// Stalls longer than `--pause`.
    pub stalls: u64,
}

/// Stalls of a worker of one length, as control saw them pass: their time is that of the look, their length that of
/// its bucket in the histogram (3 %).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RecentStall {
    /// When control saw it, s since the start.
    pub at_s: f64,
    /// The core.
    pub core: u32,
    /// How long, ns.
    pub gap_ns: u64,
    /// How many of this length at this look.
    pub times: u64,
}

/// The buffer pool now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolLevel {
    /// Buffers in all.
    pub size: u64,
    /// Buffers in the pool.
    pub free: u64,
}

/// Whether packets move as they should.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Health {
    /// Packets move, or are not scheduled to.
    pub healthy: bool,
    /// Why.
    pub reason: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ended {
    /// `valid` or `invalid`; empty where it broke off.
    pub verdict: String,
    /// The exit code.
    pub exit: u8,
    /// What is wrong with it.
    pub reasons: Vec<Note>,
}
