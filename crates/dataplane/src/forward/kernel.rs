//! The host beside a forwarded link: what is addressed to it, and what it says, by way of a tap.

use measure::Ticks;

use super::ForwardCounters;
use crate::BURST_MAX;
use crate::io::{Allocate, Frames, FramesMut, FreshFrames, Receive, Transmit};

/// Of a worker's time one part in so many is for the host at most: each of its frames is a system call, and whoever floods
/// the host's address shall not stop what only passes by.
const PART: u64 = 4;

/// Somebody beside the link. `()` is nobody, and costs nothing.
pub trait Beside<F>: Send {
    /// Whether some frames may be meant for it.
    fn diverts(&self) -> bool;
    /// Takes the frames that are meant for it alone out of a burst that came at `now`, and copies of those that are for all.
    fn divert(&mut self, frames: &mut F, now: Ticks, counters: &ForwardCounters);
    /// Appends up to `max` frames of its own, and returns how many.
    fn receive(&mut self, into: &mut F, max: usize) -> usize;
}

impl<F: Frames + Send> Beside<F> for () {
    #[inline]
    fn diverts(&self) -> bool {
        false
    }

    #[inline]
    fn divert(&mut self, _frames: &mut F, _now: Ticks, _counters: &ForwardCounters) {}

    #[inline]
    fn receive(&mut self, _into: &mut F, _max: usize) -> usize {
        0
    }
}

/// The host: to it goes what came in by a port with a tap, and from it comes what leaves by one.
pub struct Host<R, T, A>
where
    R: Receive,
    T: Transmit<Frames = R::Frames>,
{
    /// Towards the host.
    pub to: Option<ToHost<T, A>>,
    /// From the host.
    pub from: Option<FromHost<R>>,
}

/// The way from the host.
pub struct FromHost<R> {
    rx: R,
    budget: Budget,
}

impl<R> FromHost<R> {
    /// Receives through `rx`; up to `saved_ticks` of the host's time may be saved up.
    pub fn new(rx: R, clock: (fn() -> Ticks, u64)) -> Self {
        Self {
            rx,
            budget: Budget::new(clock),
        }
    }
}

/// The way to the host.
pub struct ToHost<T: Transmit, A> {
    tx: T,
    buffers: A,
    mac: [u8; 6],
    /// What goes there in this burst.
    out: [T::Frames; 1],
    budget: Budget,
}

/// The time that the host may cost.
struct Budget {
    /// Reads the time stamp counter.
    tsc: fn() -> Ticks,
    /// Ticks that may be saved up, and owed.
    saved_max: i64,
    left: i64,
    at: Ticks,
}

impl Budget {
    fn new((tsc, saved_ticks): (fn() -> Ticks, u64)) -> Self {
        let saved_max = i64::try_from(saved_ticks).unwrap_or(i64::MAX);
        Self {
            tsc,
            saved_max,
            left: saved_max,
            at: tsc(),
        }
    }

    /// Whether there is any at `now`.
    fn has_any(&mut self, now: Ticks) -> bool {
        let earned = now.since(self.at) / PART;
        self.at = now;
        self.left = self.left.saturating_add_unsigned(earned).min(self.saved_max);
        self.left > 0
    }

    fn spend(&mut self, since: Ticks) {
        let spent = (self.tsc)().since(since);
        // A worker that was stopped meanwhile does not owe all of that.
        self.left = self.left.saturating_sub_unsigned(spent).max(-self.saved_max);
    }
}

impl<T, A> ToHost<T, A>
where
    T: Transmit<Frames: FramesMut + FreshFrames>,
    A: Allocate<Frames = T::Frames>,
{
    /// Sends what is addressed to `mac`, and copies in `buffers` of what is addressed to several, through `tx`. Up to
    /// `saved_ticks` of the host's time may be saved up.
    pub fn new(tx: T, buffers: A, mac: [u8; 6], clock: (fn() -> Ticks, u64)) -> Self {
        Self {
            out: [tx.batch()],
            tx,
            buffers,
            mac,
            budget: Budget::new(clock),
        }
    }

    #[cold]
    fn send(&mut self, frames: &mut T::Frames, to: &[u8], now: Ticks, counters: &ForwardCounters) {
        let (own, all) = to.iter().fold((0, 0), |(own, all), to| {
            (own + u64::from(*to == OWN), all + u64::from(*to == ALL))
        });
        if !self.budget.has_any(now) {
            counters.uncopied.add(all);
            counters.kernel_full.add(own);
            let mut keep = [true; BURST_MAX];
            for (keep, to) in keep.iter_mut().zip(to) {
                *keep = *to != OWN;
            }
            frames.retain(&keep[..to.len()]);
            return;
        }
        let begun = (self.budget.tsc)();
        let out = &mut self.out[0];
        let mut copied = 0;
        for (index, _) in to.iter().enumerate().filter(|(_, to)| **to == ALL) {
            copied += u64::from(copy(frames, index, &mut self.buffers, out));
        }
        // Each frame of its own goes to the only batch there is; others name none.
        let before = frames.len();
        frames.distribute(to, &mut self.out);
        let moved = (before - frames.len()) as u64;
        let out = &mut self.out[0];
        let taken = self.tx.transmit(out, out.len()) as u64;
        // Nobody waits for the host. What it did not take is the end of the batch: copies lie first.
        out.clear();
        let of_all = taken.min(copied);
        counters.copied.add(of_all);
        counters.uncopied.add(all - of_all);
        counters.to_kernel.add(taken - of_all);
        counters.kernel_full.add(moved - (taken - of_all));
        self.budget.spend(begun);
    }
}

/// Copies a frame that lies in one buffer; whether it could.
fn copy<F, A>(frames: &F, index: usize, buffers: &mut A, out: &mut F) -> bool
where
    F: FramesMut + FreshFrames,
    A: Allocate<Frames = F>,
{
    if frames.is_segmented(index) || buffers.allocate(out, 1) == 0 {
        return false;
    }
    let bytes = frames.bytes(index);
    let room = out.write(out.len() - 1, bytes.len());
    room[..bytes.len()].copy_from_slice(bytes);
    true
}

/// The only batch that frames are distributed to.
const OWN: u8 = 0;
/// No batch: they go on, and a copy to the host.
const ALL: u8 = 1;
/// No batch: they go on.
const OTHER: u8 = 2;

impl<R, T, A> Beside<R::Frames> for Host<R, T, A>
where
    R: Receive<Frames: FramesMut + FreshFrames>,
    T: Transmit<Frames = R::Frames>,
    A: Allocate<Frames = R::Frames>,
{
    #[inline]
    fn diverts(&self) -> bool {
        self.to.is_some()
    }

    #[inline]
    fn divert(&mut self, frames: &mut R::Frames, now: Ticks, counters: &ForwardCounters) {
        let Some(host) = &mut self.to else { return };
        let mut to = [OTHER; BURST_MAX];
        let mut any = false;
        for ((frame, _), to) in frames.each().zip(&mut to) {
            let Some(destination) = frame.first_chunk::<6>() else {
                continue;
            };
            *to = if *destination == host.mac {
                OWN
            } else if destination[0] & 1 != 0 {
                ALL
            } else {
                continue;
            };
            any = true;
        }
        if any {
            let count = frames.len();
            host.send(frames, &to[..count], now, counters);
        }
    }

    #[inline]
    fn receive(&mut self, into: &mut R::Frames, max: usize) -> usize {
        let Some(from) = &mut self.from else { return 0 };
        let begun = (from.budget.tsc)();
        // What there is no time for waits in the tap, and is the kernel's to drop.
        if !from.budget.has_any(begun) {
            return 0;
        }
        let received = from.rx.receive(into, max);
        if received > 0 {
            from.budget.spend(begun);
        }
        received
    }
}
