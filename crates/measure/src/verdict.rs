//! The verdict: whether a run's numbers may be believed, and if not, why.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::imbalance::Imbalance;
use crate::note::Note;
use crate::place::HOLD_NS;
use crate::result::{PoolSummary, Stall};
use crate::shortfall::{Hindrance, Shortfall};
use crate::units::{format_count, format_duration, format_rate};

/// Whether the numbers may be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Validity {
    /// They may.
    Valid,
    /// They may not: see the reasons.
    #[default]
    Invalid,
}

impl Validity {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Invalid => "invalid",
        }
    }
}

/// Offered may stay below asked by this part of it (0.1 %).
pub const OFFERED_TOLERANCE: f64 = 1e-3;

/// A clock less certain than this could itself hide a rate error of the size we judge.
const CLOCK_UNCERTAINTY_PPM_MAX: f64 = 100.0;

/// Which packets a run has to move to have measured anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// Sends and receives back.
    #[default]
    Send,
    /// Sends only; nothing comes back.
    SendOnly,
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
    /// Ports whose counters could not be read.
    pub unread: Vec<String>,
    /// Stalls of receivers; those shorter than their ring holds are ignored.
    pub stalls: Vec<Stall>,
    /// The longest stall of a receiver before which a far side waits for a place.
    pub waited_for: Option<Stall>,
    /// Packets that came later than they were waited for, and what that says of our workers.
    pub late: Late,
    /// Uncertainty of the clock in parts per million.
    pub clock_uncertainty_ppm: f64,
    /// What a check of the clock found, one sentence each.
    pub clock_problems: Vec<String>,
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
    /// Packets of it that were due before they had been read, and for how long in all, ns.
    pub starved: (u64, u64),
    /// Whether that somebody had told us his address, so that he was there to return them.
    pub is_answered: bool,
    /// All probes of the run that came, copies included.
    pub probes: u64,
}

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
    #[error("offered {} of {} asked ({:.3} %): {}", format_rate(*offered_pps), format_rate(*asked_pps), 100.0 * offered_pps / asked_pps, by.words(*lasted_ns))]
    Underoffered {
        /// Asked rate in packets per second.
        asked_pps: f64,
        /// Offered rate in packets per second.
        offered_pps: f64,
        /// Who kept it from offering more.
        by: Shortfall,
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
    #[error("the file is too slow: {} packets were due before they had been read, {} in all; put it on a faster disk or into memory (/dev/shm), give --buffer more, or lower --rate", format_count(*packets), format_duration(*ns))]
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
        Role::Send | Role::SendOnly => "nothing was received",
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
    Self::CountersUnread(_) => "counters_unread"
    Self::ReceiverStalled { .. } => "receiver_stalled"
    Self::LateByStall(_) => "late_by_stall"
    Self::GivenUpByStall { .. } => "given_up_by_stall"
    Self::ClockBad(_) => "clock_bad"
    Self::FileShort { .. } => "file_short"
    Self::PerhapsCopies(_) => "perhaps_copies"
    Self::Contradicted(_) => "contradicted"
    Self::HeardEachOther(_) => "heard_each_other"
    Self::PoolLeak { .. } => "pool_leak"
    Self::InputBroken(_) => "input_broken"
    Self::FileSlow { .. } => "file_slow"
    Self::WorkerDied { .. } => "worker_died"
}

/// The judgement of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Valid, exactly when `reasons` is empty.
    pub validity: Validity,
    /// Everything that speaks against the numbers.
    pub reasons: Vec<Reason>,
}

impl Verdict {
    /// Judges the evidence; a pure function.
    pub fn of(evidence: &Evidence) -> Verdict {
        let mut reasons = Vec::new();
        reasons.extend(
            evidence
                .dead_workers
                .iter()
                .map(|(worker, detail)| Reason::WorkerDied {
                    worker: worker.clone(),
                    detail: detail.clone(),
                }),
        );
        reasons.extend(evidence.imbalances.iter().cloned().map(Reason::Unbalanced));
        reasons.extend(movement(evidence));
        reasons.extend(evidence.broken_input.clone().map(Reason::InputBroken));
        let (packets, ns) = evidence.starved;
        reasons.extend((packets > 0).then_some(Reason::FileSlow { packets, ns }));
        reasons.extend(underoffered(evidence));
        reasons.extend(evidence.link_losses.iter().cloned().map(Reason::LinkLost));
        reasons.extend(evidence.removed.iter().cloned().map(Reason::PortRemoved));
        reasons.extend(evidence.too_short.iter().cloned().map(Reason::MtuLowered));
        reasons.extend(evidence.unread.iter().cloned().map(Reason::CountersUnread));
        reasons.extend(stalls(evidence));
        reasons.extend(late(evidence.late));
        reasons.extend(given_up(evidence));
        let short = evidence.short_files.iter();
        reasons.extend(short.map(|(path, missing)| Reason::FileShort {
            path: path.clone(),
            missing: *missing,
        }));
        let copies = Some(evidence.perhaps_copies).filter(|count| *count > 0);
        reasons.extend(copies.map(Reason::PerhapsCopies));
        let contradictions = Some(evidence.contradictions).filter(|count| *count > 0);
        reasons.extend(contradictions.map(Reason::Contradicted));
        // All of them, where nobody was there to return them: two of our ports are the ends of a path that only forwards.
        let is_path = evidence.as_sent == evidence.probes && !evidence.is_answered;
        let heard = Some(evidence.as_sent).filter(|heard| *heard > 0 && !is_path);
        reasons.extend(heard.map(Reason::HeardEachOther));
        reasons.extend(clock(evidence));
        reasons.extend(leaks(evidence));
        let validity = if reasons.is_empty() {
            Validity::Valid
        } else {
            Validity::Invalid
        };
        Verdict { validity, reasons }
    }

    /// The reasons as they stand in results.
    pub fn notes(&self) -> Vec<Note> {
        let note = |reason: &Reason| Note::new(reason.code(), reason.to_string());
        self.reasons.iter().map(note).collect()
    }
}

/// Whether anything moved at all.
fn movement(evidence: &Evidence) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if evidence.ports == 0 {
        reasons.push(Reason::NoPorts);
    }
    let sends = matches!(evidence.role, Role::Send | Role::SendOnly);
    if evidence.sent == 0 && sends {
        reasons.push(Reason::NothingSent);
    }
    if evidence.received == 0 && evidence.role != Role::SendOnly {
        reasons.push(Reason::NothingReceived(evidence.role));
    }
    reasons
}

/// Whether less was offered than asked, by the schedule's own count and, independently of it, by the clock.
fn underoffered(evidence: &Evidence) -> Option<Reason> {
    let asked_pps = evidence.asked_pps?;
    let seconds = evidence.sending_ns as f64 / 1e9;
    let by_clock = asked_pps * seconds - evidence.senders as f64;
    let due = by_clock.max(evidence.intended as f64);
    let sent = evidence.sent as f64;
    // One packet is the grain: a run of ten packets is not short by being nine and a half long.
    if evidence.sent == 0 || sent >= due * (1.0 - OFFERED_TOLERANCE) || due - sent < 1.0 {
        return None;
    }
    let (by, lasted_ns) = evidence.hindrance.blame(((due - sent) / asked_pps * 1e9) as u64);
    Some(Reason::Underoffered {
        asked_pps,
        offered_pps: asked_pps * sent / due,
        by,
        lasted_ns,
    })
}

/// The longest stall of each core that outlasted its ring, when packets are missing that it could have cost.
fn stalls(evidence: &Evidence) -> Vec<Reason> {
    let missing = evidence.unexplained.saturating_add(evidence.rx_missed);
    // What the ring of a reflector, a capture or a forwarder missed is in its account: its own numbers are as good.
    if missing == 0 || matches!(evidence.role, Role::Reflect | Role::Capture | Role::Forward) {
        return Vec::new();
    }
    let mut worst: Vec<&Stall> = Vec::new();
    for stall in evidence
        .stalls
        .iter()
        .filter(|stall| stall.ring_holds_ns > 0 && stall.gap_ns > stall.ring_holds_ns)
    {
        match worst.iter_mut().find(|known| known.core == stall.core) {
            Some(known) if known.gap_ns >= stall.gap_ns => {}
            Some(known) => *known = stall,
            None => worst.push(stall),
        }
    }
    worst
        .into_iter()
        .map(|stall| Reason::ReceiverStalled {
            stall: stall.clone(),
            missing,
        })
        .collect()
}

/// Whether a far side that gave packets up may have waited for a receiver of ours.
fn given_up(evidence: &Evidence) -> Option<Reason> {
    let outlasts = |stall: &&Stall| evidence.far_gave_up > 0 && stall.gap_ns > HOLD_NS;
    let stall = evidence.waited_for.as_ref().filter(outlasts)?;
    Some(Reason::GivenUpByStall {
        stall: stall.clone(),
        given_up: evidence.far_gave_up,
    })
}

/// Whether packets that were late may have waited for a worker of ours, wherever: no ring has to overflow for that, and
/// nobody counts it.
fn late(late: Late) -> Option<Reason> {
    let is_ours = late.gap_ns.saturating_add(late.usual_ns) > late.drain_ns;
    (late.packets > 0 && is_ours).then_some(Reason::LateByStall(late))
}

/// What is wrong with the clock.
fn clock(evidence: &Evidence) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = evidence
        .clock_problems
        .iter()
        .cloned()
        .map(Reason::ClockBad)
        .collect();
    let ppm = evidence.clock_uncertainty_ppm;
    if ppm.is_nan() || ppm > CLOCK_UNCERTAINTY_PPM_MAX {
        reasons.push(Reason::ClockBad(format!(
            "its calibration is uncertain by {ppm:.0} ppm, more than {CLOCK_UNCERTAINTY_PPM_MAX:.0} ppm"
        )));
    }
    reasons
}

/// Pools that are not whole again.
fn leaks(evidence: &Evidence) -> impl Iterator<Item = Reason> + '_ {
    evidence
        .pools
        .iter()
        .filter(|(pool, _)| pool.leaked > 0)
        .map(|(pool, place)| Reason::PoolLeak {
            pool: pool.name.clone(),
            leaked: pool.leaked,
            place: place.clone(),
        })
}
