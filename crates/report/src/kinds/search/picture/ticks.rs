//! Round rates for the axis of a search's chart.

use crate::number::{pps, round};

/// Steps of a linear axis at most.
const STEPS_MAX: f64 = 7.0;
/// Leading digits of round numbers.
const ROUND: [f64; 3] = [1.0, 2.0, 5.0];

/// Round rates from `low` to `high`; on a logarithmic axis 1, 2 and 5 of each power of ten.
pub fn ticks(low: f64, high: f64, is_log: bool) -> Vec<f64> {
    if is_log {
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let all = (first..=last).flat_map(|power| ROUND.map(|digit| digit * 10_f64.powi(power)));
        return all.filter(|rate| (low..=high).contains(rate)).collect();
    }
    let least = (high - low) / STEPS_MAX;
    let power = 10_f64.powf(least.log10().floor());
    let step = ROUND
        .iter()
        .map(|digit| digit * power)
        .find(|step| *step >= least)
        .unwrap_or(10.0 * power);
    let times = (low / step).ceil() as u64..=(high / step).floor() as u64;
    times.map(|times| times as f64 * step).collect()
}

/// A round rate in words.
pub fn words(rate: f64) -> String {
    round(&pps(rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_enough() {
        let words = |low, high, is_log| {
            let all: Vec<String> = ticks(low, high, is_log).into_iter().map(words).collect();
            all.join(", ")
        };
        assert_eq!(
            words(10_360.0, 20_460.0, false),
            "12 kpps, 14 kpps, 16 kpps, 18 kpps, 20 kpps"
        );
        assert_eq!(
            words(314.9, 26_000.0, true),
            "500 pps, 1 kpps, 2 kpps, 5 kpps, 10 kpps, 20 kpps"
        );
        assert_eq!(
            words(0.3, 0.9, false),
            "0.3 pps, 0.4 pps, 0.5 pps, 0.6 pps, 0.7 pps, 0.8 pps, 0.9 pps"
        );
    }
}
