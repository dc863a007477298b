//! From a run's summary to a trial: whose every lost packet was, and whether the numbers may be believed.

use std::fmt::Display;

use super::trial::{Ask, Extent, Losses, Trial};
use crate::note::Note;
use crate::place::{LATE, Owner, Place, TX_FULL, of_reflector};
use crate::result::Percentiles;
use crate::shortfall::Shortfall;
use crate::summary::Summary;

/// Reasons of an invalid run that are outcomes of a trial: the limit was ours, or everything was lost.
const OUTCOMES: [&str; 8] = [
    "underoffered",
    "sender_stalled",
    "port_full",
    "receiver_stalled",
    "late_by_stall",
    "given_up_by_stall",
    "nothing_sent",
    "nothing_received",
];

/// Why a run is no trial at all, whatever it lost: empty where its numbers may be believed.
pub fn disbelieved(summary: &Summary) -> Vec<Note> {
    let reasons = summary.reasons.iter();
    let other = reasons.filter(|reason| !OUTCOMES.contains(&&*reason.code));
    other.cloned().collect()
}

/// A burst with a gap in it of more than this part of it, and of more packets of a queue than its worker sends at once on a
/// bad day: the path worked off meanwhile what the burst is to find out.
const SPLIT: f64 = 0.01;
const SPLIT_PACKETS: f64 = 256.0;

impl Trial {
    /// The trial that `ask` became.
    pub fn of(ask: Ask, summary: &Summary) -> Trial {
        let has = |name: &str| summary.reasons.iter().any(|reason| reason.code == name);
        // The schedule's own count misses what a sender that came late never got to, and that it went on after the end.
        let short = Shortfall::ALL.into_iter().find(|short| has(short.code()));
        let due = if short.is_some() || has("nothing_sent") {
            let lasted = match ask.extent {
                Extent::DurationNs(_) => (ask.rate_pps * summary.duration_s) as u64,
                Extent::Packets(_) => 0,
            };
            summary.ledger.intended.max(ask.packets()).max(lasted)
        } else {
            summary.ledger.intended
        };
        Trial {
            ask,
            due,
            short,
            offered: summary.sent,
            lost: losses(summary, has),
            bunches: summary.bunches.clone(),
            latency_ns: summary.latency_ns,
            invalid: disbelieved(summary),
        }
    }

    /// The same trial, as none of our sender where that sent its burst in several.
    #[must_use]
    pub fn unless_split(mut self, summary: &Summary) -> Trial {
        // Of one queue, of which the others do not know.
        let (Extent::Packets(packets), Some(gap_ns)) = (self.ask.extent, summary.gap_ns.asked) else {
            return self;
        };
        let queues = (gap_ns * self.ask.rate_pps / 1e9).max(1.0);
        let longest = summary.gap_ns.max.unwrap_or(0) as f64 / gap_ns;
        if longest > (packets as f64 / queues * SPLIT).max(SPLIT_PACKETS) {
            self.short = self.short.or(Some(Shortfall::SenderStalled));
        }
        self
    }

    /// The trial that `ask` would have become, had its process not been ended before it could say anything.
    pub fn killed(ask: Ask, signal: impl Display) -> Trial {
        Trial {
            ask,
            due: ask.packets(),
            short: None,
            offered: 0,
            lost: Losses::default(),
            bunches: Vec::new(),
            latency_ns: Percentiles::default(),
            invalid: vec![Note::new(
                "killed",
                format!(
                    "the trial's process was ended by {signal}; if nobody did that, look for \"Out of memory\" in the output of dmesg"
                ),
            )],
        }
    }
}

/// The ledger's places, by whose they are.
fn losses(summary: &Summary, has: impl Fn(&str) -> bool) -> Losses {
    let mut losses = Losses::default();
    let receiver_stalled = has("receiver_stalled");
    let gave_up = of_reflector(TX_FULL);
    for (name, &count) in &summary.ledger.lost_at {
        let whose = match (Place::named(name).owner, name.as_str()) {
            // They may have come while it stood still.
            (_, LATE) if receiver_stalled || has("late_by_stall") => &mut losses.receiver,
            // It found our ring full.
            (_, name) if name == gave_up && has("given_up_by_stall") => &mut losses.receiver,
            (Owner::Receiver, _) => &mut losses.receiver,
            (Owner::Sender, _) => &mut losses.sender,
            (Owner::FarSide, _) => &mut losses.reflector,
            (Owner::Path | Owner::Purpose, _) => &mut losses.path,
        };
        *whose = whose.saturating_add(count);
    }
    // What nobody counted was lost on the way, unless our receiver stood still meanwhile: then it may have been that.
    let open = if receiver_stalled {
        &mut losses.receiver
    } else {
        &mut losses.path
    };
    *open = open.saturating_add(summary.ledger.unexplained);
    losses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Ledger;
    use crate::search::Limit;

    const ASK: Ask = Ask {
        rate_pps: 1000.0,
        extent: Extent::DurationNs(1_000_000_000),
    };

    fn summary(
        intended: u64,
        sent: u64,
        lost: &[(&str, u64)],
        unexplained: u64,
        reasons: &[&'static str],
    ) -> Summary {
        let lost_at = lost.iter().map(|(place, count)| ((*place).to_owned(), *count));
        Summary {
            sent,
            ledger: Ledger {
                intended,
                accepted: sent,
                lost_at: lost_at.collect(),
                unexplained,
                ..Ledger::default()
            },
            reasons: reasons
                .iter()
                .map(|code| Note::new(code, format!("sentence of {code}")))
                .collect(),
            ..Summary::default()
        }
    }

    #[test]
    fn a_sender_that_went_on_after_its_end_offered_less() {
        let mut summary = summary(1000, 1000, &[], 0, &["underoffered"]);
        summary.duration_s = 1.25;
        let trial = Trial::of(ASK, &summary);
        assert_eq!(
            (trial.due, trial.offered, trial.is_offered()),
            (1250, 1000, false)
        );
        assert_eq!(trial.limit(0.0), Some(Limit::Sender));
        assert!((trial.forwarded_pps() - 800.0).abs() < 1e-9);
    }

    #[test]
    fn a_burst_with_a_gap_in_it_is_none() {
        let burst = |packets, queues: u64, gap_ns| {
            let mut summary = summary(packets, packets, &[], 0, &[]);
            (summary.gap_ns.asked, summary.gap_ns.max) = (Some(1e3 * queues as f64), Some(gap_ns));
            let ask = Ask {
                rate_pps: 1e6,
                extent: Extent::Packets(packets),
            };
            Trial::of(ask, &summary).unless_split(&summary).limit(0.0)
        };
        // At a packet a microsecond: what a worker sends at once is no gap, and a hundredth of a long burst is none.
        let ours = Some(Limit::Sender);
        assert_eq!((burst(1000, 1, 256_000), burst(1000, 1, 257_000)), (None, ours));
        assert_eq!(
            (burst(1000, 4, 1_024_000), burst(1000, 4, 1_028_000)),
            (None, ours)
        );
        assert_eq!(
            (burst(100_000, 1, 999_000), burst(100_000, 1, 1_001_000)),
            (None, ours)
        );
    }

    #[test]
    fn every_place_has_an_owner() {
        let places = [
            ("late", 1),
            ("corrupt", 2),
            ("fault_drop", 4),
            ("reflector_rx_missed", 8),
            ("rx_missed", 16),
            ("rx_nombuf", 32),
            ("tx_error", 64),
            ("rx_error", 128),
            ("tx_dropped", 512),
        ];
        let trial = Trial::of(ASK, &summary(1000, 1000, &places, 256, &[]));
        assert_eq!(
            (trial.lost.path, trial.lost.reflector),
            (1 + 2 + 4 + 128 + 256 + 512, 8)
        );
        assert_eq!((trial.lost.receiver, trial.lost.sender), (16 + 32, 64));
        assert_eq!(trial.lost.total(), 1023);
    }

    #[test]
    fn a_sender_that_fell_short_is_not_the_path() {
        let trial = Trial::of(ASK, &summary(900, 900, &[], 0, &["underoffered"]));
        assert_eq!((trial.due, trial.limit(0.0)), (1000, Some(Limit::Sender)));
        assert_eq!(trial.invalid.len(), 0);
    }

    #[test]
    fn a_port_that_took_no_more_is_not_our_sender() {
        let limit = |code| Trial::of(ASK, &summary(900, 900, &[], 0, &[code])).limit(0.0);
        assert_eq!(limit("port_full"), Some(Limit::Port));
        assert_eq!(limit("sender_stalled"), Some(Limit::Sender));
        for short in Shortfall::ALL {
            assert!(OUTCOMES.contains(&short.code()));
        }
    }

    #[test]
    fn a_receiver_that_stood_still_is_not_the_path() {
        let trial = Trial::of(ASK, &summary(1000, 1000, &[], 3, &["receiver_stalled"]));
        assert_eq!(trial.limit(0.0), Some(Limit::Receiver));
    }

    #[test]
    fn what_was_given_up_for_a_receiver_that_stood_still_is_not_the_reflectors() {
        let given_up = |reasons: &[&'static str]| {
            let lost = [("reflector_tx_full", 3)];
            Trial::of(ASK, &summary(1000, 1000, &lost, 0, reasons)).limit(0.0)
        };
        assert_eq!(given_up(&["given_up_by_stall"]), Some(Limit::Receiver));
        assert_eq!(given_up(&["receiver_stalled"]), Some(Limit::Reflector));
        assert_eq!(given_up(&[]), Some(Limit::Reflector));
    }

    #[test]
    fn what_came_late_for_a_receiver_that_stood_still_is_not_the_paths() {
        let late = |reasons: &[&'static str]| {
            Trial::of(ASK, &summary(1000, 1000, &[("late", 3)], 0, reasons)).limit(0.0)
        };
        assert_eq!(late(&["receiver_stalled"]), Some(Limit::Receiver));
        assert_eq!(late(&["late_by_stall"]), Some(Limit::Receiver));
        assert_eq!(late(&[]), Some(Limit::Path));
    }

    #[test]
    fn what_only_the_path_lost_is_the_paths() {
        let trial = Trial::of(ASK, &summary(900, 900, &[("rx_missed", 9)], 9, &["underoffered"]));
        assert_eq!(trial.limit(0.0), Some(Limit::Path));
        assert_eq!(trial.limit(0.02), Some(Limit::Sender));
    }

    #[test]
    fn an_unbalanced_ledger_is_believed_by_nobody() {
        let trial = Trial::of(ASK, &summary(1000, 1000, &[], 0, &["unbalanced", "underoffered"]));
        assert_eq!(trial.invalid, [Note::new("unbalanced", "sentence of unbalanced")]);
    }
}
