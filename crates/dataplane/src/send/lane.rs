//! A stream on a queue: which packet and which flow is next.

use wire::{BurstStamp, Template};

use crate::io::{AHEAD, Blank, FreshFrames, LINE};

#[derive(Clone, Copy, Default)]
pub(super) struct Lane {
    /// Of the next packet: so many were built.
    pub(super) sequence: u64,
    pub(super) flow: u32,
    /// Below `flows`, so that one subtraction wraps.
    pub(super) flow_step: u32,
    pub(super) flows: u32,
}

impl Lane {
    /// Flows that went out with the first packets. start, start + step, ... modulo `flows` repeats after flows / gcd(flows, step) packets.
    pub(super) fn flows_sent(&self, packets: u64) -> u64 {
        packets.min(u64::from(self.flows / gcd(self.flows, self.flow_step)))
    }

    /// Writes `count` frames of one size: everything but sequence and flow stays in registers.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "per packet: must vanish into the loop")]
    pub(super) fn write(
        &mut self,
        template: &Template,
        stamp: &BurstStamp,
        frames: &mut impl FreshFrames,
        mut first: usize,
        count: usize,
    ) {
        let len = template.frame_len();
        if len > LINE && count > AHEAD && frames.is_far() {
            return self.write_far(template, stamp, frames, first, count);
        }
        let mut sequence = self.sequence;
        if self.flows == 1 {
            for blank in frames.blanks(first, count) {
                template.write(blank.write(len), stamp, sequence, None);
                sequence += 1;
            }
        } else if template.has_stretches() {
            let mut left = count;
            while left > 0 {
                let mut stretch = template.stretch(self.flow, self.flow_step);
                let run = left.min(stretch.flows() as usize);
                for blank in frames.blanks(first, run) {
                    stretch.write(blank.write(len), stamp, sequence);
                    sequence += 1;
                    stretch.next(self.flow_step);
                }
                self.skip(run as u64);
                first += run;
                left -= run;
            }
        } else {
            for blank in frames.blanks(first, count) {
                let flow = template.flow(self.flow);
                template.write(blank.write(len), stamp, sequence, Some(&flow));
                sequence += 1;
                self.skip(1);
            }
        }
        self.sequence = sequence;
    }

    /// Writes `count` long frames, each fetched a little before it is written.
    #[inline(never)]
    fn write_far(
        &mut self,
        template: &Template,
        stamp: &BurstStamp,
        frames: &mut impl FreshFrames,
        first: usize,
        count: usize,
    ) {
        let len = template.frame_len();
        let end = first + count;
        for index in first..end {
            // What comes after these may be shorter.
            if index + AHEAD < end {
                frames.prefetch_rest_to_write(index + AHEAD, len);
            }
            self.write_in(template, stamp, frames.write(index, len));
        }
    }

    /// Writes one frame.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "as above")]
    pub(super) fn write_one<'b>(&mut self, template: &Template, stamp: &BurstStamp, blank: impl Blank<'b>) {
        self.write_in(template, stamp, blank.write(template.frame_len()));
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "as above")]
    fn write_in(&mut self, template: &Template, stamp: &BurstStamp, room: &mut [u8]) {
        if self.flows == 1 {
            template.write(room, stamp, self.sequence, None);
        } else {
            template.write(room, stamp, self.sequence, Some(&template.flow(self.flow)));
            self.skip(1);
        }
        self.sequence += 1;
    }

    /// Goes on by some flows, at most once round.
    #[inline]
    fn skip(&mut self, count: u64) {
        let flow = u64::from(self.flow) + count * u64::from(self.flow_step);
        let flows = u64::from(self.flows);
        self.flow = if flow < flows { flow } else { flow - flows } as u32;
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}
