//! Places between control and one task: for its totals, filled once when its worker has ended, and for what it is given
//! while it polls.

use std::sync::{Arc, OnceLock};

use crossbeam_queue::ArrayQueue;

/// Where a task's totals are found once it has ended. A slot that nobody filled, because the worker died or still runs,
/// is seen to be empty: totals cannot be missing in silence.
#[derive(Debug)]
pub struct Slot<T>(Arc<OnceLock<T>>);

/// The one writer of a [`Slot`].
#[derive(Debug)]
pub struct Fill<T>(Arc<OnceLock<T>>);

impl<T> Slot<T> {
    /// An empty slot, and its writer.
    pub fn new() -> (Self, Fill<T>) {
        let place = Arc::new(OnceLock::new());
        (Self(Arc::clone(&place)), Fill(place))
    }

    /// What was left here; `None` while nothing was.
    pub fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// Takes it; `None` if nothing was left, or its task still lives.
    pub fn take(self) -> Option<T> {
        Arc::into_inner(self.0)?.into_inner()
    }
}

impl<T> Fill<T> {
    /// Fills the slot, for good.
    pub fn fill(self, value: T) {
        // Cannot be full: there is one writer, and this ends it.
        let _ = self.0.set(value);
    }
}

/// Where control leaves something for a task that has one of its kind, to be found when tasks are renewed, and takes back
/// the one before: tasks free nothing.
#[derive(Debug)]
pub struct Exchange<T> {
    next: ArrayQueue<T>,
    old: ArrayQueue<T>,
}

impl<T> Exchange<T> {
    /// With nothing in it.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            next: ArrayQueue::new(1),
            old: ArrayQueue::new(1),
        })
    }

    /// Leaves `next` there. The one before must have been taken back; what nobody has picked up yet is dropped.
    pub fn leave(&self, next: T) {
        let _ = self.next.force_push(next);
    }

    /// Takes what the task had before it was renewed.
    pub fn take_back(&self) -> Option<T> {
        self.old.pop()
    }

    /// For the task: puts what was left, if anything was, into the place of `has`.
    pub fn renew(&self, has: &mut T) {
        if let Some(next) = self.next.pop() {
            // There is place: control took the one before back.
            let _ = self.old.push(std::mem::replace(has, next));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_task_had_goes_back_to_control() {
        let exchange = Exchange::new();
        let mut has = "a";
        exchange.renew(&mut has);
        assert_eq!((has, exchange.take_back()), ("a", None));
        exchange.leave("b");
        exchange.leave("c");
        exchange.renew(&mut has);
        exchange.renew(&mut has);
        assert_eq!((has, exchange.take_back()), ("c", Some("a")));
        assert_eq!(exchange.take_back(), None);
    }

    #[test]
    fn a_slot_is_empty_until_its_writer_has_filled_it() {
        let (slot, fill) = Slot::new();
        assert_eq!(slot.get(), None);
        std::thread::spawn(move || fill.fill(7)).join().unwrap();
        assert_eq!(slot.get(), Some(&7));
        assert_eq!(slot.take(), Some(7));
    }

    #[test]
    fn a_writer_that_dies_leaves_it_empty() {
        let (slot, fill) = Slot::<u64>::new();
        let worker = std::thread::spawn(move || {
            let _fill = fill;
            std::panic::resume_unwind(Box::new("as a worker may"));
        });
        assert!(worker.join().is_err());
        assert_eq!(slot.take(), None);
    }
}
