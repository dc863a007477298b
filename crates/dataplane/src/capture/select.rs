//! Which frames of a burst are wanted: those that pass the filter, and of these whole flows.

use capture::filter::Filter;

use super::counters::ReceivedCounters;
use crate::BURST_MAX;
use crate::io::Frames;

/// Frames of a burst, by bits.
pub type Marks = u128;
const _: () = assert!(BURST_MAX <= Marks::BITS as usize);

/// The longest frame that is looked at in one piece where it came in several buffers; of longer ones the first buffer is.
const LONGEST: usize = 1 << 16;

/// One flow of so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample(u64);

impl Sample {
    /// One flow of `flows`, at least 1.
    pub const fn one_in(flows: u64) -> Self {
        Self(if flows == 0 { 1 } else { flows })
    }

    /// Whether the flow of `frame` is in the sample, in both directions and in every process.
    #[inline]
    pub fn has(self, frame: &[u8]) -> bool {
        (u128::from(wire::flow_hash(frame)) * u128::from(self.0)) >> 64 == 0
    }
}

/// What is wanted of a queue.
#[derive(Default)]
pub struct Selector {
    filter: Option<Filter>,
    sample: Option<Sample>,
    /// Where a frame of several buffers is put together.
    whole: Box<[u8]>,
}

impl Selector {
    /// What passes `filter`, and of that the flows of `sample`.
    pub fn new(filter: Option<Filter>, sample: Option<Sample>) -> Self {
        let looks = filter.is_some() || sample.is_some();
        Self {
            filter,
            sample,
            whole: vec![0; if looks { LONGEST } else { 0 }].into_boxed_slice(),
        }
    }

    /// Marks the frames that are not wanted, and counts them.
    #[inline]
    pub fn unwanted(&mut self, frames: &impl Frames, counters: &ReceivedCounters) -> Marks {
        if self.whole.is_empty() {
            return 0;
        }
        let (mut marks, mut filtered, mut sampled_out) = (0, 0, 0);
        for index in 0..frames.len() {
            let whole = if frames.is_segmented(index) {
                frames.copy_whole(index, &mut self.whole)
            } else {
                None
            };
            let frame = whole.unwrap_or_else(|| frames.bytes(index));
            let passes = |filter: &Filter| filter.passes(frame, frame.len() as u32);
            if self.filter.as_ref().is_some_and(|filter| !passes(filter)) {
                filtered += 1;
            } else if self.sample.is_some_and(|sample| !sample.has(frame)) {
                sampled_out += 1;
            } else {
                continue;
            }
            marks |= 1 << index;
        }
        counters.filtered.add(filtered);
        counters.sampled_out.add(sampled_out);
        marks
    }
}
