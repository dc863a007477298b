//! Rates, loss and latency of the last minutes, for the curves.

use std::collections::VecDeque;

use report::published::State;

/// A column of a curve is this long.
const COLUMN_MS: u64 = 500;
/// No terminal is wider.
const COLUMNS_MAX: usize = 500;

/// What the curves show, column by column, the oldest first.
#[derive(Debug, Default)]
pub struct History {
    /// Rates of `tx` and `rx`, packets lost per second, p99 in ns.
    curves: [VecDeque<u64>; CURVES],
    at_ms: u64,
    /// Packets lost up to then.
    lost: u64,
}

/// `tx`, `rx`, `lost`, `p99`.
pub const CURVES: usize = 4;

impl History {
    /// Takes `state` in, if it is time for another column.
    pub fn add(&mut self, state: &State) {
        // By the run's own clock: the machine's may be set back.
        let told_ms = (state.elapsed_s * 1e3) as u64;
        let since_ms = told_ms.saturating_sub(self.at_ms);
        if since_ms < COLUMN_MS {
            return;
        }
        let lost = state.total.lost.saturating_sub(self.lost);
        // Of what was before the first look nobody knows when. A few in a long pause are still seen.
        let lost_pps = if self.at_ms == 0 {
            0
        } else {
            (lost * 1000).div_ceil(since_ms)
        };
        (self.at_ms, self.lost) = (told_ms, state.total.lost);
        let p99 = state.latency_recent_ns.p99.unwrap_or(0);
        let now = [state.rate.tx_pps as u64, state.rate.rx_pps as u64, lost_pps, p99];
        for (curve, value) in self.curves.iter_mut().zip(now) {
            if curve.len() == COLUMNS_MAX {
                curve.pop_front();
            }
            curve.push_back(value);
        }
    }

    /// The last `columns` of a curve.
    pub fn last(&self, curve: usize, columns: usize) -> Vec<u64> {
        let curve = &self.curves[curve];
        curve
            .iter()
            .skip(curve.len().saturating_sub(columns))
            .copied()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_in_a_long_pause_is_seen() {
        let mut history = History::default();
        for (elapsed_s, lost) in [(1.0, 5), (61.0, 35), (62.0, 35), (63.0, 135)] {
            let mut state = State {
                elapsed_s,
                ..State::default()
            };
            state.total.lost = lost;
            history.add(&state);
        }
        assert_eq!(history.last(2, 4), [0, 1, 0, 100]);
    }
}
