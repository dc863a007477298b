//! What forwarding came to.

use serde::{Deserialize, Serialize};

use crate::balance::Balance;
use crate::filter::Judged;
use crate::flows::FlowsSummary;
use crate::note::Note;
use crate::result::{
    ClockSummary, ExpectationResult, Explanation, PoolSummary, PortSummary, QueueSummary, WorkerSummary,
    is_zero,
};
use crate::summary::{exit_code, nothing_yet};
use crate::verdict::Validity;

/// What came in by one port and left by the other.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WaySummary {
    /// The port that it came in by, as the user named it.
    pub from: String,
    /// The port that it left by.
    pub to: String,
    /// Frames received.
    pub received: u64,
    /// Their bytes, without FCS.
    pub received_bytes: u64,
    /// Frames that the other port sent, as the ledger has them (`left`); what its driver took stands at its queues.
    pub forwarded: u64,
    /// Frames addressed to the host that went there.
    #[serde(skip_serializing_if = "is_zero")]
    pub to_kernel: u64,
    /// Frames of the host's own that left by the other port; among those that came.
    #[serde(skip_serializing_if = "is_zero")]
    pub from_kernel: u64,
    /// Frames to several that were forwarded, and copied to the host.
    #[serde(skip_serializing_if = "is_zero")]
    pub copied: u64,
    /// The same, without a copy.
    #[serde(skip_serializing_if = "is_zero")]
    pub uncopied: u64,
    /// Where every frame went: what left is what the other port counted itself, where it does.
    pub ledger: Balance,
}

/// By which rules frames passed, and what these met.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RulesSummary {
    /// The rule file.
    pub file: String,
    /// How many sets were in force, one after the other.
    pub generation: u64,
    /// How often it was asked to read them again, whatever came of it.
    pub asked: u64,
    /// What all of them met.
    pub judged: Judged,
}

/// The result of `forward`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ForwardSummary {
    /// Version of this format.
    pub version: u32,
    /// The subcommand, `forward`.
    pub command: String,
    /// The run directory.
    pub run: String,
    /// Whether the numbers may be believed.
    pub verdict: Validity,
    /// Why not; empty when valid.
    pub reasons: Vec<Note>,
    /// The outcome of every `--expect`.
    pub expectations: Vec<ExpectationResult>,
    /// What became of MAC addresses: `io`, `mac` or `swap`.
    pub mode: String,
    /// Frames received.
    pub received: u64,
    /// Their bytes, without FCS.
    pub received_bytes: u64,
    /// Frames that the other port sent, of both ways together.
    pub forwarded: u64,
    /// Where every frame went, of both ways together.
    pub ledger: Balance,
    /// Each way.
    pub ways: Vec<WaySummary>,
    /// The rules, where there are some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<RulesSummary>,
    /// Who talked to whom; only with `--flows`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<FlowsSummary>,
    /// Mean rate received, in packets per second: without what waited when the run began, which is in `received`.
    pub rate_rx_pps: f64,
    /// Mean rate of `forwarded`, in packets per second.
    pub rate_tx_pps: f64,
    /// How long it took, in seconds.
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
    ForwardSummary, "forward":
    run verdict reasons expectations mode received received_bytes forwarded ledger ways rules flows
    rate_rx_pps rate_tx_pps duration_s ports queues workers pool clock explanation notes
}

impl ForwardSummary {
    /// Frames that came, were not denied, and did not leave.
    pub fn lost(&self) -> u64 {
        self.ledger.lost()
    }

    /// Lost frames as a part (0 to 1) of those that came; `None` when nothing came.
    pub fn loss(&self) -> Option<f64> {
        self.ledger.share(self.lost())
    }

    /// The process exit code: 2 when it may not be believed; with expectations they decide, else whether anything was lost. What
    /// a rule denies is no loss.
    pub fn exit_code(&self) -> u8 {
        exit_code(self.verdict, &self.expectations, self.lost() == 0)
    }
}
