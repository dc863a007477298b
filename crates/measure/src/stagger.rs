//! Spreads equal blocks of memory over the cache: large blocks all begin at a page, so that the same place in each of a
//! hundred of them (a lane's newest word, a latency's bucket) would fall into one set of the cache.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A page of 64-byte lines.
const LINES: usize = 64;

/// How many lines into its block the next maker puts its data; counts round a page.
pub(crate) fn next_lines() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Relaxed) % LINES
}
