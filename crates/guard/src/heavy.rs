//! The busiest keys of a stream, in memory of fixed size: space saving (Metwally, Agrawal, El Abbadi 2005) in sets of a few.
//!
//! A key hashes to a set of [`WAYS`] places. A new key takes the place of the set's least, and inherits its weight as the
//! error of its own. So a key that has more than a [`WAYS`]th of its set's weight always has a place, and what is counted
//! in its value since it got the place is never more than the truth.

use std::hash::{BuildHasher, Hash};

/// Places in a set.
pub const WAYS: usize = 8;

/// A table of the busiest keys.
#[derive(Debug)]
pub struct Heavy<K, V> {
    sets: Box<[Vec<Slot<K, V>>]>,
    hasher: Seeded,
}

#[derive(Debug)]
struct Slot<K, V> {
    key: K,
    /// At least what the key had, since it begins with what another had.
    weight: u64,
    value: V,
}

/// A hasher whose seed is told: nobody can choose keys that share a set, and tests repeat.
#[derive(Clone, Copy, Debug)]
pub struct Seeded(pub u64);

impl BuildHasher for Seeded {
    type Hasher = Mixer;

    fn build_hasher(&self) -> Mixer {
        Mixer(self.0)
    }
}

/// A word at a time through a permutation of 64 bits (Stafford's variant 13 of `MurmurHash3`'s finalizer).
#[derive(Clone, Copy, Debug)]
pub struct Mixer(u64);

impl std::hash::Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let mut value = self.0 ^ word;
        value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        self.0 = (value ^ (value >> 31)).wrapping_add(0x9E37_79B9_7F4A_7C15);
    }

    fn write_u128(&mut self, word: u128) {
        self.write_u64((word >> 64) as u64);
        self.write_u64(word as u64);
    }
}

impl<K: Hash + Eq + Copy, V> Heavy<K, V> {
    /// A table of at least so many keys.
    pub fn new(keys: usize, seed: u64) -> Self {
        let sets = keys.div_ceil(WAYS).next_power_of_two();
        Self {
            sets: (0..sets).map(|_| Vec::new()).collect(),
            hasher: Seeded(seed),
        }
    }

    /// The key's value, with so much more weight; a new one if it had none.
    pub fn entry(&mut self, key: K, weight: u64, new: impl FnOnce() -> V) -> &mut V {
        let at = self.hasher.hash_one(key) as usize & (self.sets.len() - 1);
        let set = &mut self.sets[at];
        let place = if let Some(place) = set.iter().position(|slot| slot.key == key) {
            place
        } else if set.len() < WAYS {
            let value = new();
            set.push(Slot {
                key,
                weight: 0,
                value,
            });
            set.len() - 1
        } else {
            let least = (0..set.len())
                .min_by_key(|place| set[*place].weight)
                .unwrap_or_default();
            set[least].key = key;
            set[least].value = new();
            least
        };
        let slot = &mut set[place];
        slot.weight += weight;
        &mut slot.value
    }

    /// All keys that have a place.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.sets.iter().flatten().map(|slot| (slot.key, &slot.value))
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (K, &mut V)> {
        self.sets
            .iter_mut()
            .flatten()
            .map(|slot| (slot.key, &mut slot.value))
    }

    /// What was long ago counts half.
    pub fn decay(&mut self) {
        for slot in self.sets.iter_mut().flatten() {
            slot.weight /= 2;
        }
    }
}
