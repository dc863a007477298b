//! What a verdict is drawn from.

use crate::imbalance::Imbalance;
use crate::result::{PoolSummary, Stall};
use crate::shortfall::Hindrance;

/// Which packets a run has to move to have measured anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// Sends and receives back.
    #[default]
    Send,
    /// Sends only; nothing comes back.
    SendOnly,
    /// Sends a capture; nothing comes back.
    Replay,
    /// Reflects what others send.
    Reflect,
    /// Takes what others send.
    Capture,
    /// Hands on what others send.
    Forward,
}

/// A time during which a port had no link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkLoss {
    /// The port as the user named it.
    pub port: String,
    /// When, in ns since the start of the run.
    pub at_ns: u64,
    /// For how long, all of them together; `None` when it was still down at the end.
    pub down_ns: Option<u64>,
    /// So many further losses, after the first, are told with it.
    pub more: u64,
}

/// Packets that came too late, and the longest time that a worker of ours did not poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Late {
    /// How many there were.
    pub packets: u64,
    /// Later than this after they were sent, in ns.
    pub drain_ns: u64,
    /// How long a packet usually took, in ns.
    pub usual_ns: u64,
    /// The core that was not polled for the longest time.
    pub core: u32,
    /// And for how long, in ns.
    pub gap_ns: u64,
}

/// An interface that threw long frames away while its port counted them as sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooShort {
    /// The port.
    pub port: String,
    /// The MTU that the longest frames needed.
    pub needed: u32,
    /// The MTU that it had for a while.
    pub mtu: u32,
}

/// Transmit queues of a port that nothing came back of, while something of its others did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unserved {
    /// The port.
    pub port: String,
    /// How many of its queues.
    pub queues: usize,
    /// Packets that they sent.
    pub packets: u64,
}

/// All the verdict is drawn from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    /// What the run was to do.
    pub role: Role,
    /// Broken identities of the ledger (see [`crate::Ledger::check`]).
    pub imbalances: Vec<Imbalance>,
    /// Ports in use.
    pub ports: usize,
    /// Packets accepted by the driver (for a reflector: returned).
    pub sent: u64,
    /// Packets received.
    pub received: u64,
    /// Packets that were due by the schedule.
    pub intended: u64,
    /// Lost packets no counter accounts for.
    pub unexplained: u64,
    /// Packets lost because a receive ring was full.
    pub rx_missed: u64,
    /// Packets that the far side gave up, as its transmit queue stayed full.
    pub far_gave_up: u64,
    /// The rate asked for; `None` at rate `max` and for a reflector.
    pub asked_pps: Option<f64>,
    /// Time from the start of the schedule to the end of sending, in ns.
    pub sending_ns: u64,
    /// Workers that sent: each may be one packet short by rounding.
    pub senders: usize,
    /// What kept them from sending.
    pub hindrance: Hindrance,
    /// Times without link.
    pub link_losses: Vec<LinkLoss>,
    /// Ports whose interface was removed.
    pub removed: Vec<String>,
    /// Ports whose interface had too small an MTU for a while.
    pub too_short: Vec<TooShort>,
    /// Ports with queues that their other end seems not to have.
    pub unserved: Vec<Unserved>,
    /// Ports whose counters could not be read.
    pub unread: Vec<String>,
    /// Stalls of receivers; those shorter than their ring holds are ignored.
    pub stalls: Vec<Stall>,
    /// The longest stall of a receiver before which a far side waits for a place.
    pub waited_for: Option<Stall>,
    /// How long workers had not polled when those that are kept from their cores were waited for no longer, ns; 0 where all
    /// were waited for.
    pub away_ns: u64,
    /// Packets that came later than they were waited for, and what that says of our workers.
    pub late: Late,
    /// Uncertainty of the clock in parts per million.
    pub clock_uncertainty_ppm: f64,
    /// What a check of the clock found, one sentence each.
    pub clock_problems: Vec<String>,
    /// The process of another run whose taps did not end.
    pub unended_taps: Option<u32>,
    /// Files that lack bytes that were written to them, and how many.
    pub short_files: Vec<(String, u64)>,
    /// The pools at the end, each with the places its lost buffers were last seen, where known.
    pub pools: Vec<(PoolSummary, Option<String>)>,
    /// Workers that ended before they were told to: name and how.
    pub dead_workers: Vec<(String, String)>,
    /// Received packets of which nobody can tell whether they are copies of others.
    pub perhaps_copies: u64,
    /// How often sequence numbers contradicted the times at which they were sent.
    pub contradictions: u64,
    /// Probes that came from the address of one of our own ports, as they were sent to somebody else, of all that came.
    pub as_sent: u64,
    /// Why a capture could not be read to its end.
    pub broken_input: Option<String>,
    /// Packets of it that were due before they had been read, and for how long in all that was so, ns; also of such that had not
    /// been read at the end, which nobody can count.
    pub starved: (u64, u64),
    /// Whether that somebody had told us his address, so that he was there to return them.
    pub is_answered: bool,
    /// All probes of the run that came, copies included.
    pub probes: u64,
}
