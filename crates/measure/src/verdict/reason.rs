//! Why a run is invalid: codes for programs, sentences for people.

use thiserror::Error;

use super::{Late, LinkLoss, Role, TooShort, Unserved};
use crate::imbalance::Imbalance;
use crate::place::HOLD_NS;
use crate::result::Stall;
use crate::shortfall::Shortfall;
use crate::units::{format_count, format_duration, format_rate};

/// Why a run is invalid.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Reason {
    /// The ledger does not balance.
    #[error("the ledger does not balance: {0}")]
    Unbalanced(Imbalance),
    /// No packet was accepted by a driver.
    #[error("nothing was sent")]
    NothingSent,
    /// No packet came (back).
    #[error("{}", silence(*.0))]
    NothingReceived(Role),
    /// There was no port.
    #[error("no port was in use")]
    NoPorts,
    /// Less was offered than asked.
    #[error("offered {} of {} asked ({:.3} %): {}", format_rate(*offered_pps), format_rate(*asked_pps), 100.0 * offered_pps / asked_pps, by.words(*role, *lasted_ns))]
    Underoffered {
        /// Asked rate in packets per second.
        asked_pps: f64,
        /// Offered rate in packets per second.
        offered_pps: f64,
        /// Who kept it from offering more.
        by: Shortfall,
        /// What the run was to do.
        role: Role,
        /// For how long, in ns.
        lasted_ns: u64,
    },
    /// A port lost its link.
    #[error("port {} lost its link {}, {}", .0.port, when(.0), down(.0))]
    LinkLost(LinkLoss),
    /// The interface below a port was removed.
    #[error("port {0} lost its link: the interface was removed")]
    PortRemoved(String),
    /// The MTU of the interface below a port was lowered.
    #[error("the MTU of port {} was {} in the run, and its longest frames need {}: what was longer was thrown away, and counts as sent", .0.port, .0.mtu, .0.needed)]
    MtuLowered(TooShort),
    /// The other end of a port seems to have fewer queues.
    #[error("nothing came back of {} packets that port {} sent on {} of its queues, and of its others something did: its other end may have fewer; give both the same queues=N", format_count(.0.packets), .0.port, .0.queues)]
    QueueUnserved(Unserved),
    /// What a port lost is not known.
    #[error("the counters of port {0} could not be read: what it lost is not known")]
    CountersUnread(String),
    /// A receiver stalled for longer than its ring holds while packets went missing.
    #[error("the receiver on core {} stalled for {}, its ring holds {}: {} missing packets may be its own", stall.core, format_duration(stall.gap_ns), format_duration(stall.ring_holds_ns), format_count(*missing))]
    ReceiverStalled {
        /// The longest stall on this core.
        stall: Stall,
        /// Packets unexplained or missed by the ring.
        missing: u64,
    },
    /// A receiver stalled for longer than a far side waits, which gave packets up.
    #[error("the receiver on core {} stalled for {}, and a far side that finds its ring full waits {}: the {} packets that it gave up may be our own", stall.core, format_duration(stall.gap_ns), format_duration(HOLD_NS), format_count(*given_up))]
    GivenUpByStall {
        /// The longest one.
        stall: Stall,
        /// What the far side says that it gave up.
        given_up: u64,
    },
    /// Packets were late, and a worker did not poll for long enough to have made them so.
    #[error("{} packets came later than --drain ({}), and the worker on core {} did not poll for {}: they may have waited for it; give --drain more time", format_count(.0.packets), format_duration(.0.drain_ns), .0.core, format_duration(.0.gap_ns))]
    LateByStall(Late),
    /// Workers that were kept from their cores were waited for no longer, and packets are missing.
    #[error("while the last packets were waited for, not all workers polled for {}: {} missing packets may lie with them; give them cores of their own (--cores), or find out who had theirs with --explain", format_duration(*ns), format_count(*missing))]
    WorkersAway {
        /// For how long, ns.
        ns: u64,
        /// Packets that nothing else explains.
        missing: u64,
    },
    /// The clock cannot be trusted.
    #[error("the clock is not good: {0}")]
    ClockBad(String),
    /// A file is shorter than what was written to it.
    #[error(
        "{path} lacks {missing} bytes of what was written to it: was it removed or cut off, or is the disk full or failing?"
    )]
    FileShort {
        /// The file.
        path: String,
        /// Bytes that are not in it.
        missing: u64,
    },
    /// What another run's taps saw last is not known.
    #[error("the run of process {0} was killed, or did not answer: what its taps saw last is not known")]
    TapsUnended(u32),
    /// Copies may have been taken for packets.
    #[error("{} received packets may be copies of others: the receive queues that saw one sequence were too far apart to compare", format_count(*.0))]
    PerhapsCopies(u64),
    /// Probes of another run were taken for this one's.
    #[error("{} times a sequence number contradicted the time at which it was sent: a run of the same number is on the link, or damage that --verify none does not look for; run again", format_count(*.0))]
    Contradicted(u64),
    /// The ports of the run heard each other, beside what the far side returned.
    #[error("{} probes came as they were sent to another address: ports of this run hear each other, and what one hears of another says nothing of the far side; put them on links of their own", format_count(*.0))]
    HeardEachOther(u64),
    /// Buffers did not come back.
    #[error("pool {pool} leaked {leaked} buffers{}", place.as_ref().map(|place| format!(", last seen: {place}")).unwrap_or_default())]
    PoolLeak {
        /// The pool.
        pool: String,
        /// Buffers that did not come back.
        leaked: u64,
        /// Where they were last seen.
        place: Option<String>,
    },
    /// A capture could not be read to its end.
    #[error("{0}")]
    InputBroken(String),
    /// A capture was read more slowly than it was to be sent.
    #[error("the file is too slow: {}, {} in all; put it on a faster disk or into memory (/dev/shm), give --buffer more, or lower --rate", unread(*packets), format_duration(*ns))]
    FileSlow {
        /// Packets that left late because of it.
        packets: u64,
        /// How long there was nothing to send, in ns.
        ns: u64,
    },
    /// A worker ended by itself.
    #[error("worker {worker} died: {detail}")]
    WorkerDied {
        /// The worker.
        worker: String,
        /// How it ended.
        detail: String,
    },
}

/// That nothing came, and what a reflector may look for.
fn silence(role: Role) -> &'static str {
    match role {
        Role::Reflect => "no packet was received: is the sender running, and does it reach this port?",
        Role::Capture | Role::Forward => "no packet was received: is anything sent to these ports?",
        Role::Send | Role::SendOnly | Role::Replay => "nothing was received",
    }
}

/// What a file did not give in time; none that came was late where it gave nothing to the end.
fn unread(packets: u64) -> String {
    match packets {
        0 => "it gave nothing more while packets were due".to_owned(),
        packets => format!(
            "{} packets were due before they had been read",
            format_count(packets)
        ),
    }
}

/// When a link was lost, in words.
fn when(loss: &LinkLoss) -> String {
    let at = format_duration(loss.at_ns);
    match loss.more {
        0 => format!("{at} after the start"),
        more => format!(
            "{} times from {at} after the start on",
            format_count(more.saturating_add(1))
        ),
    }
}

/// How long a link was down, in words.
fn down(loss: &LinkLoss) -> String {
    match loss.down_ns {
        Some(ns) if loss.more > 0 => format!("for {} in all", format_duration(ns)),
        Some(ns) => format!("for {}", format_duration(ns)),
        None => "until the end".to_owned(),
    }
}

macro_rules! codes {
    ($($kind:pat => $code:literal)*) => {
        impl Reason {
            /// A short fixed name of the kind of reason.
            pub fn code(&self) -> &'static str {
                match self {
                    Self::Underoffered { by, .. } => by.code(),
                    $($kind => $code,)*
                }
            }

            /// All that there are.
            pub fn codes() -> impl Iterator<Item = &'static str> {
                [$($code),*].into_iter().chain(Shortfall::ALL.map(Shortfall::code))
            }
        }
    };
}

codes! {
    Self::Unbalanced(_) => "unbalanced"
    Self::NothingSent => "nothing_sent"
    Self::NothingReceived(_) => "nothing_received"
    Self::NoPorts => "no_ports"
    Self::LinkLost(_) => "link_lost"
    Self::PortRemoved(_) => "port_removed"
    Self::MtuLowered(_) => "mtu_lowered"
    Self::QueueUnserved(_) => "queue_unserved"
    Self::CountersUnread(_) => "counters_unread"
    Self::ReceiverStalled { .. } => "receiver_stalled"
    Self::LateByStall(_) => "late_by_stall"
    Self::GivenUpByStall { .. } => "given_up_by_stall"
    Self::WorkersAway { .. } => "workers_away"
    Self::ClockBad(_) => "clock_bad"
    Self::FileShort { .. } => "file_short"
    Self::TapsUnended(_) => "tap_not_ended"
    Self::PerhapsCopies(_) => "perhaps_copies"
    Self::Contradicted(_) => "contradicted"
    Self::HeardEachOther(_) => "heard_each_other"
    Self::PoolLeak { .. } => "pool_leak"
    Self::InputBroken(_) => "input_broken"
    Self::FileSlow { .. } => "file_slow"
    Self::WorkerDied { .. } => "worker_died"
}
