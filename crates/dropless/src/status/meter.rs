//! Rates over the last second, from counts.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use report::published::{Rates, Totals};

/// Rates are taken over this long.
const OVER: Duration = Duration::from_secs(1);
/// What a frame takes on the wire besides its bytes without FCS: FCS, preamble and gap.
const FURTHER_BYTES: f64 = 24.0;

/// The counts of the last second.
#[derive(Debug, Default)]
pub struct Meter(VecDeque<(Instant, Totals)>);

impl Meter {
    /// A run begins at `at`, when so much is in its `total` that is in none of its rates.
    pub fn begin(&mut self, at: Instant, total: &Totals) {
        self.0 = [(at, *total)].into();
    }

    /// The rates `now`, after `elapsed` of the run.
    pub fn rates(&mut self, now: Instant, elapsed: Duration, total: &Totals) -> Rates {
        let moved = |total: &Totals| total.sent + total.received > 0;
        // The time before a run's first packet is no part of it, and the next trial of a search begins at nothing.
        let idle = self.0.back().is_some_and(|(_, last)| !moved(last));
        let anew = |last: &Totals| total.sent < last.sent || total.received < last.received;
        if self.0.back().is_some_and(|(_, last)| anew(last)) {
            self.0.clear();
        } else if idle {
            // Nor is the time before the run's start, if that is where it was looked at last.
            let begun = now.checked_sub(elapsed);
            let last = self.0.pop_back();
            let last = last.map(|(at, last)| (begun.map_or(at, |begun| begun.max(at)), last));
            self.0 = last.into_iter().collect();
        }
        while self
            .0
            .get(1)
            .is_some_and(|(at, _)| now.duration_since(*at) >= OVER)
        {
            self.0.pop_front();
        }
        self.0.push_back((now, *total));
        let Some((at, before)) = self.0.front() else {
            return Rates::default();
        };
        rates(before, total, now.duration_since(*at).as_secs_f64())
    }
}

/// The rates of a whole run of `seconds`.
pub fn mean(total: &Totals, seconds: f64) -> Rates {
    rates(&Totals::default(), total, seconds)
}

/// How fast it went from `before` to `total`.
fn rates(before: &Totals, total: &Totals, seconds: f64) -> Rates {
    if seconds <= 0.0 {
        return Rates::default();
    }
    let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
    let (tx_pps, rx_pps) = (
        rate(total.sent, before.sent),
        rate(total.received, before.received),
    );
    let bits = |pps: f64, now: u64, before: u64| match now {
        // Not counted: what comes on top of each packet is not the whole.
        0 => 0.0,
        _ => (rate(now, before) + pps * FURTHER_BYTES) * 8.0,
    };
    Rates {
        over_s: seconds,
        tx_pps,
        rx_pps,
        tx_bps: bits(
            tx_pps,
            total.sent_bytes.unwrap_or(0),
            before.sent_bytes.unwrap_or(0),
        ),
        rx_bps: bits(rx_pps, total.received_bytes, before.received_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The run has gone on for longer than it was looked at.
    const LONG: Duration = Duration::from_secs(3600);

    fn at(sent: u64) -> Totals {
        Totals {
            sent,
            received: sent / 2,
            sent_bytes: Some(sent * 60),
            ..Totals::default()
        }
    }

    #[test]
    fn a_rate_is_that_of_the_last_second() {
        let (begun, mut meter) = (Instant::now(), Meter::default());
        let ms = Duration::from_millis(1);
        assert_eq!(meter.rates(begun, LONG, &at(0)), Rates::default());
        for step in 0..50_u32 {
            let _ = meter.rates(begun + ms * 100 * step, LONG, &at(u64::from(step) * 100));
        }
        let rates = meter.rates(begun + ms * 5000, LONG, &at(5000));
        assert!((rates.tx_pps - 1000.0).abs() < 1e-6, "{rates:?}");
        assert!((rates.rx_pps - 500.0).abs() < 1e-6, "{rates:?}");
        assert!((rates.tx_bps - 1000.0 * 84.0 * 8.0).abs() < 1e-6, "{rates:?}");
        // One and a half seconds of silence.
        let _ = meter.rates(begun + ms * 5500, LONG, &at(5000));
        let _ = meter.rates(begun + ms * 6000, LONG, &at(5000));
        assert!(meter.rates(begun + ms * 6500, LONG, &at(5000)).tx_pps.abs() < 1e-9);
    }

    /// The first look was 50 ms before the run's start; the first rate is that of the time since.
    #[test]
    fn no_rate_is_over_a_time_in_which_nothing_was_sent() {
        let (begun, mut meter) = (Instant::now(), Meter::default());
        let ms = Duration::from_millis(1);
        let _ = meter.rates(begun, Duration::ZERO, &at(0));
        let rates = meter.rates(begun + ms * 150, ms * 100, &at(100));
        assert!((rates.tx_pps - 1000.0).abs() < 1e-6, "{rates:?}");
    }

    /// A ring that was full when the run began is no flood of its first second.
    #[test]
    fn what_had_come_before_the_run_is_in_no_rate() {
        let (begun, mut meter) = (Instant::now(), Meter::default());
        let ms = Duration::from_millis(1);
        let _ = meter.rates(begun, Duration::ZERO, &at(0));
        meter.begin(begun + ms * 50, &at(8000));
        let rates = meter.rates(begun + ms * 150, ms * 150, &at(8100));
        assert!((rates.tx_pps - 1000.0).abs() < 1e-6, "{rates:?}");
    }

    #[test]
    fn a_mean_is_over_the_whole_run() {
        let rates = mean(&at(6000), 3.0);
        assert!(
            (rates.tx_pps - 2000.0).abs() < 1e-6 && (rates.over_s - 3.0).abs() < 1e-9,
            "{rates:?}"
        );
        assert_eq!(mean(&at(6000), 0.0), Rates::default());
    }

    #[test]
    fn counts_that_begin_anew_give_no_nonsense() {
        let (begun, mut meter) = (Instant::now(), Meter::default());
        let _ = meter.rates(begun, LONG, &at(1000));
        let rates = meter.rates(begun + Duration::from_millis(100), LONG, &at(10));
        assert_eq!(rates, Rates::default());
    }
}
