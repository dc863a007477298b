//! A reflector's counters between control and workers: what a reflector tells when it is asked, and what a sender was told.

use std::sync::Mutex;

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

/// What a sender was told: the newest answers to its question.
#[derive(Debug)]
pub struct Answers {
    /// Whoever answers repeats it: others cannot have seen it.
    pub nonce: u64,
    newest: ArrayQueue<ReflectorCounters>,
}

impl Answers {
    /// Those to the question with this nonce.
    pub fn to(nonce: u64) -> Self {
        Self {
            nonce,
            newest: ArrayQueue::new(8),
        }
    }

    /// Keeps the answer in `frame`, if it is one to the question that was asked.
    #[cold]
    pub fn take_from(&self, frame: &[u8]) {
        if let Some(counters) = ReflectorCounters::read(frame, self.nonce) {
            self.newest.force_push(counters);
        }
    }

    /// The oldest answer kept.
    pub fn pop(&self) -> Option<ReflectorCounters> {
        self.newest.pop()
    }
}
