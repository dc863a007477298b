//! A place for the totals of one task: filled once, when its worker has ended, and read by whoever made it.

use std::sync::{Arc, OnceLock};

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

#[cfg(test)]
mod tests {
    use super::*;

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
