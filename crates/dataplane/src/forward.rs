//! The forwarding loop: hands what one port's queue receives on to a queue of another, where rules allow it.

mod judge;
mod kernel;
mod samples;

use std::sync::Arc;

use measure::{Clock, Counter, Ticks};
use rules::Facts;

use crate::flows::FlowTable;
use crate::io::{Frames, FramesMut, Receive, Transmit};
use crate::rest::Rest;
use crate::slot::{Exchange, Fill};
use crate::{BURST_MAX, Phase, Task};

use judge::Seen;
pub use judge::{Judge, RuleCounters};
pub use kernel::{Beside, FromHost, Host, ToHost};
pub use samples::{Every, Sample, Sampler, Samples, samples};

/// What a forwarding task publishes while it runs. One writer: its worker.
#[derive(Debug, Default)]
pub struct ForwardCounters {
    /// Frames taken from the queue.
    pub frames: Counter,
    /// Bytes of these, without FCS.
    pub bytes: Counter,
    /// Frames that the other port's driver took.
    pub forwarded: Counter,
    /// Frames that a rule denied.
    pub denied: Counter,
    /// Frames in several buffers, of which the other port sends none, longer than it sends, or cut when they were received.
    pub oversized: Counter,
    /// Frames given up because the transmit queue stayed full longer than [`ForwardPlan::hold_ticks`].
    pub tx_full: Counter,
    /// Transmit calls that took less than was offered.
    pub queue_full: Counter,
    /// Frames addressed to the host, which its tap took.
    pub to_kernel: Counter,
    /// Frames addressed to the host that its tap did not take, or there was no time for.
    pub kernel_full: Counter,
    /// Frames addressed to several that went on, and of which the host's tap took a copy.
    pub copied: Counter,
    /// The same, without a copy: no buffer, no time, or the tap did not take it.
    pub uncopied: Counter,
    /// Frames of the host's own.
    pub from_kernel: Counter,
    /// Of these, what the other port's driver took.
    pub forwarded_own: Counter,
    /// 1 once nothing waits in the queue any more that came before the end.
    pub is_rest_taken: Counter,
}

impl ForwardCounters {
    /// Frames that were taken (the host's among them) and neither handed on nor given up: they wait for the transmit queue.
    pub fn held(&self) -> u64 {
        // What leaves first is read first, so that this is never less than nothing.
        let gone = [
            &self.forwarded,
            &self.denied,
            &self.oversized,
            &self.tx_full,
            &self.to_kernel,
            &self.kernel_full,
        ];
        let gone: u64 = gone.iter().map(|counter| counter.get()).sum();
        (self.frames.get() + self.from_kernel.get()).saturating_sub(gone)
    }
}

/// What becomes of a frame's MAC addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Rewrite {
    /// They stay as they are.
    #[default]
    Nothing,
    /// The frame is addressed anew.
    Addresses {
        /// To whom.
        destination: [u8; 6],
        /// From whom: the port that it leaves by.
        source: [u8; 6],
    },
    /// They change places.
    Swap,
}

impl Rewrite {
    /// Addresses all frames of a burst anew, and says what they are, in one pass.
    #[inline]
    fn frames(self, frames: &mut impl FramesMut) -> Seen {
        match self {
            Self::Nothing => measured(frames),
            Self::Addresses { destination, source } => {
                let mut head = [0; 12];
                head[..6].copy_from_slice(&destination);
                head[6..].copy_from_slice(&source);
                rewritten(frames, |to| to[..12].copy_from_slice(&head))
            }
            Self::Swap => rewritten(frames, swap),
        }
    }
}

#[inline]
fn measured(frames: &impl Frames) -> Seen {
    frames.each().fold(Seen::default(), |seen, (frame, len)| Seen {
        bytes: seen.bytes + len,
        has_chains: seen.has_chains | (frame.len() < len),
        ..seen
    })
}

#[inline]
fn rewritten(frames: &mut impl FramesMut, rewrite: impl Fn(&mut [u8; 14])) -> Seen {
    let (mut bytes, mut segments) = (0, 0);
    frames.each_mut().for_each(|(frame, count)| {
        bytes += frame.len();
        // Of numbers from 1 on this is 1 if all are.
        segments |= count;
        if let Some(head) = frame.first_chunk_mut() {
            rewrite(head);
        }
    });
    // Further segments are looked at where there are some.
    if segments > 1 {
        return measured(frames);
    }
    Seen {
        bytes,
        ..Seen::default()
    }
}

/// The addresses of an Ethernet header in each other's place. By two words that overlap, and without a shift over both of
/// them, which some processors take long for: few instructions are what this loop costs.
#[inline]
fn swap(head: &mut [u8; 14]) {
    const ADDRESS: u64 = (1 << 48) - 1;
    let [mut to, mut from] = [[0; 8]; 2];
    to.copy_from_slice(&head[..8]);
    from.copy_from_slice(&head[6..]);
    // `from` ends with the type, which stays.
    let (to, from) = (u64::from_le_bytes(to), u64::from_le_bytes(from));
    head[..8].copy_from_slice(&from.to_le_bytes());
    head[6..].copy_from_slice(&(to & ADDRESS | from & !ADDRESS).to_le_bytes());
}

/// What a forwarding task needs to know, besides its queues.
pub struct ForwardPlan {
    /// Frames a burst, at most half of [`BURST_MAX`].
    pub burst: usize,
    /// How long a full transmit queue is waited for, ticks. While waiting nothing is received: a queue that can push
    /// back (memif, ring) does, and a NIC's overflow is counted where it happens.
    pub hold_ticks: u64,
    /// The other port sends frames in several buffers.
    pub takes_chains: bool,
    /// What the ports do not say of frames that are too long for them.
    pub lengths: Option<Lengths>,
    /// What waits in the queue at the end came in the run: it is no file.
    pub takes_rest: bool,
    /// What becomes of MAC addresses.
    pub rewrite: Rewrite,
    /// The rules, and where others come from.
    pub rules: Option<(Judge, Arc<Exchange<Judge>>)>,
    /// Where flows are counted: all that is received, whatever rules say of it.
    pub flows: Option<FlowTable>,
    /// Whoever is told some of what is received, whatever rules say of it.
    pub samples: Option<Sampler>,
    /// What rates go by.
    pub clock: Clock,
    /// What it publishes.
    pub counters: Arc<ForwardCounters>,
}

/// How long frames may be, where ports do not say what they cut and what they drop.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    /// The port that they come by cuts them to this.
    pub cut_at: usize,
    /// The longest that the other port sends, without a VLAN tag.
    pub longest: usize,
}

impl Lengths {
    /// Whether it was cut, or is longer than the other port sends.
    fn refuse(self, frame: &[u8], len: usize) -> bool {
        const TAGGED: [u8; 2] = [0x81, 0];
        let is_tagged = || frame.get(12..14) == Some(&TAGGED);
        len >= self.cut_at || len > self.longest && (len > self.longest.saturating_add(4) || !is_tagged())
    }
}

/// Frames that a forwarding task may hold back.
pub const fn buffers_held(burst: usize) -> usize {
    burst
}

/// What a forwarding task leaves when it has ended.
#[derive(Clone, Copy, Debug)]
pub struct ForwardResult {
    /// Frames that were waiting for the transmit queue when the run ended, or still behind those in the receive queue.
    pub held: u64,
}

/// Forwards from one queue to another.
pub struct ForwardTask<R, T, B = ()>
where
    R: Receive<Frames: FramesMut>,
    T: Transmit<Frames = R::Frames>,
    B: Beside<R::Frames>,
{
    rx: R,
    tx: T,
    beside: B,
    plan: ForwardPlan,
    frames: R::Frames,
    /// They are the host's own.
    is_own: bool,
    waiting_since: Option<Ticks>,
    rest: Rest,
    totals: Fill<ForwardResult>,
}

impl<R, T> ForwardTask<R, T>
where
    R: Receive<Frames: FramesMut>,
    T: Transmit<Frames = R::Frames>,
{
    /// A task that sends what `rx` receives through `tx`, and leaves its totals in `totals`.
    pub fn new(rx: R, tx: T, plan: ForwardPlan, totals: Fill<ForwardResult>) -> Self {
        Self::beside(rx, tx, (), plan, totals)
    }
}

impl<R, T, B> ForwardTask<R, T, B>
where
    R: Receive<Frames: FramesMut>,
    T: Transmit<Frames = R::Frames>,
    B: Beside<R::Frames>,
{
    /// The same with somebody `beside` the link.
    pub fn beside(rx: R, tx: T, beside: B, plan: ForwardPlan, totals: Fill<ForwardResult>) -> Self {
        let rest = Rest::of(plan.takes_rest);
        plan.counters.is_rest_taken.set(u64::from(rest.is_taken()));
        Self {
            frames: rx.batch(),
            rx,
            tx,
            beside,
            plan,
            is_own: false,
            waiting_since: None,
            rest,
            totals,
        }
    }

    /// Throws out what must not go on, and gives the rest its addresses.
    #[inline]
    fn look_at(&mut self, now: Ticks) {
        let (plan, count) = (&mut self.plan, self.frames.len());
        if let Some(samples) = &mut plan.samples {
            samples.look(&self.frames, now);
        }
        // Who is not asked about any frame needs no look of its own.
        let is_whole = plan.rules.is_none() && plan.flows.is_none() && !self.beside.diverts();
        let seen = if is_whole {
            plan.rewrite.frames(&mut self.frames)
        } else if let Some((judge, _)) = &mut plan.rules {
            let mut keep = [true; BURST_MAX];
            let now_ns = plan.clock.ns(now).0;
            let seen = match &mut plan.flows {
                Some(flows) => {
                    let note = |facts: Option<&Facts>, len| flows.note(now, facts, len);
                    judge.judge_and_note(&self.frames, now_ns, &mut keep, note)
                }
                None => judge.judge(&self.frames, now_ns, &mut keep),
            };
            if seen.denied > 0 {
                plan.counters.denied.add(seen.denied as u64);
                self.frames.retain(&keep[..count]);
            }
            seen
        } else {
            if let Some(flows) = &mut plan.flows {
                for (frame, len) in self.frames.each() {
                    flows.note(now, rules::look(frame, len, 0).as_ref().ok(), len);
                }
            }
            measured(&self.frames)
        };
        if let Some(flows) = &mut plan.flows {
            flows.count(now);
        }
        plan.counters.frames.add(count as u64);
        plan.counters.bytes.add(seen.bytes as u64);
        if seen.has_chains && !plan.takes_chains {
            self.throw_out(|frame, len| frame.len() < len);
        }
        if let Some(lengths) = self.plan.lengths {
            let is_refused = |frame: &[u8], len| lengths.refuse(frame, len);
            if self.frames.each().any(|(frame, len)| is_refused(frame, len)) {
                self.throw_out(is_refused);
            }
        }
        if !is_whole {
            // Rules have spoken: they protect the host, too.
            self.beside.divert(&mut self.frames, now, &self.plan.counters);
            if self.plan.rewrite != Rewrite::Nothing {
                self.plan.rewrite.frames(&mut self.frames);
            }
        }
    }

    /// Throws out frames that the other port would not send as they were sent to us.
    #[cold]
    fn throw_out(&mut self, is_oversized: impl Fn(&[u8], usize) -> bool) {
        let mut keep = [true; BURST_MAX];
        for (keep, (frame, len)) in keep.iter_mut().zip(self.frames.each()) {
            *keep = !is_oversized(frame, len);
        }
        let count = self.frames.len();
        self.frames.retain(&keep[..count]);
        let thrown = count - self.frames.len();
        self.plan.counters.oversized.add(thrown as u64);
    }

    /// Offers what waits; gives it up when the queue has been full for too long.
    #[inline]
    fn offer(&mut self, now: Ticks) -> usize {
        let waiting = self.frames.len();
        if waiting == 0 {
            return 0;
        }
        let taken = self.tx.transmit(&mut self.frames, waiting);
        self.plan.counters.forwarded.add(taken as u64);
        if self.is_own {
            self.plan.counters.forwarded_own.add(taken as u64);
        }
        if taken == waiting {
            self.waiting_since = None;
            return taken;
        }
        self.plan.counters.queue_full.add(1);
        let since = *self.waiting_since.get_or_insert(now);
        if taken > 0 {
            self.waiting_since = Some(now);
        } else if now.since(since) > self.plan.hold_ticks {
            self.plan.counters.tx_full.add(waiting as u64);
            self.frames.clear();
            self.waiting_since = None;
        }
        taken
    }
}

impl<R, T, B> Task for ForwardTask<R, T, B>
where
    R: Receive<Frames: FramesMut>,
    T: Transmit<Frames = R::Frames>,
    B: Beside<R::Frames>,
{
    #[inline]
    fn poll(&mut self, now: Ticks, phase: Phase) -> usize {
        let mut moved = 0;
        if self.waiting_since.is_some() {
            moved = self.offer(now);
            if self.waiting_since.is_some() {
                return moved;
            }
        }
        // At the end what came before it is handed on, and nothing more is taken.
        let is_over = phase >= Phase::Drain;
        if !is_over || self.rest.begin() {
            let received = self.rx.receive(&mut self.frames, self.plan.burst);
            if is_over {
                self.rest.came(received);
                self.plan
                    .counters
                    .is_rest_taken
                    .set(u64::from(self.rest.is_taken()));
            }
            if received > 0 {
                self.is_own = false;
                self.look_at(now);
                moved += received.max(self.offer(now));
            }
            if self.frames.is_empty() && !is_over {
                let own = self.beside.receive(&mut self.frames, self.plan.burst);
                if own > 0 {
                    self.is_own = true;
                    self.plan.counters.from_kernel.add(own as u64);
                    moved += own.max(self.offer(now));
                }
            }
        }
        moved
    }

    fn renew(&mut self) {
        self.rx.renew();
        self.tx.renew();
        if let Some((judge, next)) = &mut self.plan.rules {
            next.renew(judge);
        }
    }

    fn take_rest(&mut self, now: Ticks) -> usize {
        if self.rest.begin() {
            return self.poll(now, Phase::Drain);
        }
        0
    }

    fn finish(mut self: Box<Self>) {
        let waiting = self.frames.len() as u64;
        let (count, bytes) = self.rest.discard(&mut self.rx, &mut self.frames);
        self.plan.counters.frames.add(count);
        self.plan.counters.bytes.add(bytes);
        self.totals.fill(ForwardResult {
            held: waiting + count,
        });
    }
}
