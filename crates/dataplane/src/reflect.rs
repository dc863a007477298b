//! The reflecting loop: returns what it gets with its addresses swapped, answers as a host would, and counts the rest.

use std::sync::Arc;

use measure::{Counter, Ticks};
use wire::{Addresses, DropReason, Reflector};

use crate::fault::Faults;
use crate::io::{Allocate, Frames, FramesMut, Receive, Transmit};
use crate::reflector_counters::OwnCounters;
use crate::rest::Rest;
use crate::slot::Fill;
use crate::{BURST_MAX, Phase, Task};

/// What a reflecting task publishes while it runs. One writer: its worker.
#[derive(Debug)]
pub struct ReflectCounters {
    /// Frames taken from the queue.
    pub frames: Counter,
    /// Bytes of these, without FCS.
    pub bytes: Counter,
    /// Frames the driver took back.
    pub returned: Counter,
    /// ARP, NDP and echo requests among `returned` that were answered, not swapped.
    pub answered: Counter,
    /// Questions for these counters among `returned` that were answered.
    pub told: Counter,
    /// Frames not returned, by reason.
    pub dropped: [Counter; DropReason::COUNT],
    /// Chained frames, longer than a buffer: not returned, since not every port can send a chain.
    pub oversized: Counter,
    /// Frames given up because the transmit queue stayed full longer than [`ReflectPlan::hold_ticks`].
    pub tx_full: Counter,
    /// Transmit calls that took less than was offered.
    pub queue_full: Counter,
}

impl ReflectCounters {
    /// Zeroed counters.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            frames: Counter::default(),
            bytes: Counter::default(),
            returned: Counter::default(),
            answered: Counter::default(),
            told: Counter::default(),
            dropped: std::array::from_fn(|_| Counter::default()),
            oversized: Counter::default(),
            tx_full: Counter::default(),
            queue_full: Counter::default(),
        })
    }
}

/// Buffers that a reflecting task may hold back, without those of its fault injector: a burst, and what waits for the
/// driver behind the injector.
pub const fn buffers_held(burst: usize) -> usize {
    burst + BURST_MAX
}

/// What our own MAC address has to do with what is reflected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OwnMac {
    /// Nothing: source and destination change places.
    #[default]
    Any,
    /// What goes back comes from it, whomever it was sent to: others learn from it where we are.
    Source,
    /// Only what was sent to it goes back: others share the link.
    Destination,
}

/// What a reflecting task needs to know, besides its queues.
pub struct ReflectPlan {
    /// Return probes only.
    pub only_ours: bool,
    /// Whose ARP, NDP and echo requests are answered.
    pub me: Addresses,
    /// What our own MAC address has to do with it.
    pub own_mac: OwnMac,
    /// Frames a burst, at most half of [`BURST_MAX`].
    pub burst: usize,
    /// How long a full transmit queue is waited for, ticks. While waiting nothing is received: a queue that can push
    /// back (memif, ring) does, and a NIC's overflow is counted where it happens.
    pub hold_ticks: u64,
    /// What waits in the queue at the end came in the run: its sender is in another process.
    pub takes_rest: bool,
    /// What it publishes.
    pub counters: Arc<ReflectCounters>,
    /// What it tells a sender that asks.
    pub own_counters: Option<Arc<OwnCounters>>,
}

/// What a reflecting task leaves when it has ended.
#[derive(Debug)]
pub struct ReflectResult {
    /// Frames that were waiting for the transmit queue, or held by the fault injector, when the run ended, or still behind those in
    /// the receive queue.
    pub held: u64,
}

/// Reflects one queue pair.
pub struct ReflectTask<R, T, A>
where
    R: Receive<Frames: FramesMut>,
    T: Transmit<Frames = R::Frames>,
    A: Allocate<Frames = R::Frames>,
{
    rx: R,
    tx: T,
    plan: ReflectPlan,
    frames: R::Frames,
    /// What the fault injector let through; unused without one.
    out: R::Frames,
    faults: Option<Faults<A>>,
    waiting_since: Option<Ticks>,
    rest: Rest,
    reflector: Reflector,
    /// What was not turned round of the batch under way: where it lies, and why.
    refused: [(u8, Option<DropReason>); BURST_MAX],
    totals: Fill<ReflectResult>,
}

impl<R, T, A> ReflectTask<R, T, A>
where
    R: Receive<Frames: FramesMut>,
    T: Transmit<Frames = R::Frames>,
    A: Allocate<Frames = R::Frames>,
{
    /// A task that returns what `rx` receives through `tx`, and leaves its totals in `totals`.
    pub fn new(
        rx: R,
        tx: T,
        plan: ReflectPlan,
        faults: Option<Faults<A>>,
        totals: Fill<ReflectResult>,
    ) -> Self {
        let reflector = Reflector::new(plan.only_ours);
        let reflector = match plan.own_mac {
            OwnMac::Any => reflector,
            OwnMac::Source => reflector.from_mac(plan.me.mac),
            OwnMac::Destination => reflector.only_to_mac(plan.me.mac),
        };
        Self {
            frames: rx.batch(),
            out: tx.batch(),
            rx,
            tx,
            rest: Rest::of(plan.takes_rest),
            plan,
            faults,
            waiting_since: None,
            reflector,
            refused: [(0, None); BURST_MAX],
            totals,
        }
    }

    /// Swaps or answers every frame of the batch; what must not be returned is counted and freed.
    #[inline]
    fn turn_round(&mut self) {
        let Self {
            frames,
            reflector,
            refused,
            ..
        } = self;
        let count = frames.len();
        let mut refusals = 0;
        let mut bytes = 0;
        for (index, (frame, segments)) in frames.each_mut().enumerate() {
            bytes += frame.len() as u64;
            let reason = if segments > 1 {
                None
            } else {
                match reflector.turn(frame) {
                    Ok(()) => continue,
                    Err(reason) => Some(reason),
                }
            };
            refused[refusals] = (index as u8, reason);
            refusals += 1;
        }
        if refusals > 0 {
            self.answer_or_drop(refusals);
        }
        self.plan.counters.frames.add(count as u64);
        self.plan.counters.bytes.add(bytes);
    }

    /// What was not turned round is answered where a host would, and else counted by its reason and freed.
    #[cold]
    fn answer_or_drop(&mut self, refusals: usize) {
        let mut keep = [true; BURST_MAX];
        let counters = &self.plan.counters;
        for (index, reason) in &self.refused[..refusals] {
            let index = usize::from(*index);
            if self.frames.is_segmented(index) {
                counters.oversized.add(1);
                // The first buffer's are counted with the others'.
                let further = self.frames.whole_len(index) - self.frames.bytes(index).len();
                counters.bytes.add(further as u64);
                keep[index] = false;
                continue;
            }
            let len = self.frames.bytes(index).len();
            // The other host answers for itself.
            let is_for_us = *reason != Some(DropReason::OtherHost);
            let own_counters = self.plan.own_counters.as_ref().filter(|_| is_for_us);
            let answer = || wire::answer(self.frames.room_mut(index), len, &self.plan.me);
            if let Some(len) = is_for_us.then(answer).flatten() {
                self.frames.set_len(index, len);
                counters.answered.add(1);
            } else if own_counters.is_some_and(|own| own.answer(&mut self.frames.room_mut(index)[..len])) {
                counters.told.add(1);
            } else if let Some(reason) = reason {
                counters.dropped[reason.index()].add(1);
                keep[index] = false;
            }
        }
        self.frames.retain(&keep[..self.frames.len()]);
    }

    /// Offers what waits; gives it up when the queue has been full for too long.
    #[inline]
    fn offer(&mut self, now: Ticks) -> usize {
        let out = if self.faults.is_none() {
            &mut self.frames
        } else {
            &mut self.out
        };
        let waiting = out.len();
        if waiting == 0 {
            return 0;
        }
        let taken = self.tx.transmit(out, waiting);
        self.plan.counters.returned.add(taken as u64);
        if taken == waiting {
            self.waiting_since = None;
            return taken;
        }
        self.plan.counters.queue_full.add(1);
        let since = *self.waiting_since.get_or_insert(now);
        if taken > 0 {
            self.waiting_since = Some(now);
        } else if now.0.saturating_sub(since.0) > self.plan.hold_ticks {
            self.plan.counters.tx_full.add(waiting as u64);
            out.clear();
            self.waiting_since = None;
        }
        taken
    }

    /// A round: how many packets it moved, and how many came, if the queue was asked.
    #[inline]
    fn turn(&mut self, now: Ticks) -> (usize, Option<usize>) {
        let mut moved = 0;
        if self.waiting_since.is_some() {
            moved = self.offer(now);
            if self.waiting_since.is_some() {
                return (moved, None);
            }
        }
        let mut received = None;
        // The fault injector leaves frames behind when its output is full.
        if self.frames.is_empty() {
            let count = self.rx.receive(&mut self.frames, self.plan.burst);
            if count > 0 {
                self.turn_round();
            }
            received = Some(count);
        }
        if let Some(faults) = &mut self.faults {
            let more = received == Some(self.plan.burst);
            faults.pass(&mut self.frames, &mut self.out, now, more);
        }
        (moved + self.offer(now), received)
    }
}

impl<R, T, A> Task for ReflectTask<R, T, A>
where
    R: Receive<Frames: FramesMut>,
    T: Transmit<Frames = R::Frames>,
    A: Allocate<Frames = R::Frames>,
{
    #[inline]
    fn poll(&mut self, now: Ticks, _phase: Phase) -> usize {
        self.turn(now).0
    }

    fn renew(&mut self) {
        self.rx.renew();
        self.tx.renew();
    }

    fn take_rest(&mut self, now: Ticks) -> usize {
        if !self.rest.begin() {
            return 0;
        }
        let (moved, received) = self.turn(now);
        if let Some(received) = received {
            self.rest.came(received);
        }
        // Not all that comes is returned.
        moved + received.unwrap_or(0)
    }

    fn finish(mut self: Box<Self>) {
        let injected = self.faults.as_ref().map_or(0, Faults::held);
        let waiting = (self.out.len() + self.frames.len() + injected) as u64;
        let (count, bytes) = self.rest.discard(&mut self.rx, &mut self.frames);
        self.plan.counters.frames.add(count);
        self.plan.counters.bytes.add(bytes);
        self.totals.fill(ReflectResult {
            held: waiting + count,
        });
    }
}
