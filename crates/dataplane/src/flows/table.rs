//! The table: buckets of eight entries. When a new flow wants in, the smallest of those goes that were unseen for longest.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};

use measure::{Counter, Ticks};
use rules::Facts;

use super::key::{WORDS, Words, hash, words};
use super::read::FlowReader;
use crate::BURST_MAX;

/// Entries that a flow may be in.
pub(super) const WAYS: usize = 8;
/// In the place of a way where there is none.
const NOWHERE: u8 = WAYS as u8;

/// A flow, in a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Entry {
    pub key: [AtomicU64; WORDS],
    pub packets: Counter,
    pub bytes: Counter,
    /// When it was seen last, ticks.
    pub last: Counter,
}

/// What changes only when an entry gets another flow.
#[derive(Debug, Default)]
pub(super) struct Birth {
    /// Odd while the entry is being given to another flow; 0 as long as it never had one.
    pub generation: AtomicU64,
    /// When the flow was seen first, ticks.
    pub first: Counter,
}

/// What readers see.
#[derive(Debug)]
pub(super) struct Shared {
    pub entries: Box<[Entry]>,
    pub births: Box<[Birth]>,
    pub seen: Sum,
    pub other: Sum,
    pub evicted: Sum,
    /// How often a flow was forgotten.
    pub evictions: Counter,
}

/// Packets and their bytes. One writer.
#[derive(Debug, Default)]
pub(super) struct Sum {
    pub packets: Counter,
    pub bytes: Counter,
}

impl Sum {
    #[inline]
    fn add(&self, packets: u64, bytes: u64) {
        self.packets.add(packets);
        self.bytes.add(bytes);
    }
}

/// A packet that was noted and not counted yet.
#[derive(Clone, Copy, Debug, Default)]
struct Noted {
    key: Words,
    hash: u64,
    len: u64,
}

/// Counts flows; for one worker. Readers come from [`FlowTable::reader`].
#[derive(Debug)]
pub struct FlowTable {
    shared: Arc<Shared>,
    /// The upper half of each entry's hash, never 0; those of a bucket in half a cache line. For the writer only.
    tags: Box<[[u32; WAYS]]>,
    noted: Box<[Noted; BURST_MAX]>,
    pending: usize,
    seed: [u64; 4],
}

impl FlowTable {
    /// Room for at least so many flows, of 100 bytes each. The seed keeps others from choosing flows that share a bucket.
    pub fn new(flows: usize, seed: u64) -> Self {
        let buckets = flows.div_ceil(WAYS).next_power_of_two();
        let entries = buckets * WAYS;
        // Four words of one: fractions of the golden ratio.
        let seed = [1_u64, 2, 3, 4].map(|number| {
            let word = seed.wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            (word ^ (word >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
        });
        Self {
            shared: Arc::new(Shared {
                entries: (0..entries).map(|_| Entry::default()).collect(),
                births: (0..entries).map(|_| Birth::default()).collect(),
                seen: Sum::default(),
                other: Sum::default(),
                evicted: Sum::default(),
                evictions: Counter::default(),
            }),
            tags: vec![[0; WAYS]; buckets].into_boxed_slice(),
            noted: Box::new([Noted::default(); BURST_MAX]),
            pending: 0,
            seed,
        }
    }

    /// How many flows it has room for.
    pub fn capacity(&self) -> usize {
        self.shared.entries.len()
    }

    /// Reads what is counted, beside it and after it.
    pub fn reader(&self) -> FlowReader {
        FlowReader::new(Arc::clone(&self.shared))
    }

    /// Notes a packet of `len` bytes, of which this is known; nothing of one that is malformed. [`FlowTable::count`] counts
    /// it, which is called here where a burst's worth of packets waits already.
    #[inline]
    pub fn note(&mut self, now: Ticks, facts: Option<&Facts>, len: usize) {
        let Some(key) = facts.and_then(words) else {
            self.shared.seen.add(1, len as u64);
            self.shared.other.add(1, len as u64);
            return;
        };
        if self.pending == BURST_MAX {
            self.count(now);
        }
        self.noted[self.pending] = Noted {
            key,
            hash: hash(&key, &self.seed),
            len: len as u64,
        };
        self.pending += 1;
    }

    /// Counts what was noted, as seen at `now`. Together, so that the processor fetches the next flows while it waits for
    /// the first: a large table is in no cache.
    #[inline]
    pub fn count(&mut self, now: Ticks) {
        let count = std::mem::take(&mut self.pending);
        let mut ways = [NOWHERE; BURST_MAX];
        for (noted, way) in self.noted[..count].iter().zip(&mut ways) {
            *way = way_of(&self.tags[self.bucket(noted.hash)], tag(noted.hash));
        }
        let (mut packets, mut bytes) = (0, 0);
        for (index, way) in ways[..count].iter().enumerate() {
            let noted = self.noted[index];
            let at = self.bucket(noted.hash) * WAYS + usize::from(*way);
            let at = if *way != NOWHERE && self.shared.entries[at].is(&noted.key) {
                at
            } else {
                // The flow before it in this burst may have made it, or it shares a tag with another.
                self.look_again(&noted, now)
            };
            let entry = &self.shared.entries[at];
            entry.packets.add(1);
            entry.bytes.add(noted.len);
            entry.last.set(now.0);
            packets += 1;
            bytes += noted.len;
        }
        if packets > 0 {
            self.shared.seen.add(packets, bytes);
        }
    }

    #[inline]
    fn bucket(&self, hash: u64) -> usize {
        // A power of two.
        hash as usize & (self.tags.len() - 1)
    }

    /// The entry of a flow, made for it if it has none.
    #[cold]
    fn look_again(&mut self, noted: &Noted, now: Ticks) -> usize {
        let (bucket, tag) = (self.bucket(noted.hash), tag(noted.hash));
        let entries = &self.shared.entries[bucket * WAYS..][..WAYS];
        let tags = &mut self.tags[bucket];
        let same = (0..WAYS).find(|way| tags[*way] == tag && entries[*way].is(&noted.key));
        if let Some(way) = same {
            return bucket * WAYS + way;
        }
        let empty = tags.iter().position(|tag| *tag == 0);
        let way = empty.unwrap_or_else(|| {
            let way = least_missed(entries);
            let entry = &entries[way];
            self.shared.evicted.add(entry.packets.get(), entry.bytes.get());
            self.shared.evictions.add(1);
            way
        });
        tags[way] = tag;
        let at = bucket * WAYS + way;
        self.shared.give(at, &noted.key, now);
        at
    }
}

impl Entry {
    #[inline]
    fn is(&self, key: &Words) -> bool {
        let differs = self.key.iter().zip(key);
        differs.fold(0, |sum, (held, wanted)| sum | (held.load(Relaxed) ^ wanted)) == 0
    }
}

impl Shared {
    /// Gives an entry to another flow. Whoever reads it meanwhile sees by its generation that it did.
    fn give(&self, at: usize, key: &Words, now: Ticks) {
        let (entry, birth) = (&self.entries[at], &self.births[at]);
        let generation = birth.generation.load(Relaxed);
        birth.generation.store(generation + 1, Relaxed);
        // Nothing of the new flow is seen before that.
        fence(Release);
        for (held, word) in entry.key.iter().zip(key) {
            held.store(*word, Relaxed);
        }
        entry.packets.set(0);
        entry.bytes.set(0);
        entry.last.set(now.0);
        birth.first.set(now.0);
        birth.generation.store(generation + 2, Release);
    }
}

/// Which entry of a full bucket is given away: of the half that was unseen for longer the one with fewest packets. A flood of
/// new flows takes the places of its own, and a large flow that has ended is remembered longer than many small ones.
fn least_missed(entries: &[Entry]) -> usize {
    let mut by_age: [(u64, usize); WAYS] = std::array::from_fn(|way| (entries[way].last.get(), way));
    by_age.sort_unstable();
    let older = by_age[..WAYS / 2].iter().map(|(_, way)| *way);
    older.min_by_key(|way| entries[*way].packets.get()).unwrap_or(0)
}

/// The part of a hash that is kept with its entry.
#[inline]
const fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32 | 1
}

#[inline]
fn way_of(tags: &[u32; WAYS], wanted: u32) -> u8 {
    let mut same = 0_u32;
    for (way, tag) in tags.iter().enumerate() {
        same |= u32::from(*tag == wanted) << way;
    }
    // Without any bit it is 32.
    same.trailing_zeros().min(u32::from(NOWHERE)) as u8
}
