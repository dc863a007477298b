//! Something that is done at the end of a scope, also where that end is a panic.

/// Does it when it is dropped. One tells threads of `thread::scope` that run until they are told to end: the scope waits for
/// them, for ever where whoever was to tell them has panicked.
pub struct AtEnd<F: Fn()>(pub F);

impl<F: Fn()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        self.0();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_panic_ends_the_threads_that_a_scope_waits_for() {
        let stop = AtomicBool::new(false);
        let panics = || {
            std::thread::scope(|scope| {
                let _stop = AtEnd(|| stop.store(true, Ordering::Release));
                scope.spawn(|| {
                    while !stop.load(Ordering::Acquire) {
                        std::thread::yield_now();
                    }
                });
                panic!("on purpose");
            });
        };
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    }
}
