//! Accounts between control and workers: what a reflector tells when it is asked, and what a sender was told.

use std::sync::Mutex;

use crossbeam_queue::ArrayQueue;
use wire::Account;

/// A reflector's account. Control brings it up to date; the worker that a question reaches never waits for control.
#[derive(Debug, Default)]
pub struct OwnAccount(Mutex<Account>);

impl OwnAccount {
    /// Replaces what is told; counts the generation up.
    pub fn publish(&self, account: Account) {
        if let Ok(mut own) = self.0.lock() {
            let generation = own.generation + 1;
            *own = account;
            own.generation = generation;
        }
    }

    /// Answers `frame` in place; `false` if it is no question, or control is just at it: the asker asks again.
    pub fn answer(&self, frame: &mut [u8]) -> bool {
        self.0.try_lock().is_ok_and(|own| own.answer(frame))
    }
}

/// What a sender was told: the newest answers.
#[derive(Debug)]
pub struct Answers(ArrayQueue<Account>);

impl Default for Answers {
    fn default() -> Self {
        Self(ArrayQueue::new(8))
    }
}

impl Answers {
    /// Keeps the answer in `frame` to a question of `run`.
    #[cold]
    pub fn take_from(&self, frame: &[u8], run: u8) {
        if let Some(account) = Account::read(frame, run) {
            self.0.force_push(account);
        }
    }

    /// The oldest answer kept.
    pub fn pop(&self) -> Option<Account> {
        self.0.pop()
    }
}
