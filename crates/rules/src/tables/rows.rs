//! Rows of bits, a bit a rule, each different one once.

use std::collections::HashMap;

use super::{BYTES_MAX, TooLarge, WORD};

/// Rows of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Words of bits a row.
    words: usize,
    /// Each row: its bits, and behind them, if they are more than one word, a bit for each word that is not 0.
    bits: Vec<u64>,
    /// Where the rules of each row are in `rules`, and how many they are: [`MANY`] if they are not there.
    few: Vec<(u32, u32)>,
    rules: Vec<u16>,
}

/// More rules than are worth being asked one by one.
const MANY: u32 = u32::MAX;

impl Rows {
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

    /// The first word of a row, which is all of it where there are so few rules.
    #[inline]
    pub(super) fn word(&self, class: u32) -> u64 {
        self.bits
            .get(class as usize * self.stride())
            .copied()
            .unwrap_or_default()
    }

    /// The rules of a row, if they are few.
    #[inline]
    pub(super) fn few(&self, class: u32) -> Option<&[u16]> {
        let (at, count) = *self.few.get(class as usize)?;
        if count == MANY {
            return None;
        }
        self.rules.get(at as usize..(at + count) as usize)
    }

    /// Whether a row has this rule.
    #[inline]
    pub(super) fn has(&self, class: u32, rule: usize) -> bool {
        let at = class as usize * self.stride() + rule / WORD;
        self.bits
            .get(at)
            .is_some_and(|word| word >> (rule % WORD) & 1 != 0)
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
                few: Vec::new(),
                rules: Vec::new(),
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
            self.list(bits);
        }
        if self.rows.bits.len() * 8 > BYTES_MAX {
            return Err(TooLarge);
        }
        Ok(class)
    }

    /// Lists the rules of a row, if that takes less to go through than the row: as many as it has words, at most.
    fn list(&mut self, bits: &[u64]) {
        let count: u32 = bits.iter().map(|word| word.count_ones()).sum();
        if count as usize > bits.len() {
            self.rows.few.push((0, MANY));
            return;
        }
        self.rows.few.push((self.rows.rules.len() as u32, count));
        for (word, bits) in bits.iter().enumerate() {
            let mut bits = *bits;
            while bits != 0 {
                self.rows
                    .rules
                    .push((word * WORD) as u16 + bits.trailing_zeros() as u16);
                bits &= bits - 1;
            }
        }
    }

    pub(super) fn finish(self) -> Rows {
        self.rows
    }
}

/// Sets or clears a rule's bit.
pub(super) fn set(bits: &mut [u64], rule: usize, to: bool) {
    let bit = 1 << (rule % WORD);
    if to {
        bits[rule / WORD] |= bit;
    } else {
        bits[rule / WORD] &= !bit;
    }
}
