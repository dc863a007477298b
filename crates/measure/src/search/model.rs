//! A path on paper: a rate limit behind a buffer, random loss, and a sender and a receiver with limits of their own.
//!
//! Estimates run searches over it, and tests know the truth about it.

use super::result::Limit;
use super::trial::{Ask, Losses, Trial};

/// What the path and its ends can do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelPath {
    /// Packets per second that get through.
    pub limit_pps: f64,
    /// Packets that wait while more come.
    pub buffer: f64,
    /// What is left of the limit (0 to 1) once more is offered than it: many paths do worse under too much load.
    pub under_overload: f64,
    /// The part (0 to 1) of all packets that is lost at random.
    pub random_loss: f64,
    /// Packets per second that the sender can offer.
    pub sender_pps: f64,
    /// Packets per second that the receiver can take.
    pub receiver_pps: f64,
}

impl ModelPath {
    /// A path with one limit and nothing else.
    pub fn limited(limit_pps: f64) -> ModelPath {
        ModelPath {
            limit_pps,
            buffer: 0.0,
            under_overload: 1.0,
            random_loss: 0.0,
            sender_pps: f64::INFINITY,
            receiver_pps: f64::INFINITY,
        }
    }

    /// The outcome of a trial. `dice` gives numbers from 0 to 1, and is asked only where loss is random.
    pub fn run(&self, ask: Ask, dice: &mut dyn FnMut() -> f64) -> Trial {
        let (due, seconds) = (ask.packets(), ask.seconds());
        let offered = due.min((self.sender_pps * seconds) as u64);
        let mut over = offered.saturating_sub(packets(self.limit_pps * seconds + self.buffer));
        if over > 0 {
            let left = self.limit_pps * self.under_overload;
            over = offered.saturating_sub(packets(left * seconds + self.buffer));
        }
        let random = random_losses(offered - over, self.random_loss, dice);
        let arrived = offered - over - random;
        let receiver = arrived.saturating_sub(packets(self.receiver_pps * seconds));
        Trial {
            ask,
            due,
            short: None,
            offered,
            lost: Losses {
                path: over + random,
                receiver,
                ..Losses::default()
            },
            bunches: Vec::new(),
            latency_ns: crate::Percentiles::default(),
            invalid: Vec::new(),
        }
    }

    /// Who is the limit of it, and at which rate, in trials so long that the buffer does not matter.
    pub fn truth(&self) -> (f64, Limit) {
        let limits = [
            (self.limit_pps, Limit::Path),
            (self.sender_pps, Limit::Sender),
            (self.receiver_pps, Limit::Receiver),
        ];
        let smaller = |one: (f64, Limit), other: (f64, Limit)| if other.0 < one.0 { other } else { one };
        limits.into_iter().fold((f64::INFINITY, Limit::Path), smaller)
    }
}

/// Whole packets within what a trial's rounding makes of a rate.
fn packets(number: f64) -> u64 {
    (number + 1e-6) as u64
}

/// How many of `packets` are lost, each with the same chance: exact where few are, near enough where many are.
fn random_losses(packets: u64, chance: f64, dice: &mut dyn FnMut() -> f64) -> u64 {
    if chance <= 0.0 || packets == 0 {
        return 0;
    }
    let expected = packets as f64 * chance;
    if expected > 50.0 {
        // The sum of twelve dice is as good as a bell.
        let bell: f64 = (0..12).map(|_| dice()).sum::<f64>() - 6.0;
        let spread = (expected * (1.0 - chance)).sqrt();
        return ((expected + bell * spread).round().max(0.0) as u64).min(packets);
    }
    // Poisson by counting arrivals.
    let (floor, mut product, mut lost) = ((-expected).exp(), dice(), 0);
    while product > floor && lost < packets {
        product *= dice();
        lost += 1;
    }
    lost
}
