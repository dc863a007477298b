//! The receiving loop: every frame is verified, matched to its lane's sequence, timed, and counted once.

mod books;
mod counters;
mod plan;
mod result;

pub use counters::ReceiveCounters;
pub use plan::ReceivePlan;
pub use result::{LaneResult, ReceiveResult};

use measure::{Nanos, Ticks};
use wire::{Class, Classifier, Foreign, MAX_FRAME_SIZE, Verify, classify};

use crate::io::{AHEAD, Frames, LINE, Receive};
use crate::slot::Fill;
use crate::{BURST_MAX, Phase, Task};
use books::{Books, Run};

/// Buffers that a receiving task may hold back.
pub const fn buffers_held(burst: usize) -> usize {
    burst
}

/// Receives on one queue.
pub struct ReceiveTask<R: Receive> {
    io: R,
    frames: R::Frames,
    classifier: Classifier,
    /// Room for all of a chained frame.
    whole: Box<[u8]>,
    /// The runs of a burst.
    runs: Box<[Run; BURST_MAX]>,
    books: Books,
    totals: Fill<ReceiveResult>,
}

impl<R: Receive> ReceiveTask<R> {
    /// A task that receives on `io` as planned, and leaves its totals in `totals`.
    pub fn new(io: R, plan: ReceivePlan, totals: Fill<ReceiveResult>) -> Self {
        Self {
            frames: io.batch(),
            classifier: Classifier::new(plan.run, plan.verify),
            whole: vec![0; MAX_FRAME_SIZE].into_boxed_slice(),
            runs: Box::new([Run::NONE; BURST_MAX]),
            io,
            totals,
            books: Books::new(plan),
        }
    }

    /// `ALONE`: no port of the run shares a link with another, so that no probe is asked where it comes from, and no frame is
    /// in another core's cache, from which what is read of it is worth being fetched ahead.
    #[inline]
    fn account_burst<const ALONE: bool>(&mut self, at: Nanos) {
        let Self {
            io,
            frames,
            classifier,
            whole,
            runs,
            books,
            ..
        } = self;
        let count = frames.len();
        let (mut run, mut complete) = (Run::NONE, 0);
        let mut bytes = 0;
        let fetches = io.is_far() && books.plan.verify != Verify::None;
        // A copy on the stack: nothing that is called here can change it, so it stays in registers.
        let mut judge = *classifier;
        let mut each = frames.each();
        while let Some((frame, whole_len)) = each.next() {
            bytes += whole_len as u64;
            if !ALONE && fetches && frame.len() > LINE {
                frames.prefetch_rest(count - 1 - each.len() + AHEAD);
            }
            let probe = match judge.classify_first(frame, whole_len) {
                Some(Class::Probe(probe)) => {
                    if !ALONE {
                        books.hear(frame);
                    }
                    Some(probe)
                }
                Some(other) => {
                    books.account_other(frame, &other, at);
                    None
                }
                None => {
                    let all = frames.copy_whole(count - 1 - each.len(), whole);
                    books.account_chained(all, at)
                }
            };
            let Some(next) = probe.as_ref().map(Run::of) else {
                continue;
            };
            if !run.takes(&next) {
                if run.count > 0 {
                    runs[complete] = run;
                    complete += 1;
                }
                run = next;
            }
        }
        *classifier = judge;
        if run.count > 0 {
            runs[complete] = run;
            books.account(&runs[..=complete], at);
        }
        books.plan.counters.frames.add(count as u64);
        books.plan.counters.bytes.add(bytes);
    }

    /// Before the run: old frames go, but the neighbours are answered already.
    #[cold]
    fn flush(&mut self) {
        let plan = &self.books.plan;
        for index in 0..self.frames.len() {
            if self.frames.is_segmented(index) {
                continue;
            }
            let frame = self.frames.bytes(index);
            match classify(frame, plan.run, Verify::None) {
                Class::Foreign(Foreign::Arp | Foreign::Ndp) => {
                    plan.replies.answer(frame, &plan.me);
                }
                Class::Foreign(Foreign::ReflectorCounters) => plan.answers.take_from(frame),
                _ => {}
            }
        }
        plan.counters.flushed.add(self.frames.len() as u64);
    }
}

impl<R: Receive> Task for ReceiveTask<R> {
    #[inline]
    fn poll(&mut self, now: Ticks, phase: Phase) -> usize {
        self.books.publish(now);
        let count = self.io.receive(&mut self.frames, self.books.plan.burst);
        if count == 0 {
            return 0;
        }
        let at = self.books.plan.clock.ns((self.books.plan.tsc)());
        // A worker that was stopped before it received, after it had looked at the phase, finds frames of the run.
        if phase == Phase::Warm && at < self.books.plan.start {
            self.flush();
        } else if self.books.plan.own_macs.is_empty() && !self.io.is_far() {
            self.account_burst::<true>(at);
        } else {
            self.account_burst::<false>(at);
        }
        self.frames.clear();
        count
    }

    fn renew(&mut self) {
        self.io.renew();
    }

    fn finish(self: Box<Self>) {
        self.totals.fill(self.books.end());
    }
}
