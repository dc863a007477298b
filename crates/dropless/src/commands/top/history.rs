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
    tx: VecDeque<u64>,
    rx: VecDeque<u64>,
    at_ms: u64,
}

impl History {
    /// Takes the rates of `state` in, if it is time for another column.
    pub fn add(&mut self, state: &State) {
        if state.told_unix_ms < self.at_ms + COLUMN_MS {
            return;
        }
        self.at_ms = state.told_unix_ms;
        for (curve, rate) in [
            (&mut self.tx, state.rate.tx_pps),
            (&mut self.rx, state.rate.rx_pps),
        ] {
            if curve.len() == COLUMNS_MAX {
                curve.pop_front();
            }
            curve.push_back(rate as u64);
        }
    }

    /// The last `columns` rates sent.
    pub fn tx(&self, columns: usize) -> Vec<u64> {
        last(&self.tx, columns)
    }

    /// The last `columns` rates received.
    pub fn rx(&self, columns: usize) -> Vec<u64> {
        last(&self.rx, columns)
    }
}

fn last(curve: &VecDeque<u64>, columns: usize) -> Vec<u64> {
    curve
        .iter()
        .skip(curve.len().saturating_sub(columns))
        .copied()
        .collect()
}
