//! The whole result of a `send` or a `reflect` run, as `summary.json` and `--json` carry it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bunch::Bunch;
use crate::ledger::Ledger;
use crate::note::Note;
use crate::place::Balance;
use crate::result::{
    ClockSummary, ExpectationResult, Explanation, GapSummary, Percentiles, PoolSummary, PortSummary,
    QueueSummary, StreamSummary, WorkerSummary,
};
use crate::verdict::Validity;

/// Version of every result's format; readers accept this one and every earlier one. Since 2 notes and reasons have codes.
pub const VERSION: u32 = 2;

/// Measured, and clean.
pub const EXIT_CLEAN: u8 = 0;
/// Measured, and loss or a failed expectation was found.
pub const EXIT_LOSS: u8 = 1;
/// Could not measure.
pub const EXIT_INVALID: u8 = 2;

/// The result of a `send` run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Version of this format.
    pub version: u32,
    /// The subcommand, `send`.
    pub command: String,
    /// The run directory.
    pub run: String,
    /// Whether the numbers may be believed.
    pub verdict: Validity,
    /// Why not; empty when valid.
    pub reasons: Vec<Note>,
    /// Packets the driver accepted.
    pub sent: u64,
    /// Distinct packets that came back in time.
    pub received: u64,
    /// `sent - received`.
    pub lost: u64,
    /// Further copies of packets already received.
    pub duplicate: u64,
    /// Packets that came after one with a higher sequence number (RFC 4737, section 3.3).
    pub reordered: u64,
    /// Largest distance of a reordered packet behind the next expected sequence number.
    pub reorder_extent_max: u64,
    /// Damaged packets.
    pub corrupt: u64,
    /// Packets that came more than the drain time after they were sent.
    pub late: u64,
    /// Lost packets no counter accounts for.
    pub unexplained: u64,
    /// The rate asked for, in packets per second; `null` at rate `max`.
    pub rate_asked_pps: Option<f64>,
    /// Mean rate accepted by the driver, in packets per second.
    pub rate_tx_pps: f64,
    /// Mean rate received, in packets per second.
    pub rate_rx_pps: f64,
    /// Mean rate sent on layer 1 (frame, preamble and gap), in bit/s.
    pub rate_tx_bps_l1: f64,
    /// Mean rate sent on layer 2 (frame with FCS), in bit/s.
    pub rate_tx_bps_l2: f64,
    /// Time from the start of the schedule to the end of sending, in seconds.
    pub duration_s: f64,
    /// Latency from the real departure, in ns.
    pub latency_ns: Percentiles,
    /// Latency from the scheduled departure, in ns: a late sender does not hide behind its own delay.
    pub latency_scheduled_ns: Percentiles,
    /// Interarrival jitter (RFC 3550, section 6.4.1), in ns.
    pub jitter_ns: Option<f64>,
    /// Packet delay variation, 99.9th percentile less minimum (RFC 8219, section 7.3.1), in ns.
    pub pdv_ns: Option<u64>,
    /// Gaps between departures.
    pub gap_ns: GapSummary,
    /// How often how many packets left at once because they were due together; empty where each left alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bunches: Vec<Bunch>,
    /// Where every packet went.
    pub ledger: Ledger,
    /// Per stream.
    pub streams: Vec<StreamSummary>,
    /// Per port.
    pub ports: Vec<PortSummary>,
    /// Per queue.
    pub queues: Vec<QueueSummary>,
    /// Per worker.
    pub workers: Vec<WorkerSummary>,
    /// The buffer pool.
    pub pool: PoolSummary,
    /// The clock.
    pub clock: ClockSummary,
    /// The outcome of every `--expect`.
    pub expectations: Vec<ExpectationResult>,
    /// Where the packets went that our ports missed; only with `--explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
    /// What else the user should know.
    pub notes: Vec<Note>,
}

impl Default for Summary {
    fn default() -> Summary {
        Summary {
            version: VERSION,
            command: "send".to_owned(),
            run: String::new(),
            verdict: Validity::Invalid,
            reasons: Vec::new(),
            sent: 0,
            received: 0,
            lost: 0,
            duplicate: 0,
            reordered: 0,
            reorder_extent_max: 0,
            corrupt: 0,
            late: 0,
            unexplained: 0,
            rate_asked_pps: None,
            rate_tx_pps: 0.0,
            rate_rx_pps: 0.0,
            rate_tx_bps_l1: 0.0,
            rate_tx_bps_l2: 0.0,
            duration_s: 0.0,
            latency_ns: Percentiles::default(),
            latency_scheduled_ns: Percentiles::default(),
            jitter_ns: None,
            pdv_ns: None,
            gap_ns: GapSummary::default(),
            bunches: Vec::new(),
            ledger: Ledger::default(),
            streams: Vec::new(),
            ports: Vec::new(),
            queues: Vec::new(),
            workers: Vec::new(),
            pool: PoolSummary::default(),
            clock: ClockSummary::default(),
            expectations: Vec::new(),
            explanation: None,
            notes: Vec::new(),
        }
    }
}

impl Summary {
    /// Lost packets as a part (0 to 1) of those sent; `None` when nothing was sent.
    pub fn loss(&self) -> Option<f64> {
        (self.sent > 0).then(|| self.lost as f64 / self.sent as f64)
    }

    /// The process exit code: 2 when invalid; with expectations they decide, else loss, duplicates and damage do.
    pub fn exit_code(&self) -> u8 {
        if self.verdict == Validity::Invalid {
            return EXIT_INVALID;
        }
        let clean = if self.expectations.is_empty() {
            self.lost == 0 && self.duplicate == 0 && self.corrupt == 0
        } else {
            self.expectations.iter().all(|expectation| expectation.met)
        };
        if clean { EXIT_CLEAN } else { EXIT_LOSS }
    }
}

/// The result of a `reflect` run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReflectSummary {
    /// Version of this format.
    pub version: u32,
    /// The subcommand, `reflect`.
    pub command: String,
    /// The run directory.
    pub run: String,
    /// Whether the numbers may be believed.
    pub verdict: Validity,
    /// Why not; empty when valid.
    pub reasons: Vec<Note>,
    /// Frames received.
    pub received: u64,
    /// Frames sent back.
    pub returned: u64,
    /// ARP, NDP and echo requests answered, part of `returned`.
    pub answered: u64,
    /// Senders' questions for these counters that were answered, part of `returned`.
    pub told: u64,
    /// Frames not sent back, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Where every frame went.
    #[serde(skip_serializing_if = "Balance::is_empty")]
    pub ledger: Balance,
    /// What the fault injector did, by kind (`fault_drop`, `fault_duplicate`, ...); empty without `--fault`.
    /// What it dropped stands in `dropped` too.
    pub faults: BTreeMap<String, u64>,
    /// Mean rate received, in packets per second.
    pub rate_rx_pps: f64,
    /// Mean rate sent back, in packets per second.
    pub rate_tx_pps: f64,
    /// Time the reflector ran, in seconds.
    pub duration_s: f64,
    /// Per port.
    pub ports: Vec<PortSummary>,
    /// Per queue.
    pub queues: Vec<QueueSummary>,
    /// Per worker.
    pub workers: Vec<WorkerSummary>,
    /// The buffer pool.
    pub pool: PoolSummary,
    /// The clock.
    pub clock: ClockSummary,
    /// Where the packets went that our ports missed; only with `--explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
    /// What else the user should know.
    pub notes: Vec<Note>,
}

impl Default for ReflectSummary {
    fn default() -> ReflectSummary {
        ReflectSummary {
            version: VERSION,
            command: "reflect".to_owned(),
            run: String::new(),
            verdict: Validity::Invalid,
            reasons: Vec::new(),
            received: 0,
            returned: 0,
            answered: 0,
            told: 0,
            dropped: BTreeMap::new(),
            ledger: Balance::default(),
            faults: BTreeMap::new(),
            rate_rx_pps: 0.0,
            rate_tx_pps: 0.0,
            duration_s: 0.0,
            ports: Vec::new(),
            queues: Vec::new(),
            workers: Vec::new(),
            pool: PoolSummary::default(),
            clock: ClockSummary::default(),
            explanation: None,
            notes: Vec::new(),
        }
    }
}

impl ReflectSummary {
    /// The process exit code: 0 when valid, else 2. What a reflector drops by rule is its job, not a loss.
    pub fn exit_code(&self) -> u8 {
        if self.verdict == Validity::Invalid {
            EXIT_INVALID
        } else {
            EXIT_CLEAN
        }
    }
}
