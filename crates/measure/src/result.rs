//! The parts of a run's result, as they stand in `summary.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Note;
use crate::histogram::Histogram;

/// Percentiles of a value in nanoseconds; every field is `null` when nothing was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Percentiles {
    /// Smallest value, exact, in ns.
    pub min: Option<u64>,
    /// Median in ns.
    pub p50: Option<u64>,
    /// 90th percentile in ns.
    pub p90: Option<u64>,
    /// 99th percentile in ns.
    pub p99: Option<u64>,
    /// 99.9th percentile in ns.
    pub p999: Option<u64>,
    /// Largest value, exact, in ns.
    pub max: Option<u64>,
    /// Arithmetic mean, exact to the rounding of f64, in ns.
    pub mean: Option<f64>,
}

impl Percentiles {
    /// Of each the larger one, but of the smallest value the smaller: what two runs together do not exceed.
    #[must_use]
    pub fn or_worse(self, other: Self) -> Self {
        let least = |one: Option<u64>, two: Option<u64>| one.into_iter().chain(two).min();
        Self {
            min: least(self.min, other.min),
            p50: self.p50.max(other.p50),
            p90: self.p90.max(other.p90),
            p99: self.p99.max(other.p99),
            p999: self.p999.max(other.p999),
            max: self.max.max(other.max),
            mean: self.mean.into_iter().chain(other.mean).reduce(f64::max),
        }
    }
}

impl From<&Histogram> for Percentiles {
    fn from(histogram: &Histogram) -> Percentiles {
        Percentiles {
            min: histogram.min(),
            p50: histogram.percentile(50.0),
            p90: histogram.percentile(90.0),
            p99: histogram.percentile(99.0),
            p999: histogram.percentile(99.9),
            max: histogram.max(),
            mean: histogram.mean(),
        }
    }
}

/// The gaps between departures that were really achieved, in ns, beside the gap the asked rate means.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GapSummary {
    /// 1 / asked rate, in ns; `null` at rate `max`.
    pub asked: Option<f64>,
    /// Median in ns.
    pub p50: Option<u64>,
    /// 90th percentile in ns.
    pub p90: Option<u64>,
    /// 99th percentile in ns.
    pub p99: Option<u64>,
    /// 99.9th percentile in ns.
    pub p999: Option<u64>,
    /// Largest gap, exact, in ns.
    pub max: Option<u64>,
}

impl From<GapSummary> for Percentiles {
    fn from(gaps: GapSummary) -> Self {
        Self {
            p50: gaps.p50,
            p90: gaps.p90,
            p99: gaps.p99,
            p999: gaps.p999,
            max: gaps.max,
            ..Self::default()
        }
    }
}

impl GapSummary {
    /// The percentiles of `gaps` (one value per packet, in ns) beside the asked gap.
    pub fn new(asked_ns: Option<f64>, gaps: &Histogram) -> GapSummary {
        GapSummary {
            asked: asked_ns,
            p50: gaps.percentile(50.0),
            p90: gaps.percentile(90.0),
            p99: gaps.percentile(99.0),
            p999: gaps.percentile(99.9),
            max: gaps.max(),
        }
    }
}

/// What one stream did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamSummary {
    /// The name given by the user, or its number.
    pub name: String,
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
    /// Damaged packets; `null` where the damage leaves the stream unknown.
    pub corrupt: Option<u64>,
    /// Packets that came more than the drain time after they were sent.
    pub late: u64,
    /// Latency from the real departure, in ns.
    pub latency_ns: Percentiles,
    /// Interarrival jitter (RFC 3550, section 6.4.1), in ns.
    pub jitter_ns: Option<f64>,
    /// Mean rate accepted by the driver, in packets per second.
    pub rate_tx_pps: f64,
    /// Mean rate received, in packets per second.
    pub rate_rx_pps: f64,
    /// Flows asked for.
    pub flows_asked: u64,
    /// Flows of which at least one packet was accepted.
    pub flows_sent: u64,
}

/// The link of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkState {
    /// Whether the link was up when the run ended.
    pub up: bool,
    /// Speed in Mbit/s; `null` where the driver does not know one.
    pub speed_mbps: Option<u32>,
}

/// One port and its own counters over the run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PortSummary {
    /// The port as the user named it.
    pub uri: String,
    /// The driver's name.
    pub driver: String,
    /// The name the driver's framework gave it.
    pub name: String,
    /// The link.
    pub link: LinkState,
    /// Packets the port says it sent.
    pub tx_packets: u64,
    /// Packets the port says it received.
    pub rx_packets: u64,
    /// Packets the port dropped because its receive ring was full (imissed).
    pub rx_missed: u64,
    /// Packets the port dropped because the buffer pool was empty.
    pub rx_nombuf: u64,
    /// Packets the port received in error (ierrors).
    pub rx_errors: u64,
    /// Packets the port failed to send (oerrors).
    pub tx_errors: u64,
    /// Packets that the interface below threw away after the port had sent them.
    #[serde(skip_serializing_if = "is_zero")]
    pub tx_dropped: u64,
}

/// What came after the first results is left out where there is none.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// One queue, and its share of the packets of its port and direction.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueSummary {
    /// The port's number.
    pub port: u16,
    /// The queue's number.
    pub queue: u16,
    /// `rx` or `tx`.
    pub direction: String,
    /// The core that served it.
    pub core: u32,
    /// Packets through the queue.
    pub packets: u64,
    /// Part (0 to 1) of all packets of this port and direction.
    pub share: f64,
    /// Those of them that went no further, by place.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<String, u64>,
}

/// One worker thread.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerSummary {
    /// The core it was pinned to.
    pub core: u32,
    /// What it did: `send`, `receive`, `reflect`.
    pub roles: Vec<String>,
    /// Rounds of its loop.
    pub polls: u64,
    /// Part (0 to 1) of its rounds that moved a packet.
    pub busy_share: f64,
    /// Longest time between two rounds, in ns.
    pub poll_gap_ns_max: u64,
    /// 99.9th percentile of the time between two rounds, in ns.
    pub poll_gap_ns_p999: u64,
    /// Times between two rounds that were longer than `--pause`. Nothing where nobody counted them: in results up to
    /// November 2026, of a worker that died, and while a run goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stalls: Option<u64>,
    /// Those of them that found no room, and are not in `stalls.csv`.
    #[serde(skip_serializing_if = "is_zero")]
    pub stalls_dropped: u64,
    /// From the start of the process to the first packet that this worker moved, in ms. Up to a tick of the kernel's clock
    /// (10 ms) too long: it tells no finer when a process was started. Left out where the process was another program before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_packet_ms: Option<f64>,
}

/// The buffer pool, counted before and after.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolSummary {
    /// Its name.
    pub name: String,
    /// Buffers in all.
    pub size: u64,
    /// Buffers out of the pool before the run: those that a driver keeps in its rings for ever.
    pub in_use_at_start: u64,
    /// Buffers out of the pool after the queues were closed.
    pub in_use_at_end: u64,
    /// Buffers that did not come back, and that no driver is known to keep.
    pub leaked: u64,
}

/// The clock the times were taken with.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockSummary {
    /// Its source, such as `tsc`.
    pub source: String,
    /// Calibrated frequency in Hz.
    pub hz: f64,
    /// Uncertainty of the calibration in parts per million.
    pub uncertainty_ppm: f64,
    /// Whether it was checked to be invariant and the same on all cores in use.
    pub checked: bool,
}

/// A stall of a worker, which is longer than `--pause`; one row of `stalls.csv`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Stall {
    /// The core that stalled.
    pub core: u32,
    /// What the worker does there.
    pub role: String,
    /// When the stall ended, in ns since the start of the run.
    pub at_ns: u64,
    /// How long it took, in ns.
    pub gap_ns: u64,
    /// How long the receive ring can hold at the rate of the run, in ns; 0 where none loses packets: there is none, or senders wait.
    pub ring_holds_ns: u64,
    /// What had the core, where that was asked for (`--explain`).
    pub cause: Option<String>,
    /// Packets that the worker moved in this stall.
    pub moved: u64,
    /// Packets that it moved right after: what had waited.
    pub next: u64,
    /// Packets that the port missed meanwhile.
    pub lost: u64,
    /// The sequence numbers that were missing after it, `lane:first-last`, as far as they are known.
    pub sequences: String,
}

impl Stall {
    /// How much of it fell into the first `ns` of the run, ns.
    pub fn within(&self, ns: u64) -> u64 {
        let began = self.at_ns.saturating_sub(self.gap_ns);
        self.at_ns.min(ns).saturating_sub(began)
    }
}

/// Where the packets went that no receive ring had room for: `--explain`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Explanation {
    /// Packets that our ports missed while we watched them.
    pub missed: u64,
    /// Of these, packets missed while a receiver stalled.
    pub explained: u64,
    /// By cause; what cost most comes first.
    pub causes: Vec<StallCause>,
    /// What is not longer is no stall (`--pause`), ns.
    pub threshold_ns: u64,
    /// The ports' counters were read this often, ns: stalls closer together cannot be told apart by packets.
    pub granularity_ns: u64,
    /// Stalls that found no room, and are in none of these numbers.
    pub dropped: u64,
    /// Why stalls have no causes, if they have none.
    pub untraced: Option<String>,
    /// Events of the kernel that were lost at least.
    pub events_lost: u64,
    /// What else is not known of the causes; told among the notes of the run.
    #[serde(skip)]
    pub notes: Vec<Note>,
}

/// All stalls of one core with one cause.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StallCause {
    /// The cause in words.
    pub cause: String,
    /// The core.
    pub core: u32,
    /// How many stalls.
    pub pauses: u64,
    /// Of these, stalls in which packets were missed.
    pub costly: u64,
    /// All of their time, ns.
    pub total_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
    /// Packets missed.
    pub lost: u64,
}

/// One `--expect` and what was found.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExpectationResult {
    /// The expectation as written.
    pub text: String,
    /// The measured value in `unit`; `null` when there was nothing to measure it on.
    pub actual: Option<f64>,
    /// The unit of `actual`: `ratio`, `packets`, `ns` or `pps`.
    pub unit: String,
    /// Whether it holds; false when `actual` is null.
    pub met: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_counts_as_far_as_it_was_in_the_beginning() {
        let within = |at_ns, gap_ns| {
            let stall = Stall {
                at_ns,
                gap_ns,
                ..Stall::default()
            };
            stall.within(1000)
        };
        assert_eq!((within(300, 200), within(1100, 200)), (200, 100));
        assert_eq!((within(100, 200), within(2000, 200)), (100, 0));
    }
}
