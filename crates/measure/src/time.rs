//! The two kinds of time a run knows, and the calibrated conversion between them.

use serde::{Deserialize, Serialize};

/// An instant as the raw time stamp counter (TSC) shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ticks(pub u64);

/// An instant in nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Ticks {
    /// Ticks that passed since `earlier`; 0 when `earlier` is later (two cores may disagree by a few ticks).
    #[inline]
    pub fn since(self, earlier: Ticks) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The instant `ticks` later.
    #[inline]
    #[must_use]
    pub fn after(self, ticks: u64) -> Ticks {
        Ticks(self.0.saturating_add(ticks))
    }
}

impl Nanos {
    /// Nanoseconds that passed since `earlier`; 0 when `earlier` is later.
    #[inline]
    pub fn since(self, earlier: Nanos) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The instant `ns` nanoseconds later.
    #[inline]
    #[must_use]
    pub fn after(self, ns: u64) -> Nanos {
        Nanos(self.0.saturating_add(ns))
    }
}

/// Reads the low 48 bits of `value` as a signed number.
#[inline]
pub(crate) fn sign_extend_48(value: u64) -> i64 {
    signed(value << 16) >> 16
}

/// The same bits as a signed number.
#[inline]
fn signed(bits: u64) -> i64 {
    i64::from_ne_bytes(bits.to_ne_bytes())
}

/// Fraction bits of both multipliers: at 1 GHz and above a rounding of at most 2^-41 of the distance, below it 1 GHz / hz times that.
const SHIFT: u32 = 40;

/// Converts TSC ticks to `CLOCK_MONOTONIC` nanoseconds with one multiplication.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clock {
    tsc0: u64,
    ns0: u64,
    ns_per_tick: i64,
    ticks_per_ns: u64,
    hz: f64,
}

impl Clock {
    /// A clock on which `tsc0` ticks and `ns0` nanoseconds are the same instant and the TSC runs at `hz`.
    ///
    /// `hz` is held inside 1 kHz to 1 THz, so that a nonsensical calibration cannot overflow a conversion;
    /// judging the calibration is the job of the caller (and of the verdict).
    pub fn from_calibration(tsc0: u64, ns0: u64, hz: f64) -> Clock {
        let hz = if hz.is_finite() { hz.clamp(1e3, 1e12) } else { 1e9 };
        let scale = (1u64 << SHIFT) as f64;
        Clock {
            tsc0,
            ns0,
            ns_per_tick: (1e9 / hz * scale).round() as i64,
            ticks_per_ns: (hz / 1e9 * scale).round() as u64,
            hz,
        }
    }

    /// The calibrated frequency in Hz.
    pub fn hz(&self) -> f64 {
        self.hz
    }

    /// The monotonic time of a TSC instant; instants before the calibration are fine.
    #[inline]
    pub fn ns(&self, at: Ticks) -> Nanos {
        let ticks = signed(at.0.wrapping_sub(self.tsc0));
        let ns = (i128::from(ticks) * i128::from(self.ns_per_tick)) >> SHIFT;
        Nanos(self.ns0.wrapping_add_signed(ns as i64))
    }

    /// The TSC instant of a monotonic time.
    pub fn ticks(&self, at: Nanos) -> Ticks {
        let ns = signed(at.0.wrapping_sub(self.ns0));
        let ticks = (i128::from(ns) * i128::from(self.ticks_per_ns)) >> SHIFT;
        Ticks(self.tsc0.wrapping_add_signed(ticks as i64))
    }

    /// A length of time in ticks, from nanoseconds.
    #[inline]
    pub fn ticks_from_ns(&self, ns: u64) -> u64 {
        saturate((u128::from(ns) * u128::from(self.ticks_per_ns)) >> SHIFT)
    }

    /// A length of time in nanoseconds, from ticks.
    #[inline]
    pub fn ns_from_ticks(&self, ticks: u64) -> u64 {
        saturate((u128::from(ticks) * u128::from(self.ns_per_tick.unsigned_abs())) >> SHIFT)
    }

    /// The fewest ticks that [`Clock::ns_from_ticks`] says are so many nanoseconds.
    pub fn ticks_until_ns(&self, ns: u64) -> u64 {
        // Never 0: the frequency is held below 1 THz.
        let tick = u128::from(self.ns_per_tick.unsigned_abs().max(1));
        saturate((u128::from(ns) << SHIFT).div_ceil(tick))
    }

    /// A tick in nanoseconds, for sums and means: of very many ticks, since one alone would be rounded.
    pub fn tick_ns(&self) -> f64 {
        self.ns_from_ticks(1_000_000_000) as f64 / 1e9
    }
}

/// The value as u64, or the largest u64.
#[inline]
fn saturate(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_day_at_2_ghz_stays_within_a_microsecond() {
        let clock = Clock::from_calibration(1_000, 5_000, 1_999_999_000.0);
        let day = 86_400u64;
        let at = clock.ns(Ticks(1_000 + day * 1_999_999_000));
        let wanted = 5_000 + day * 1_000_000_000;
        assert!(
            at.0.abs_diff(wanted) < 1_000,
            "off by {} ns",
            at.0.abs_diff(wanted)
        );
    }

    /// Whoever waits for a tick below the last one that is too early wakes in vain: over however long a time.
    #[test]
    fn the_fewest_ticks_of_a_length_are_the_fewest() {
        for hz in [1_999_999_333.7, 2_893_202_417.3, 24_000_000.1, 1e3, 1e12] {
            let clock = Clock::from_calibration(0, 0, hz);
            let row_ns = 1_000_000;
            for row in (1..=100_000_000).step_by(99_991).chain([100_000_000]) {
                let due_ns = row * row_ns;
                let ticks = clock.ticks_until_ns(due_ns);
                assert!(clock.ns_from_ticks(ticks) >= due_ns, "{hz} {row}");
                assert!(clock.ns_from_ticks(ticks - 1) < due_ns, "{hz} {row}");
            }
        }
    }

    #[test]
    fn instants_before_the_calibration_convert() {
        let clock = Clock::from_calibration(10_000, 1_000_000, 1e9);
        assert_eq!(clock.ns(Ticks(9_000)), Nanos(999_000));
        assert_eq!(clock.ticks(Nanos(999_000)), Ticks(9_000));
    }

    #[test]
    fn nonsense_calibrations_do_not_overflow() {
        for hz in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            let clock = Clock::from_calibration(0, 0, hz);
            assert!(clock.ns_from_ticks(u64::MAX) > 0);
            assert!(clock.ticks_from_ns(u64::MAX) > 0);
        }
    }

    proptest! {
        #[test]
        fn there_and_back_is_within_a_tick(hz in 1e8..6e9f64, ns in 0u64..(1 << 50)) {
            let clock = Clock::from_calibration(77, 1 << 40, hz);
            let back = clock.ns(clock.ticks(Nanos(ns)));
            // One tick, and of the distance from the calibration what each multiplier was rounded by: half of 2^-40,
            // against a multiplier of `ratio` there and of 1 / `ratio` back.
            let ratio = hz / 1e9;
            let distance = ns.abs_diff(1 << 40) as f64;
            let rounding = distance * (ratio + 1.0 / ratio) / 2f64.powi(41);
            let bound = (1e9 / hz).ceil() as u64 + 2 + rounding.ceil() as u64;
            prop_assert!(back.0.abs_diff(ns) <= bound, "{} against {}", back.0, ns);
        }
    }
}
