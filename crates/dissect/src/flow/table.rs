//! A table that forgets what was unseen for longest when it is full.

use std::hash::Hash;

use lru::LruCache;

use super::count::{Count, Evicted};

/// What a table counts for a key.
pub trait Entry: Default {
    /// All that it counted.
    fn count(&self) -> Count;
}

#[derive(Debug)]
pub struct Table<K: Hash + Eq, V> {
    entries: LruCache<K, V>,
    max: usize,
    evicted: Evicted,
}

impl<K: Hash + Eq, V: Entry> Table<K, V> {
    /// Holds `max` entries, one at least.
    pub fn new(max: usize) -> Self {
        Self {
            // It grows as it is filled: a bounded one takes all of its memory at once.
            entries: LruCache::unbounded(),
            max: max.max(1),
            evicted: Evicted::default(),
        }
    }

    /// The entry of a key, new if need be.
    #[inline]
    pub fn entry(&mut self, key: K) -> &mut V {
        if self.entries.len() >= self.max && !self.entries.contains(&key) {
            self.evict();
        }
        self.entries.get_or_insert_mut(key, V::default)
    }

    #[cold]
    fn evict(&mut self) {
        if let Some((_, entry)) = self.entries.pop_lru() {
            self.evicted.entries += 1;
            self.evicted.count.add_all(entry.count());
        }
    }

    /// All there are, and what was forgotten.
    pub fn into_parts(self) -> (impl Iterator<Item = (K, V)>, Evicted) {
        (self.entries.into_iter(), self.evicted)
    }
}
