//! Rows of bits, a bit a rule, each different one once.

use std::collections::HashMap;

use super::{BYTES_MAX, TooLarge};

/// Rows of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Words of bits a row.
    words: usize,
    /// Each row: its bits, and behind them, if they are more than one word, a bit for each word that is not 0.
    bits: Vec<u64>,
}

impl Rows {
    /// Words that a row of so many rules takes: bits, and their summary.
    pub const fn stride_of(rules: usize) -> usize {
        let words = rules.div_ceil(64);
        if words > 1 { words + words.div_ceil(64) } else { 1 }
    }

    /// Words of a row with its summary.
    pub const fn stride(&self) -> usize {
        if self.words > 1 {
            self.words + self.words.div_ceil(64)
        } else {
            1
        }
    }

    /// All words, row after row.
    pub fn words(&self) -> &[u64] {
        &self.bits
    }

    /// One row with its summary.
    #[inline]
    pub fn row(&self, class: u32) -> &[u64] {
        let stride = self.stride();
        let at = class as usize * stride;
        self.bits.get(at..at + stride).unwrap_or_default()
    }
}

/// Gathers rows.
pub(super) struct Gather {
    rules: usize,
    known: HashMap<Vec<u64>, u32>,
    rows: Rows,
}

impl Gather {
    pub(super) fn new(rules: usize) -> Self {
        Self {
            rules,
            known: HashMap::new(),
            rows: Rows {
                words: rules.div_ceil(64).max(1),
                bits: Vec::new(),
            },
        }
    }

    /// A row without a bit.
    pub(super) fn blank(&self) -> Vec<u64> {
        vec![0; self.rules.div_ceil(64).max(1)]
    }

    /// The number of the row with these bits.
    pub(super) fn add(&mut self, bits: &[u64]) -> Result<u32, TooLarge> {
        if let Some(class) = self.known.get(bits) {
            return Ok(*class);
        }
        let class = self.known.len() as u32;
        self.known.insert(bits.to_vec(), class);
        self.rows.bits.extend_from_slice(bits);
        if bits.len() > 1 {
            let summary = bits.chunks(64).map(|words| {
                let set = words.iter().enumerate().filter(|(_, word)| **word != 0);
                set.fold(0, |all, (place, _)| all | 1 << place)
            });
            self.rows.bits.extend(summary);
        }
        if self.rows.bits.len() * 8 > BYTES_MAX {
            return Err(TooLarge);
        }
        Ok(class)
    }

    pub(super) fn finish(self) -> Rows {
        self.rows
    }
}

/// Sets or clears a rule's bit.
pub(super) fn set(bits: &mut [u64], rule: usize, to: bool) {
    let bit = 1 << (rule % 64);
    if to {
        bits[rule / 64] |= bit;
    } else {
        bits[rule / 64] &= !bit;
    }
}
