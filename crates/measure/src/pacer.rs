//! The absolute schedule: packet k is due at start + k / rate, whatever happened to the packets before it.

use crate::time::Ticks;

/// How fast to send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// As fast as the driver accepts.
    Max,
    /// Packets per second.
    Pps(f64),
}

/// What may be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Allowance {
    /// Packets to send now.
    pub count: usize,
    /// How much later than its due instant the first of them is, in ticks.
    pub lag_ticks: u64,
    /// Packets given up because more than the bound were due: they are `unsent`.
    pub abandoned: u64,
    /// Packets that were due, without those given up: more than `count` where there was no room for them. 0 without a
    /// schedule.
    pub backlog: u64,
}

/// Tells a sender how many packets are due.
///
/// The period is a fixed-point number of ticks with 64 fraction bits, taken from `hz / rate` without rounding in
/// between; after 10^12 packets an instant is off by less than 2^-20 ticks plus one tick of truncation.
#[derive(Debug, Clone)]
pub struct Pacer {
    start: Ticks,
    /// Ticks from one packet to the next, 64 fraction bits; 0 at [`Rate::Max`].
    period: u128,
    /// Packets in one tick, 64 fraction bits: an estimate of the inverse, corrected against `period`.
    packets_per_tick: u128,
    /// Packets to intend in all.
    limit: u64,
    /// Packets already given out or abandoned.
    taken: u64,
    abandoned: u64,
    /// The instant of packet `taken`: the one comparison of a poll with nothing to do.
    next_due: Ticks,
}

/// `numerator / denominator` with 64 fraction bits, rounded up by less than 2^-73 of it or 2^-64; saturating.
///
/// Both are taken as the exact rationals that an f64 is. Both must be finite and above 0.
fn ratio(numerator: f64, denominator: f64) -> u128 {
    let (top, top_exponent) = decompose(numerator);
    let (bottom, bottom_exponent) = decompose(denominator);
    let quotient = (u128::from(top) << 75).div_ceil(u128::from(bottom));
    let shift = top_exponent - bottom_exponent - 11;
    match u32::try_from(shift) {
        Ok(left) if left < quotient.leading_zeros() => quotient << left,
        Ok(_) => u128::MAX,
        // Up, so that a product that should be whole is not cut to the tick before.
        Err(_) => quotient
            .checked_shr(shift.unsigned_abs())
            .map_or(1, |cut| cut + 1),
    }
}

/// A finite, positive, normal f64 as mantissa * 2^exponent, the mantissa with 53 bits.
fn decompose(value: f64) -> (u64, i32) {
    let bits = value.max(f64::MIN_POSITIVE).to_bits();
    let mantissa = (bits & ((1 << 52) - 1)) | (1 << 52);
    (mantissa, ((bits >> 52) & 0x7ff) as i32 - 1075)
}

/// `whole * fixed`, cut to whole units; saturating.
#[inline]
fn scale(whole: u64, fixed: u128) -> u64 {
    let units = ((fixed >> 64) as u64).checked_mul(whole);
    let fraction = ((u128::from(whole) * u128::from(fixed as u64)) >> 64) as u64;
    units
        .and_then(|units| units.checked_add(fraction))
        .unwrap_or(u64::MAX)
}

impl Pacer {
    /// A schedule that starts at `start` on a TSC of `hz`; packet 0 is due at once.
    ///
    /// A rate that is not above 0 (or not a number) never has a packet due.
    pub fn new(rate: Rate, start: Ticks, hz: f64) -> Pacer {
        let mut pacer = Pacer {
            start,
            period: 0,
            packets_per_tick: 0,
            limit: u64::MAX,
            taken: 0,
            abandoned: 0,
            next_due: start,
        };
        match rate {
            Rate::Max => {}
            Rate::Pps(pps) if pps.is_finite() && pps > 0.0 && hz.is_finite() && hz > 0.0 => {
                pacer.period = ratio(hz, pps).max(1);
                pacer.packets_per_tick = u128::MAX / pacer.period;
            }
            Rate::Pps(_) => pacer.limit = 0,
        }
        pacer
    }

    /// The part of a port's schedule that queue number `queue` of `queues` sends: they take turns, so that together they send
    /// packet by packet and not in bursts of as many as there are queues.
    pub fn of_queue(rate: Rate, (queue, queues): (usize, usize), start: Ticks, hz: f64) -> Pacer {
        match rate {
            Rate::Max => Pacer::new(rate, start, hz),
            Rate::Pps(pps) => {
                let turn = Pacer::new(rate, start, hz).instant(queue as u64);
                Pacer::new(Rate::Pps(pps / queues as f64), turn, hz)
            }
        }
    }

    /// The same schedule, ending after exactly `packets`.
    #[must_use]
    pub fn with_limit(mut self, packets: u64) -> Pacer {
        self.limit = self.limit.min(packets);
        self
    }

    /// Whether there is a schedule at all (false at [`Rate::Max`]).
    #[inline]
    pub fn is_paced(&self) -> bool {
        self.period != 0
    }

    /// The due instant of packet `k`.
    #[inline]
    pub fn instant(&self, k: u64) -> Ticks {
        self.start.after(scale(k, self.period))
    }

    /// When the next packet is due; `None` once the limit is reached.
    pub fn next_due(&self) -> Option<Ticks> {
        (!self.is_done()).then_some(self.next_due)
    }

    /// How many packets are due in all by `now`; at [`Rate::Max`] everything is.
    pub fn due(&self, now: Ticks) -> u64 {
        if now < self.start {
            return 0;
        }
        if !self.is_paced() {
            return self.limit;
        }
        // Packet k is due if k * period is below the next tick; both factors are cut, so the estimate may be
        // short by two packets, and never by more.
        let mut due = scale(now.since(self.start).saturating_add(1), self.packets_per_tick);
        for _ in 0..3 {
            if due == u64::MAX || self.instant(due) > now {
                break;
            }
            due += 1;
        }
        while due > 0 && self.instant(due - 1) > now {
            due -= 1;
        }
        due.min(self.limit)
    }

    /// Takes up to `room` due packets; of a backlog above `backlog_bound` the oldest are abandoned.
    #[inline]
    pub fn take(&mut self, now: Ticks, room: usize, backlog_bound: u64) -> Allowance {
        if now < self.next_due || self.is_done() {
            return Allowance::default();
        }
        if self.is_paced() {
            return self.take_due(now, room, backlog_bound);
        }
        let count = (room as u64).min(self.limit - self.taken);
        self.taken += count;
        Allowance {
            count: count as usize,
            ..Allowance::default()
        }
    }

    /// The paced part of [`Pacer::take`], when at least one packet is due.
    #[inline]
    fn take_due(&mut self, now: Ticks, room: usize, backlog_bound: u64) -> Allowance {
        let backlog = self.due(now) - self.taken;
        let abandoned = backlog.saturating_sub(backlog_bound);
        let count = (room as u64).min(backlog - abandoned);
        let mut lag_ticks = 0;
        if count > 0 {
            lag_ticks = now.since(if abandoned == 0 {
                self.next_due
            } else {
                self.instant(self.taken + abandoned)
            });
        }
        if count + abandoned > 0 {
            self.abandoned += abandoned;
            self.taken += abandoned + count;
            self.next_due = self.instant(self.taken);
        }
        Allowance {
            count: count as usize,
            lag_ticks,
            abandoned,
            backlog: backlog - abandoned,
        }
    }

    /// Ends the schedule at `end`: packets due by then and not taken are abandoned. Returns how many.
    pub fn finish(&mut self, end: Ticks) -> u64 {
        let mut abandoned = 0;
        if self.is_paced() {
            abandoned = self.due(end).saturating_sub(self.taken);
            self.abandoned += abandoned;
            self.taken += abandoned;
        }
        self.limit = self.taken;
        abandoned
    }

    /// Whether the limit is reached.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.taken >= self.limit
    }

    /// Packets intended so far: given out by `take` or abandoned.
    pub fn intended(&self) -> u64 {
        self.taken
    }

    /// Packets abandoned so far.
    pub fn abandoned(&self) -> u64 {
        self.abandoned
    }
}
