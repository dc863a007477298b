//! What a capture came to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::balance::Balance;
use crate::note::Note;
use crate::result::{
    ClockSummary, ExpectationResult, Explanation, PoolSummary, PortSummary, QueueSummary, WorkerSummary,
};
use crate::summary::{exit_code, nothing_yet};
use crate::verdict::Validity;

/// Whoever takes packets out of the ring.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsumerSummary {
    /// Its name.
    pub name: String,
    /// Whether the ring keeps for it what it has not taken.
    pub lossless: bool,
    /// Packets that were in the ring since it came.
    pub offered: u64,
    /// Packets that it took.
    pub taken: u64,
    /// Packets that were overwritten, or could not be kept, before it took them, or that it could not take.
    pub lost: u64,
    /// Packets that it had not taken when it went away by itself, or that were not kept for it.
    pub left: u64,
    /// Most segments of the ring that it was behind.
    pub behind_max: u64,
    /// What it said of itself cannot be (a consumer in another process has a page of its own, and may write anything there):
    /// none of it stands here, and all that it was offered is `left`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub implausible: bool,
}

/// The files of a capture.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FileSummary {
    /// The newest one.
    pub path: String,
    /// How many were begun.
    pub files: u64,
    /// How many of them are there, the newest ones; 0 in results of earlier versions.
    pub kept: u64,
    /// The oldest of these.
    pub oldest: String,
    /// Packets in them, also in such as were removed since.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How often the disk refused.
    pub errors: u64,
    /// Files that were compressed, and their bytes then.
    #[serde(default)]
    pub compressed: u64,
    /// See `compressed`.
    #[serde(default)]
    pub compressed_bytes: u64,
}

/// The result of `capture`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CaptureSummary {
    /// Version of this format.
    pub version: u32,
    /// The subcommand, `capture`.
    pub command: String,
    /// The run directory.
    pub run: String,
    /// Whether the numbers may be believed.
    pub verdict: Validity,
    /// Why not; empty when valid.
    pub reasons: Vec<Note>,
    /// The outcome of every `--expect`.
    pub expectations: Vec<ExpectationResult>,
    /// The filter of what was captured, in the syntax of libpcap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// One flow of so many was captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled_one_in: Option<u64>,
    /// The clock that stamped the packets of each port: `tsc` is the processor's, read when a burst was taken, `file` that of the file which a `pcap` port reads.
    pub stamped_by: BTreeMap<String, String>,
    /// What the generator at the other end sent; with an embedded ring only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generated: Option<u64>,
    /// Frames received.
    pub received: u64,
    /// Bytes of these, without FCS.
    pub received_bytes: u64,
    /// Frames that were put into the ring.
    pub captured: u64,
    /// Those of `captured` that were put there after one with a later stamp.
    pub late: u64,
    /// Where every frame went that came to the ports.
    pub ledger: Balance,
    /// Whoever took packets out of the ring.
    pub consumers: Vec<ConsumerSummary>,
    /// The files; with `--to` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<FileSummary>,
    /// Mean rate received, in packets per second.
    pub rate_rx_pps: f64,
    /// How long it took, in seconds.
    pub duration_s: f64,
    /// Counters of the ports, as read.
    pub raw: BTreeMap<String, u64>,
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
    CaptureSummary, "capture":
    run verdict reasons expectations filter sampled_one_in stamped_by generated received received_bytes
    captured late ledger consumers files rate_rx_pps duration_s raw ports queues workers pool clock
    explanation notes
}

impl CaptureSummary {
    /// Frames that came to the ports, were wanted, and are in no ring.
    pub fn lost_before_ring(&self) -> u64 {
        self.ledger.lost()
    }

    /// These, and the packets of the ring that a consumer did not get, once for each that did not.
    pub fn lost(&self) -> u64 {
        let of_consumers = self.consumers.iter().map(|consumer| consumer.lost);
        of_consumers.fold(self.lost_before_ring(), u64::saturating_add)
    }

    /// Lost packets as a part (0 to 1) of those that came; `None` when nothing came.
    pub fn loss(&self) -> Option<f64> {
        self.ledger.share(self.lost())
    }

    /// The process exit code: 2 when it may not be believed; with expectations they decide, else whether anything was lost.
    pub fn exit_code(&self) -> u8 {
        exit_code(self.verdict, &self.expectations, self.lost() == 0)
    }
}
