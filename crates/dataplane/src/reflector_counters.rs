//! A reflector's counters between control and workers: what a reflector tells when it is asked, and what a sender was told.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_queue::ArrayQueue;
use wire::ReflectorCounters;

/// A reflector's counters. Control brings them up to date; the worker that a question reaches never waits for control.
#[derive(Debug, Default)]
pub struct OwnCounters(Mutex<ReflectorCounters>);

impl OwnCounters {
    /// Those of a port that begins now, under a number of its own.
    pub fn of(account: u64) -> Self {
        let mut own = ReflectorCounters::default();
        own.account = account;
        Self(Mutex::new(own))
    }

    /// Replaces what is told; counts the generation up.
    pub fn publish(&self, counters: ReflectorCounters) {
        if let Ok(mut own) = self.0.lock() {
            let (account, generation) = (own.account, own.generation + 1);
            *own = counters;
            (own.account, own.generation) = (account, generation);
        }
    }

    /// Answers `frame` in place; `false` if it is no question, or control is just at it: the asker asks again.
    pub fn answer(&self, frame: &mut [u8]) -> bool {
        self.0.try_lock().is_ok_and(|own| own.answer(frame))
    }
}

/// What a sender was told: the newest answers to the question that it asks at the time. Whoever answers repeats the
/// question's nonce, which others cannot have seen.
#[derive(Debug)]
pub struct Answers {
    nonce: AtomicU64,
    newest: ArrayQueue<(u64, ReflectorCounters)>,
}

impl Default for Answers {
    fn default() -> Self {
        Self {
            nonce: AtomicU64::default(),
            newest: ArrayQueue::new(8),
        }
    }
}

impl Answers {
    /// From now on those to the question with this nonce are kept, and no others.
    pub fn expect(&self, nonce: u64) {
        self.nonce.store(nonce, Ordering::Relaxed);
    }

    /// Keeps the answer in `frame`, if it is one to the question that is asked.
    #[cold]
    pub fn take_from(&self, frame: &[u8]) {
        let nonce = self.nonce.load(Ordering::Relaxed);
        if let Some(counters) = ReflectorCounters::read(frame, nonce) {
            self.newest.force_push((nonce, counters));
        }
    }

    /// The oldest answer kept to the question with this nonce.
    pub fn pop(&self, nonce: u64) -> Option<ReflectorCounters> {
        // A worker may have been about to keep one to the question before.
        std::iter::from_fn(|| self.newest.pop()).find_map(|(to, counters)| (to == nonce).then_some(counters))
    }
}
