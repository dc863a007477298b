//! A packet's way through the tables.

use super::{Do, IndexTable, Tables};
use crate::facts::look;
use crate::limit::{Limiter, Over};
use crate::{Decision, Facts, Layer, Malformed, Verdict};

/// Tables that a packet may have a row in.
const ROWS: usize = 8;

impl IndexTable {
    #[inline]
    fn row(&self, value: Option<usize>) -> &[u64] {
        let class = value
            .and_then(|value| self.classes.get(value))
            .copied()
            .unwrap_or(self.none);
        self.rows.row(u32::from(class))
    }
}

impl Tables {
    /// Decides about a frame of `len` bytes, whose headers are in `frame`, at this time.
    #[inline]
    pub fn classify(&self, frame: &[u8], len: usize, limiter: &Limiter, now_ns: u64) -> Decision {
        self.decide(&look(frame, len, self.reasons), limiter, now_ns)
    }

    /// Decides about what [`look`] found.
    #[inline]
    pub fn decide(&self, packet: &Result<Facts, Malformed>, limiter: &Limiter, now_ns: u64) -> Decision {
        let mut rows: [&[u64]; ROWS] = [&[]; ROWS];
        let rows = match packet {
            Ok(facts) => {
                let count = self.rows_of(facts, &mut rows);
                &rows[..count]
            }
            Err(reason) => {
                rows[0] = self.malformed.row(Some(*reason as usize));
                &rows[..1]
            }
        };
        self.first(rows, packet, (limiter, now_ns))
    }

    #[inline]
    fn rows_of<'t>(&'t self, facts: &Facts, rows: &mut [&'t [u64]; ROWS]) -> usize {
        let mut count = 0;
        let mut push = |row| {
            rows[count] = row;
            count += 1;
        };
        let is_ip = facts.layer != Layer::Other;
        let is_v6 = facts.layer == Layer::V6;
        if let Some(table) = &self.kind {
            push(table.row(Some(Self::kind(facts.layer, facts.part, facts.protocol))));
        }
        for (table, address) in [
            (&self.source, facts.source),
            (&self.destination, facts.destination),
        ] {
            if let Some(table) = table {
                push(if is_ip {
                    table.row(address, is_v6)
                } else {
                    table.rows.row(table.none)
                });
            }
        }
        if let Some(table) = &self.destination_port {
            push(table.row(facts.ports.map(|ports| usize::from(ports.1))));
        }
        if let Some(table) = &self.source_port {
            push(table.row(facts.ports.map(|ports| usize::from(ports.0))));
        }
        if let Some(table) = &self.detail {
            push(table.row(Some(Self::detail(facts.detail))));
        }
        if let Some(table) = &self.vlan {
            push(table.row(facts.vlan.map(usize::from)));
        }
        if let Some(table) = &self.ether_type {
            push(table.row((!is_ip).then_some(usize::from(facts.ether_type))));
        }
        count
    }

    /// The first rule that all rows have and that decides.
    #[inline]
    fn first(&self, rows: &[&[u64]], packet: &Result<Facts, Malformed>, limits: (&Limiter, u64)) -> Decision {
        let words = self.rules.len().div_ceil(64);
        let all = |word: usize| {
            let every = rows.iter().map(|row| row.get(word).copied().unwrap_or_default());
            every.fold(u64::MAX, |all, bits| all & bits)
        };
        if words <= 1 {
            // Without rows every rule holds.
            let known = if self.rules.len() == 64 {
                u64::MAX
            } else {
                (1 << self.rules.len()) - 1
            };
            return self
                .among(0, all(0) & known, packet, limits)
                .unwrap_or_else(|| self.otherwise());
        }
        for part in 0..words.div_ceil(64) {
            let mut candidates = all(words + part);
            while candidates != 0 {
                let word = part * 64 + candidates.trailing_zeros() as usize;
                candidates &= candidates - 1;
                if word < words
                    && let Some(decision) = self.among(word, all(word), packet, limits)
                {
                    return decision;
                }
            }
        }
        self.otherwise()
    }

    /// The first of these rules of a word that decides.
    #[inline]
    fn among(
        &self,
        word: usize,
        mut bits: u64,
        packet: &Result<Facts, Malformed>,
        (limiter, now_ns): (&Limiter, u64),
    ) -> Option<Decision> {
        while bits != 0 {
            let rule = word * 64 + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            let decided = |verdict, is_full| Decision {
                verdict,
                rule: Some(rule as u16),
                is_full,
            };
            match self.rules.get(rule)? {
                Do::Decide(verdict) => return Some(decided(*verdict, false)),
                Do::Limit(number, rate, interval) => {
                    let group = packet
                        .as_ref()
                        .ok()
                        .and_then(|facts| Some((rate.group(facts)?, facts.layer == Layer::V6)));
                    let Some(group) = group else { continue };
                    if let Err(over) = limiter.pass(*number, *interval, group, now_ns) {
                        return Some(decided(Verdict::Deny, over == Over::Full));
                    }
                }
            }
        }
        None
    }

    #[inline]
    fn otherwise(&self) -> Decision {
        Decision {
            verdict: self.default,
            rule: None,
            is_full: false,
        }
    }
}
