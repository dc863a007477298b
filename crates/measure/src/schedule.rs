//! Which stream and which of its templates (frame sizes) comes next, as one precomputed cycle.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use thiserror::Error;

use crate::sizes::SizeMix;

/// Longest cycle: a table of 512 KiB; a worker walks one of its own, of what follows one another, of 1 MiB at most.
pub const ENTRIES_MAX: usize = 65_536;

/// One step of the cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entry {
    /// The stream, by its place in the list given to [`Schedule::build`].
    pub stream: u16,
    /// The template, counted over all streams: stream 0's templates first, then stream 1's, and so on.
    pub template: u32,
}

/// How often a stream sends in relation to the others, and each of its templates within it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamWeights {
    /// Share of the packets; any unit, the same for all streams.
    pub weight: u64,
    /// Share of each template within the stream.
    pub templates: Vec<u32>,
}

impl StreamWeights {
    /// The weights of streams with a rate, packets a second, and a mix of sizes each.
    pub fn of(streams: &[(f64, SizeMix)]) -> Vec<StreamWeights> {
        let smallest = streams.iter().map(|(pps, _)| *pps).fold(1.0, f64::min);
        // In whole numbers: of the smallest rate, too, at least three digits stay.
        let scale = 10f64.powi(3 - smallest.log10().floor() as i32);
        let weights = streams.iter().map(|(pps, mix)| StreamWeights {
            weight: ((pps * scale).round() as u64).max(1),
            templates: mix.sizes().into_iter().map(|(_, weight)| weight).collect(),
        });
        weights.collect()
    }
}

/// Why there is no schedule for these streams.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// Nothing to send.
    #[error("stream {stream} has no template with a share above 0: give it at least one frame size")]
    Empty {
        /// The stream's place in the list.
        stream: usize,
    },
    /// No stream at all.
    #[error("there is no stream to send: give at least one")]
    NoStreams,
    /// More combinations than the table holds.
    #[error(
        "{needed} combinations of stream and frame size are wanted, {ENTRIES_MAX} are possible: give fewer streams or fewer sizes"
    )]
    TooMany {
        /// Entries of the shortest possible cycle.
        needed: u64,
    },
}

/// The cycle of (stream, template) that senders repeat.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    entries: Vec<Entry>,
    share_error: f64,
}

impl Schedule {
    /// Builds the cycle: every share exact per cycle, and spread so that no prefix of it is off by a packet.
    ///
    /// In any first k entries, the count of a stream differs from k times its share by less than 1, and the count
    /// of a template from its share of its stream's entries by less than 1. Where rates have no common cycle of
    /// [`ENTRIES_MAX`] entries, they are approximated: see [`Schedule::share_error`].
    pub fn build(streams: &[StreamWeights]) -> Result<Schedule, ScheduleError> {
        if streams.is_empty() {
            return Err(ScheduleError::NoStreams);
        }
        if streams.len() > usize::from(u16::MAX) {
            return Err(ScheduleError::TooMany {
                needed: streams.len() as u64,
            });
        }
        let templates = reduced_templates(streams)?;
        let rounds: Vec<u64> = templates.iter().map(|weights| weights.iter().sum()).collect();
        let needed: u64 = rounds.iter().sum();
        if needed > ENTRIES_MAX as u64 {
            return Err(ScheduleError::TooMany { needed });
        }
        let weights: Vec<u64> = streams.iter().map(|stream| stream.weight.max(1)).collect();
        let counts = exact_counts(&weights, &rounds).unwrap_or_else(|| approximate_counts(&weights, &rounds));
        let share_error = share_error(&weights, &counts);
        Ok(Schedule {
            entries: interleave(&templates, &counts),
            share_error,
        })
    }

    /// The cycle in which each stream sends `turn` packets in a row: its shares and the order of its sizes stay.
    ///
    /// For a load without a rate to keep. A turn makes the books of a stream once for many packets; it is shorter
    /// where the cycle would grow beyond [`ENTRIES_MAX`].
    #[must_use]
    pub fn in_turns(self, turn: usize) -> Schedule {
        let turn = turn.min(ENTRIES_MAX / self.entries.len()).max(1);
        let mut of_stream: BTreeMap<u16, Vec<Entry>> = BTreeMap::new();
        for entry in &self.entries {
            of_stream.entry(entry.stream).or_default().push(*entry);
        }
        let mut of_stream: BTreeMap<_, _> = of_stream
            .iter()
            .map(|(stream, entries)| (*stream, entries.iter().copied().cycle()))
            .collect();
        let turns = self.entries.iter().flat_map(|entry| {
            let stream = of_stream.get_mut(&entry.stream);
            stream
                .into_iter()
                .flat_map(|entries| entries.take(turn))
                .collect::<Vec<_>>()
        });
        Schedule {
            entries: turns.collect(),
            share_error: self.share_error,
        }
    }

    /// The cycle.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The largest relative error of a stream's share; 0 where the shares are exact.
    pub fn share_error(&self) -> f64 {
        self.share_error
    }
}

/// The template weights of every stream, divided by what they have in common.
fn reduced_templates(streams: &[StreamWeights]) -> Result<Vec<Vec<u64>>, ScheduleError> {
    let reduced = |(stream, weights): (usize, &StreamWeights)| {
        let weights = weights.templates.iter().map(|weight| u64::from(*weight));
        match weights.clone().fold(0, gcd) {
            0 => Err(ScheduleError::Empty { stream }),
            common => Ok(weights.map(|weight| weight / common).collect()),
        }
    };
    streams.iter().enumerate().map(reduced).collect()
}

/// Entries of each stream in the shortest cycle with exact shares; `None` if it is too long.
///
/// Every stream's count must be a multiple of its template round, so that template shares are exact too.
fn exact_counts(weights: &[u64], rounds: &[u64]) -> Option<Vec<u64>> {
    let common = weights.iter().fold(0, |common, &weight| gcd(common, weight));
    let mut cycles = 1u64;
    for (weight, round) in weights.iter().zip(rounds) {
        let needed = round / gcd(*round, weight / common);
        cycles = cycles.checked_mul(needed / gcd(cycles, needed))?;
    }
    let mut total = 0u64;
    let mut counts = Vec::with_capacity(weights.len());
    for weight in weights {
        let count = (weight / common).checked_mul(cycles)?;
        total = total
            .checked_add(count)
            .filter(|total| *total <= ENTRIES_MAX as u64)?;
        counts.push(count);
    }
    Some(counts)
}

/// Entries of each stream in a cycle of at most [`ENTRIES_MAX`] that comes close to the shares.
fn approximate_counts(weights: &[u64], rounds: &[u64]) -> Vec<u64> {
    let total: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    // Every stream gets one round at least; the rest of the table is dealt out by share, always rounded down.
    let spare = (ENTRIES_MAX as u64).saturating_sub(rounds.iter().sum());
    weights
        .iter()
        .zip(rounds)
        .map(|(&weight, &round)| {
            let wanted = (u128::from(weight) * ENTRIES_MAX as u128 / total) as u64;
            let dealt = (u128::from(weight) * u128::from(spare) / total) as u64;
            // Towards the true share, but never beyond what the table has.
            round * (wanted.min(round + dealt) / round).max(1)
        })
        .collect()
}

/// The largest relative difference between a stream's share of `counts` and of `weights`.
fn share_error(weights: &[u64], counts: &[u64]) -> f64 {
    let weight_sum: f64 = weights.iter().map(|&weight| weight as f64).sum();
    let count_sum: f64 = counts.iter().map(|&count| count as f64).sum();
    let errors = weights.iter().zip(counts).map(|(&weight, &count)| {
        let (wanted, found) = (u128::from(weight), u128::from(count));
        // Exact comparison first, so that exact shares say 0 and not 1e-16.
        let exact = wanted * counts.iter().map(|&c| u128::from(c)).sum::<u128>()
            == found * weights.iter().map(|&w| u128::from(w)).sum::<u128>();
        if exact {
            0.0
        } else {
            ((count as f64 / count_sum) / (weight as f64 / weight_sum) - 1.0).abs()
        }
    });
    errors.fold(0.0, f64::max)
}

/// Interleaves the streams by `counts`, and within each stream its templates by weight.
fn interleave(templates: &[Vec<u64>], counts: &[u64]) -> Vec<Entry> {
    let mut first_template = 0u32;
    let mut cursors = Vec::with_capacity(templates.len());
    for weights in templates {
        cursors.push((first_template, spread(weights).into_iter().cycle()));
        first_template += weights.len() as u32;
    }
    let mut entries = Vec::with_capacity(counts.iter().sum::<u64>() as usize);
    for stream in spread(counts) {
        let (first, cursor) = &mut cursors[stream];
        if let Some(template) = cursor.next() {
            entries.push(Entry {
                stream: stream as u16,
                template: *first + template as u32,
            });
        }
    }
    entries
}

/// A sequence in which item i stands `counts[i]` times, spread so that in no prefix any item is a whole step off.
///
/// The j-th of an item's n steps may stand in the slots from floor(j L / n) to ceil((j + 1) L / n) - 1 of the L
/// slots; taking the earliest deadline among the items whose step may stand here meets every such window, which is
/// what proportionate-fair scheduling (Baruah et al., 1996) shows for one processor.
fn spread(counts: &[u64]) -> Vec<usize> {
    let length: u64 = counts.iter().sum();
    let mut waiting: BinaryHeap<Reverse<(u64, usize, u64)>> = BinaryHeap::new();
    // Equal deadlines: the step that has waited longest goes first, which spreads a little better still.
    let mut ready: BinaryHeap<Reverse<(u64, u64, usize, u64)>> = BinaryHeap::new();
    for (item, &count) in counts.iter().enumerate() {
        if count > 0 {
            waiting.push(Reverse((0, item, 0)));
        }
    }
    let mut sequence = Vec::with_capacity(length as usize);
    for slot in 0..length {
        while let Some(&Reverse((release, item, step))) = waiting.peek() {
            if release > slot {
                break;
            }
            waiting.pop();
            let deadline = ((step + 1) * length).div_ceil(counts[item]);
            ready.push(Reverse((deadline, release, item, step)));
        }
        let Some(Reverse((_, _, item, step))) = ready.pop() else {
            break;
        };
        sequence.push(item);
        if step + 1 < counts[item] {
            waiting.push(Reverse(((step + 1) * length / counts[item], item, step + 1)));
        }
    }
    sequence
}

/// Greatest common divisor; `gcd(0, n) = n`.
pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
