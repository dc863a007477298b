//! Looks for the highest rate without loss: up while nothing is lost, down while something is, and halves what is between.

use anyhow::Result;

/// What a trial at a rate showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Everything came back.
    Lossless,
    /// Something was lost.
    Lossy,
    /// The sender did not offer the rate.
    NotOffered,
}

/// How far to look.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Trials, at most.
    pub trials: u32,
    /// The two bounds are near enough when the upper is not more than this times the lower.
    pub near_enough: f64,
    /// No rate below this is tried, packets/s.
    pub floor_pps: f64,
}

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sought {
    /// The highest rate that was tried and lost nothing.
    pub lossless_pps: Option<f64>,
    /// The lowest rate above it that failed.
    pub failing_pps: Option<f64>,
    /// It failed because the sender did not offer it.
    pub by_sender: bool,
}

/// Tries rates, from `guess` on, by `trial`.
pub fn seek(guess_pps: f64, limits: Limits, mut trial: impl FnMut(f64) -> Result<Shown>) -> Result<Sought> {
    let mut sought = Sought::default();
    let mut rate = guess_pps.max(limits.floor_pps);
    for _ in 0..limits.trials {
        let shown = trial(rate)?;
        if shown == Shown::Lossless {
            sought.lossless_pps = Some(rate);
        } else {
            sought.failing_pps = Some(rate);
            sought.by_sender = shown == Shown::NotOffered;
        }
        rate = match (sought.lossless_pps, sought.failing_pps) {
            (Some(low), Some(high)) if high <= low * limits.near_enough => break,
            (Some(low), Some(high)) => (low * high).sqrt(),
            (Some(low), None) => low * 1.5,
            (None, Some(high)) if high <= limits.floor_pps => break,
            (None, Some(high)) => (high / 2.0).max(limits.floor_pps),
            (None, None) => break,
        };
    }
    Ok(sought)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits {
        trials: 40,
        near_enough: 1.05,
        floor_pps: 1000.0,
    };

    proptest! {
        /// Whatever the path's limit and wherever it begins, it ends just below the limit.
        #[test]
        fn ends_just_below_the_limit_of_a_path(limit in 1100.0..1e8_f64, guess in 1.0..1e8_f64) {
            let mut tried = 0;
            let sought = seek(guess, LIMITS, |rate| {
                tried += 1;
                Ok(if rate <= limit { Shown::Lossless } else { Shown::Lossy })
            })
            .unwrap();
            let found = sought.lossless_pps.unwrap();
            prop_assert!(found <= limit && limit <= found * 1.06, "{found} of {limit} after {tried}");
            prop_assert!(!sought.by_sender);
        }

        /// The budget is kept, whatever the path does.
        #[test]
        fn never_tries_more_often_than_allowed(answers in prop::collection::vec(0..3_u8, 20), trials in 1..10_u32) {
            let mut tried = 0;
            let limits = Limits { trials, ..LIMITS };
            let sought = seek(50_000.0, limits, |_| {
                tried += 1;
                Ok([Shown::Lossless, Shown::Lossy, Shown::NotOffered][usize::from(answers[tried])])
            })
            .unwrap();
            prop_assert!(tried as u32 <= trials);
            if let (Some(low), Some(high)) = (sought.lossless_pps, sought.failing_pps) {
                prop_assert!(low < high);
            }
        }
    }

    #[test]
    fn a_path_that_carries_nothing_ends_at_the_floor() {
        let mut rates = Vec::new();
        let sought = seek(5000.0, LIMITS, |rate| {
            rates.push(rate);
            Ok(Shown::Lossy)
        })
        .unwrap();
        assert_eq!(rates, [5000.0, 2500.0, 1250.0, 1000.0]);
        assert_eq!(sought.lossless_pps, None);
    }

    #[test]
    fn a_sender_at_its_limit_is_told_from_a_path_at_its() {
        let sought = seek(5000.0, LIMITS, |rate| {
            Ok(if rate > 7000.0 {
                Shown::NotOffered
            } else {
                Shown::Lossless
            })
        })
        .unwrap();
        assert!(sought.by_sender);
    }
}
