//! A stream on a queue: which packet and which flow is next.

use wire::{BurstStamp, Template};

use crate::io::Blank;

#[derive(Clone, Copy, Default)]
pub(super) struct Lane {
    pub(super) sequence: u64,
    pub(super) accepted: u64,
    pub(super) flow: u32,
    /// Below `flows`, so that one subtraction wraps.
    pub(super) flow_step: u32,
    pub(super) flows: u32,
}

impl Lane {
    /// Flows that went out. start, start + step, ... modulo `flows` repeats after flows / gcd(flows, step) packets.
    pub(super) fn flows_sent(&self) -> u64 {
        self.accepted
            .min(u64::from(self.flows / gcd(self.flows, self.flow_step)))
    }
}

/// Writes frames of one stream and one size: everything but sequence and flow stays in registers.
#[inline(always)]
#[allow(clippy::inline_always, reason = "per packet: must vanish into the loop")]
pub(super) fn write_run<'b>(
    lane: &mut Lane,
    template: &Template,
    stamp: &BurstStamp,
    blanks: impl Iterator<Item = impl Blank<'b>>,
) {
    let Lane {
        mut sequence,
        mut flow,
        flow_step,
        flows,
        ..
    } = *lane;
    let len = template.frame_len();
    for blank in blanks {
        template.write(blank.write(len), stamp, sequence, flow);
        sequence += 1;
        flow += flow_step;
        if flow >= flows {
            flow -= flows;
        }
    }
    (lane.sequence, lane.flow) = (sequence, flow);
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}
