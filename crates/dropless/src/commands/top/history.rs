//! The rates of the last minutes, for the curves.

use std::collections::VecDeque;

use report::published::State;

/// A column of a curve is this long.
const COLUMN_MS: u64 = 500;
/// No terminal is wider.
const COLUMNS_MAX: usize = 500;

/// Rates, the oldest first.
#[derive(Debug, Default)]
pub struct History {
    /// Of `tx` and `rx`.
    curves: [VecDeque<u64>; 2],
    at_ms: u64,
}

impl History {
    /// Takes the rates of `state` in, if it is time for another column.
    pub fn add(&mut self, state: &State) {
        if state.told_unix_ms < self.at_ms + COLUMN_MS {
            return;
        }
        self.at_ms = state.told_unix_ms;
        let rates = [state.rate.tx_pps, state.rate.rx_pps];
        for (curve, rate) in self.curves.iter_mut().zip(rates) {
            if curve.len() == COLUMNS_MAX {
                curve.pop_front();
            }
            curve.push_back(rate as u64);
        }
    }

    /// The last `columns` rates sent, and received.
    pub fn last(&self, columns: usize) -> [Vec<u64>; 2] {
        let last = |curve: &VecDeque<u64>| {
            let before = curve.len().saturating_sub(columns);
            curve.iter().skip(before).copied().collect()
        };
        self.curves.each_ref().map(last)
    }
}
