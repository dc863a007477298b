//! Rates by group of addresses: the generic cell rate algorithm (ITU-T I.371) in a table of fixed size.
//!
//! A group whose time has come again behaves like one that was never seen. Such entries are given away, and only they: a
//! flood of invented sources takes no entry from a group that has been heard of, and finds none itself once all are in use.

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::prefix::mask;
use crate::{End, Facts, Layer, Rate};

/// Entries that a group may be in: those of a cache line.
pub const WAYS: usize = 4;

/// A rate in the clock's units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Nanoseconds from a packet to the next; a fraction counts whole, so that no group gets more than its rate.
    pub every_ns: u64,
    /// How far ahead of its time a packet may come.
    pub early_ns: u64,
}

impl From<&Rate> for Interval {
    fn from(rate: &Rate) -> Self {
        let every_ns = 1_000_000_000_u64.div_ceil(rate.per_second.get());
        Self {
            every_ns,
            early_ns: every_ns.saturating_mul(rate.burst.get() - 1),
        }
    }
}

impl Interval {
    /// The time of the group's next packet after one at `now_ns`; `None` if that is above the rate. `due_ns` is the time
    /// of this packet if the group kept to its rate, 0 of one that is new.
    #[inline]
    pub const fn next(&self, due_ns: u64, now_ns: u64) -> Option<u64> {
        let due = if due_ns > now_ns { due_ns } else { now_ns };
        if due - now_ns > self.early_ns {
            None
        } else {
            Some(due + self.every_ns)
        }
    }
}

impl Rate {
    /// The bits of the address that make the packet's group; `None` if it has no address.
    #[inline]
    pub const fn group(&self, facts: &Facts) -> Option<u128> {
        let address = match self.of {
            End::Source => facts.source,
            End::Destination => facts.destination,
        };
        match facts.layer {
            Layer::Other => None,
            Layer::V4 => Some(address & mask(self.v4_len)),
            Layer::V6 => Some(address & mask(self.v6_len)),
        }
    }
}

/// Why a packet is not within its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Its group has sent too many.
    Rate,
    /// Its group is new, and every entry that it may have is in use.
    Full,
}

/// The groups of all rates, for any number of threads.
#[derive(Debug)]
pub struct Limiter {
    /// Key and due time, [`WAYS`] of them a bucket.
    entries: Box<[[AtomicU64; 2]]>,
    seed: u64,
}

impl Limiter {
    /// A table of at least so many entries of 16 bytes. The seed keeps others from choosing sources that share a bucket.
    pub fn new(entries: usize, seed: u64) -> Self {
        let entries = entries.next_power_of_two().max(WAYS);
        Self {
            entries: (0..entries).map(|_| Default::default()).collect(),
            seed,
        }
    }

    /// How many entries there are.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// A seed that nobody can guess.
    pub fn seed() -> u64 {
        std::collections::hash_map::RandomState::new()
            .build_hasher()
            .finish()
    }

    /// Accounts for a packet of this group under the rate of this [`number`].
    #[inline]
    pub fn pass(
        &self,
        rate: u32,
        interval: Interval,
        (group, is_v6): (u128, bool),
        now_ns: u64,
    ) -> Result<(), Over> {
        let key = key(self.seed, u64::from(rate) * 2 + u64::from(is_v6), group);
        let buckets = self.entries.len() / WAYS;
        let first = (key as usize & (buckets - 1)) * WAYS;
        let bucket = &self.entries[first..first + WAYS];
        let mut free = None;
        for entry in bucket {
            let [held, due] = entry;
            if held.load(Relaxed) == key {
                return account(due, interval, now_ns);
            }
            if free.is_none() && due.load(Relaxed) <= now_ns {
                free = Some(entry);
            }
        }
        let Some([held, due]) = free else {
            return Err(Over::Full);
        };
        // Whoever had it may account for one packet more at the same time: the new group then has that much less.
        held.store(key, Relaxed);
        account(due, interval, now_ns)
    }
}

#[inline]
fn account(due: &AtomicU64, interval: Interval, now_ns: u64) -> Result<(), Over> {
    let mut was = due.load(Relaxed);
    loop {
        let next = interval.next(was, now_ns).ok_or(Over::Rate)?;
        match due.compare_exchange_weak(was, next, Relaxed, Relaxed) {
            Ok(_) => return Ok(()),
            Err(other) => was = other,
        }
    }
}

/// What the groups of a rate are known by whose rule is spelled so, wherever it stands: from one rule set to the next they
/// are the same, and no other rate takes them over. `taken` are those of other rates of the set. Below 2^31: the family
/// comes with it.
pub fn number(text: &str, taken: impl Fn(u32) -> bool) -> u32 {
    let mixed = text.bytes().fold(0, |all, byte| mix(all ^ u64::from(byte)));
    let mut number = (mixed >> 33) as u32;
    while taken(number) {
        number = (number + 1) & (u32::MAX >> 1);
    }
    number
}

/// A group's key: never 0, which is an empty entry's.
#[inline]
pub const fn key(seed: u64, rate: u64, group: u128) -> u64 {
    let key = mix(mix(mix(seed ^ rate) ^ (group >> 64) as u64) ^ group as u64);
    if key == 0 { 1 } else { key }
}

/// A permutation of 64 bits in which every bit of the result depends on all (Stafford's variant 13 of `MurmurHash3`'s
/// finalizer).
#[inline]
const fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}
