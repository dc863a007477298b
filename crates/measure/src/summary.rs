//! The whole result of a `send` or a `reflect` run, as `summary.json` and `--json` carry it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::balance::{Balance, Charge};
use crate::bunch::Bunch;
use crate::ledger::Ledger;
use crate::note::Note;
use crate::place::{NOT_AWAITED, Owner, Place, RX_ERROR, RX_MISSED, RX_NO_BUFFER};
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

/// Makes the result that a run of `command` begins with: of this version, and with nothing in it yet.
macro_rules! nothing_yet {
    ($summary:ident, $command:literal: $($field:ident)*) => {
        impl Default for $summary {
            fn default() -> Self {
                Self {
                    version: $crate::summary::VERSION,
                    command: $command.to_owned(),
                    $($field: Default::default(),)*
                }
            }
        }
    };
}
pub(crate) use nothing_yet;

/// The exit code of a result: with expectations they decide, else whether it `is_clean`.
pub(crate) fn exit_code(verdict: Validity, expectations: &[ExpectationResult], is_clean: bool) -> u8 {
    let is_met = if expectations.is_empty() {
        is_clean
    } else {
        expectations.iter().all(|expectation| expectation.met)
    };
    match verdict {
        Validity::Invalid => EXIT_INVALID,
        Validity::Valid if is_met => EXIT_CLEAN,
        Validity::Valid => EXIT_LOSS,
    }
}

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

nothing_yet! {
    Summary, "send":
    run verdict reasons sent received lost duplicate reordered reorder_extent_max corrupt late unexplained
    rate_asked_pps rate_tx_pps rate_rx_pps rate_tx_bps_l1 rate_tx_bps_l2 duration_s latency_ns
    latency_scheduled_ns jitter_ns pdv_ns gap_ns bunches ledger streams ports queues workers pool clock
    expectations explanation notes
}

impl Summary {
    /// Lost packets as a part (0 to 1) of those sent; `None` when nothing was sent.
    pub fn loss(&self) -> Option<f64> {
        (self.sent > 0).then(|| self.lost as f64 / self.sent as f64)
    }

    /// Whether it only sent: what comes back is no figure of it then.
    pub fn is_one_way(&self) -> bool {
        self.ledger.lost_at.contains_key(NOT_AWAITED)
    }

    /// The process exit code: 2 when invalid; with expectations they decide, else loss, duplicates and damage do.
    pub fn exit_code(&self) -> u8 {
        let is_clean = self.lost == 0 && self.duplicate == 0 && self.corrupt == 0;
        exit_code(self.verdict, &self.expectations, is_clean)
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
    /// Frames sent back: what the ports took, less what they or the interfaces below them did not send.
    pub returned: u64,
    /// ARP, NDP and echo requests answered, part of `returned`.
    pub answered: u64,
    /// Senders' questions for these counters that were answered, part of `returned`.
    pub told: u64,
    /// Frames not sent back, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Where every frame went that came to the ports, and every copy that the fault injector made.
    #[serde(skip_serializing_if = "Balance::is_empty")]
    pub ledger: Balance,
    /// What the fault injector did, by kind (`drop`, `duplicate`, ...), and how many probes it saw; empty without `--fault`.
    /// What it dropped is not among `dropped`: the ledger has it as `fault_drop`.
    pub faults: BTreeMap<String, u64>,
    /// Mean rate received, in packets per second: without what waited when the run began, which is in `received`.
    pub rate_rx_pps: f64,
    /// Mean rate of `returned`, in packets per second.
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

nothing_yet! {
    ReflectSummary, "reflect":
    run verdict reasons received returned answered told dropped ledger faults rate_rx_pps rate_tx_pps
    duration_s ports queues workers pool clock explanation notes
}

impl ReflectSummary {
    /// The ledger, or what stands for it in results of earlier versions: they had none, or left out of it what ports missed.
    pub fn balance(&self) -> Balance {
        let mut balance = self.ledger.clone();
        if balance.is_empty() {
            let dropped = self.dropped.iter().filter(|(_, count)| **count > 0);
            balance.entered = self.received;
            balance.left = self.returned;
            balance.places = dropped
                .map(|(name, count)| Charge::whole(Place::of_reflecting(name), *count))
                .collect();
        }
        let sum = |of: fn(&PortSummary) -> u64| self.ports.iter().map(of).fold(0, u64::saturating_add);
        let missed = [
            (RX_NO_BUFFER, sum(|port| port.rx_nombuf)),
            (RX_MISSED, sum(|port| port.rx_missed)),
            (RX_ERROR, sum(|port| port.rx_errors)),
        ];
        for (name, count) in missed {
            if count > 0 && balance.places.iter().all(|charge| charge.place != name) {
                balance.entered = balance.entered.saturating_add(count);
                balance.places.push(Charge::whole(Place::named(name), count));
            }
        }
        balance
    }

    /// Frames that may have been probes and did not go back: missed by the ports, dropped for a reason that probes can have,
    /// or not sent. What never was a probe, and what was dropped on purpose, is none of them.
    pub fn lost(&self) -> u64 {
        let balance = self.balance();
        let places = balance.places.iter();
        let lost = places.filter(|charge| Place::named(&charge.place).owner != Owner::Purpose);
        lost.fold(balance.unexplained, |sum, charge| {
            sum.saturating_add(charge.charged)
        })
    }

    /// These as a part (0 to 1) of the frames that were to go back and may have been probes; `None` when there were none.
    pub fn loss(&self) -> Option<f64> {
        let others = self.answered.saturating_add(self.told);
        let (lost, returned) = (self.lost(), self.balance().left.saturating_sub(others));
        let probes = returned.saturating_add(lost);
        (probes > 0).then(|| lost as f64 / probes as f64)
    }

    /// The process exit code: 0 when valid, else 2. Whoever sent the probes judges what became of them.
    pub fn exit_code(&self) -> u8 {
        exit_code(self.verdict, &[], true)
    }
}
