//! What a replay came to.

use serde::{Deserialize, Serialize};

use crate::balance::Balance;
use crate::note::Note;
use crate::result::{
    ClockSummary, ExpectationResult, Explanation, Percentiles, PoolSummary, PortSummary, QueueSummary,
    WorkerSummary,
};
use crate::summary::{exit_code, nothing_yet};
use crate::timetable::TimesSummary;
use crate::verdict::Validity;

/// Packets that were to be sent before they had been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StarvedSummary {
    /// How often there was nothing to send.
    pub times: u64,
    /// For how long in all, in ns, counted from when the next packet was due.
    pub ns: u64,
    /// Packets that left late because of it; at rate `max` none is due.
    pub packets: u64,
}

/// The result of `replay`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplaySummary {
    /// Version of this format.
    pub version: u32,
    /// The subcommand, `replay`.
    pub command: String,
    /// The run directory.
    pub run: String,
    /// Whether it was what was asked for.
    pub verdict: Validity,
    /// Why not; empty when valid.
    pub reasons: Vec<Note>,
    /// The capture.
    pub file: String,
    /// How fast it was to be sent: `original`, `x2`, a rate, or `max`.
    pub rate: String,
    /// How often it was read to its end.
    pub loops: u64,
    /// Packets read, in all loops.
    pub read: u64,
    /// Packets that the port sent, by its own count: `left` of the ledger. What its driver took stands at the queue.
    pub sent: u64,
    /// Bytes of what the driver took, without FCS.
    pub sent_bytes: u64,
    /// Packets of which the capture has only the beginning.
    pub snapped: u64,
    /// Where every packet went that was read; `left` is the port's own count of what it sent.
    pub ledger: Balance,
    /// What of the capture's times could not be taken as it is.
    pub times: TimesSummary,
    /// Whether it could be read as fast as it was to be sent.
    pub starved: StarvedSummary,
    /// By how much the time between two packets, as they were handed to the driver, differs from what it was to be, in ns.
    pub gap_error_ns: Percentiles,
    /// How long after it was due each packet was handed to the driver, in ns.
    pub late_ns: Percentiles,
    /// Calls in which the driver took less than was due.
    pub queue_full: u64,
    /// From the first packet to the last, as planned, in seconds; `null` at rate `max`.
    pub planned_s: Option<f64>,
    /// The same, as it was.
    pub duration_s: f64,
    /// Mean rate of `sent`, in packets per second.
    pub rate_tx_pps: f64,
    /// The same in bits per second on layer 1: frames with FCS, filled up to 64 bytes, preamble and gap.
    pub rate_tx_bps_l1: f64,
    /// The expectations, in the order given.
    pub expectations: Vec<ExpectationResult>,
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
    /// Who took the core; only with `--explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
    /// What else the user should know.
    pub notes: Vec<Note>,
}

nothing_yet! {
    ReplaySummary, "replay":
    run verdict reasons file rate loops read sent sent_bytes snapped ledger times starved gap_error_ns
    late_ns queue_full planned_s duration_s rate_tx_pps rate_tx_bps_l1 expectations ports queues workers
    pool clock explanation notes
}

impl ReplaySummary {
    /// Packets that were read and not sent, although nobody asked for that.
    pub fn lost(&self) -> u64 {
        self.ledger.lost()
    }

    /// Lost packets as a part (0 to 1) of those that were read; `None` when none was.
    pub fn loss(&self) -> Option<f64> {
        self.ledger.share(self.lost())
    }

    /// The process exit code: 2 when it was not what was asked for; with expectations they decide, else whether every packet was sent.
    pub fn exit_code(&self) -> u8 {
        exit_code(self.verdict, &self.expectations, self.lost() == 0)
    }
}
