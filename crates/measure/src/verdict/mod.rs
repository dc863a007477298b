//! The verdict: whether a run's numbers may be believed, and if not, why.

mod evidence;
mod reason;

use serde::{Deserialize, Serialize};

pub use self::evidence::{Evidence, Late, LinkLoss, Role, TooShort, Unserved};
pub use self::reason::Reason;
use crate::note::Note;
use crate::place::HOLD_NS;
use crate::result::Stall;

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
        reasons.extend((packets > 0 || ns > 0).then_some(Reason::FileSlow { packets, ns }));
        reasons.extend(underoffered(evidence));
        reasons.extend(evidence.link_losses.iter().cloned().map(Reason::LinkLost));
        reasons.extend(evidence.removed.iter().cloned().map(Reason::PortRemoved));
        reasons.extend(evidence.too_short.iter().cloned().map(Reason::MtuLowered));
        reasons.extend(evidence.unserved.iter().cloned().map(Reason::QueueUnserved));
        reasons.extend(evidence.unread.iter().cloned().map(Reason::CountersUnread));
        reasons.extend(stalls(evidence));
        reasons.extend(late(evidence.late));
        reasons.extend(given_up(evidence));
        let (ns, missing) = (evidence.away_ns, evidence.unexplained);
        reasons.extend((ns > 0 && missing > 0).then_some(Reason::WorkersAway { ns, missing }));
        let short = evidence.short_files.iter();
        reasons.extend(short.map(|(path, missing)| Reason::FileShort {
            path: path.clone(),
            missing: *missing,
        }));
        reasons.extend(evidence.unended_taps.map(Reason::TapsUnended));
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
    let sends = matches!(evidence.role, Role::Send | Role::SendOnly | Role::Replay);
    if evidence.sent == 0 && sends {
        reasons.push(Reason::NothingSent);
    }
    if evidence.received == 0 && !matches!(evidence.role, Role::SendOnly | Role::Replay) {
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
        role: evidence.role,
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
