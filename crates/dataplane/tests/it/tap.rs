//! Taps: a queue that is looked into moves what it moved before, and what went by is copied or counted, to the frame.
#![allow(clippy::unwrap_used, reason = "a test says so by failing")]

use std::cell::Cell;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use capture::pcapng::{self, Direction};
use capture::ring::layout::{SEGMENT_MIN, header, slot};
use capture::ring::{Consumer, Producer};
use dataplane::capture::{TapCounters, TapReceive};
use dataplane::io::{Frames, FramesMut, Receive, Transmit};
use dataplane::memory::{MemoryFrame, MemoryLink};
use dataplane::tap::{Tap, TapPlan, TapSlot, Tapped};
use dataplane::worker::WorkerCounters;
use measure::{Clock, Ticks};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use proptest::prelude::*;

thread_local!(static NOW: Cell<u64> = const { Cell::new(1_000_000) });

fn now() -> Ticks {
    Ticks(NOW.get())
}

/// A tap on a queue of `worker`, and who reads it.
fn tap(worker: &Arc<WorkerCounters>, direction: Direction, snap_len: usize) -> (Tap, Consumer) {
    tap_by(worker, direction, snap_len, (1, now))
}

/// The same, one of so many of the worker, by this clock.
fn tap_by(
    worker: &Arc<WorkerCounters>,
    direction: Direction,
    snap_len: usize,
    (taps, tsc): (u64, fn() -> Ticks),
) -> (Tap, Consumer) {
    let (mut producer, ring) = Producer::new(2, 4 * SEGMENT_MIN, &pcapng::preamble("test", &[])).unwrap();
    let (_, page) = ring.seat(true).unwrap();
    producer.commit();
    let consumer = Consumer::new(ring.file(), page).unwrap();
    let plan = TapPlan {
        interface: 3,
        queue: 0,
        direction,
        snap_len,
        taps,
        burst_ticks: 1_000,
        tsc,
    };
    (Tap::new(producer, plan, Arc::clone(worker)), consumer)
}

/// A clock that goes on by as much at each look.
fn looked_at() -> Ticks {
    NOW.set(NOW.get() + 400);
    Ticks(NOW.get())
}

fn frame(number: u64, len: usize) -> MemoryFrame {
    let mut bytes: Vec<u8> = (0..len).map(|at| (at as u64 * 3 + number) as u8).collect();
    bytes[..8].copy_from_slice(&number.to_ne_bytes());
    MemoryFrame::in_segments(bytes.chunks(300))
}

/// All that is there, in order.
fn read(tap: &mut TapReceive) -> Vec<Vec<u8>> {
    let (mut all, mut frames) = (Vec::new(), tap.batch());
    while tap.receive(&mut frames, 64) > 0 {
        all.extend((0..frames.len()).map(|index| frames.bytes(index).to_vec()));
        frames.clear();
    }
    all
}

#[derive(Clone, Debug)]
struct Case {
    /// Frames that are offered in a round, those that the queue has place for, and the time that the round takes.
    rounds: Vec<(usize, usize, u64)>,
    len: usize,
    snap_len: usize,
    /// The worker is never idle.
    is_busy: bool,
    /// The reader looks after so many rounds.
    reads_every: usize,
    is_sent: bool,
}

fn check(case: &Case) {
    NOW.set(1_000_000);
    let worker = Arc::<WorkerCounters>::default();
    let slot = TapSlot::new(Arc::clone(&worker));
    // What goes through it is what one without a tap would take.
    let link = MemoryLink::new(1 << 20);
    let direction = if case.is_sent {
        Direction::Out
    } else {
        Direction::In
    };
    let (tap, consumer) = tap(&worker, direction, case.snap_len);
    let counters = Arc::<TapCounters>::default();
    let clock = Clock::from_calibration(0, 0, 1e9);
    let mut reader = TapReceive::new(consumer, clock, Arc::clone(&counters));
    let most = Arc::<AtomicUsize>::default();
    let narrow = Narrow {
        link: link.clone(),
        most: Arc::clone(&most),
    };
    let (mut seen, mut copied, mut number) = (Vec::new(), Vec::new(), 0);
    slot.leave(Some(tap));
    {
        let mut tapped = Tapped::new(narrow, Arc::clone(&slot));
        Receive::renew(&mut tapped);
        let mut waiting = Receive::batch(&tapped);
        for (round, (offered, room, ticks)) in case.rounds.iter().enumerate() {
            most.store(*room, Ordering::Relaxed);
            if case.is_sent {
                while waiting.len() < *offered {
                    let _ = waiting.push(frame(number, case.len));
                    number += 1;
                }
                let before: Vec<Vec<u8>> = (0..waiting.len()).map(|index| whole(&waiting, index)).collect();
                let offered = waiting.len();
                let taken = tapped.transmit(&mut waiting, offered);
                assert_eq!((taken, waiting.len()), (offered.min(*room), offered - taken));
                seen.extend_from_slice(&before[..taken]);
            } else {
                for _ in 0..*offered {
                    link.inject_frame(frame(number, case.len));
                    number += 1;
                }
                let moved = tapped.receive(&mut waiting, *room);
                assert_eq!(moved, waiting.len());
                seen.extend((0..moved).map(|index| whole(&waiting, index)));
                waiting.clear();
            }
            NOW.set(NOW.get() + ticks);
            worker.polls.add(1);
            if case.is_busy {
                worker.moved_ticks.add(*ticks);
            }
            if round % case.reads_every == 0 {
                copied.extend(read(&mut reader));
            }
        }
        // It is taken away between two polls.
        slot.leave(None);
        Receive::renew(&mut tapped);
        assert!(slot.take_back().is_some());
    }
    copied.extend(read(&mut reader));
    assert_eq!(counters.ended.get(), 1);
    let lost = counters.no_time.get() + counters.no_room.get();
    assert_eq!(counters.seen.get(), seen.len() as u64);
    assert_eq!(copied.len() as u64 + lost, seen.len() as u64);
    // What was copied is what went by, in its order and no frame twice.
    let mut left = seen.iter();
    for bytes in &copied {
        let same = |whole: &&Vec<u8>| whole[..whole.len().min(case.snap_len)] == bytes[..];
        assert!(left.any(|whole| same(&whole)), "a copy of what never went by");
    }
    if !case.is_busy && case.reads_every == 1 && case.rounds.iter().all(|(_, _, ticks)| *ticks > 10_000) {
        assert_eq!(lost, 0, "there was time and room for all");
    }
}

fn whole(frames: &impl Frames, index: usize) -> Vec<u8> {
    frames.segments(index).flatten().copied().collect()
}

/// A link that takes and gives so many at once.
struct Narrow {
    link: MemoryLink,
    most: Arc<AtomicUsize>,
}

impl Receive for Narrow {
    type Frames = <MemoryLink as Receive>::Frames;

    fn batch(&self) -> Self::Frames {
        Receive::batch(&self.link)
    }

    fn receive(&mut self, into: &mut Self::Frames, max: usize) -> usize {
        self.link.receive(into, max)
    }
}

impl Transmit for Narrow {
    type Frames = <MemoryLink as Transmit>::Frames;

    fn batch(&self) -> Self::Frames {
        Transmit::batch(&self.link)
    }

    fn transmit(&mut self, from: &mut Self::Frames, count: usize) -> usize {
        self.link
            .transmit(from, count.min(self.most.load(Ordering::Relaxed)))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn what_goes_by_is_copied_or_counted(
        rounds in prop::collection::vec((1usize..64, 0usize..64, 0u64..40_000), 1..300),
        (len, snap_len) in (60usize..1600, 14usize..1600),
        (is_busy, is_sent, reads_every) in (any::<bool>(), any::<bool>(), 1usize..40),
    ) {
        check(&Case { rounds, len, snap_len, is_busy, reads_every, is_sent });
    }

    #[test]
    fn with_time_and_room_nothing_is_lost(
        rounds in prop::collection::vec((1usize..64, 0usize..64, 10_001u64..40_000), 1..100),
        len in 60usize..1600,
        is_sent in any::<bool>(),
    ) {
        check(&Case { rounds, len, snap_len: 2000, is_busy: false, reads_every: 1, is_sent });
    }
}

/// A queue of `worker` that receives from `link` and is looked into by one of so many taps, by this clock, and who reads it.
fn looked_into(
    worker: &Arc<WorkerCounters>,
    snap_len: usize,
    of: (u64, fn() -> Ticks),
) -> (MemoryLink, Tapped<MemoryLink>, TapReceive, Arc<TapCounters>) {
    let slot = TapSlot::new(Arc::clone(worker));
    let (tap, consumer) = tap_by(worker, Direction::In, snap_len, of);
    slot.leave(Some(tap));
    let link = MemoryLink::new(1 << 20);
    let mut tapped = Tapped::new(link.clone(), slot);
    Receive::renew(&mut tapped);
    let counters = Arc::<TapCounters>::default();
    let clock = Clock::from_calibration(0, 0, 1e9);
    let reader = TapReceive::new(consumer, clock, Arc::clone(&counters));
    (link, tapped, reader, counters)
}

/// A reader that stands still costs the frames that its ring has no room for, and holds nobody up.
#[test]
fn a_full_tap_only_counts() {
    let worker = Arc::<WorkerCounters>::default();
    let (link, mut tapped, mut reader, counters) = looked_into(&worker, 2000, (1, now));
    let mut frames = Receive::batch(&tapped);
    for number in 0..2_000 {
        link.inject_frame(frame(number, 1_000));
        assert_eq!(tapped.receive(&mut frames, 1), 1);
        frames.clear();
        NOW.set(NOW.get() + 100_000);
        worker.polls.add(1);
    }
    drop(tapped);
    let copied = read(&mut reader).len() as u64;
    assert!((100..2_000).contains(&copied), "{copied}");
    assert_eq!((counters.seen.get(), counters.no_time.get()), (2_000, 0));
    assert_eq!(copied + counters.no_room.get(), 2_000);
    assert_eq!(counters.ended.get(), 1);
}

/// What a process that was killed left in a tap is read to its end, however long ago it is that the process went.
#[test]
fn a_tap_whose_process_is_gone_is_drained() {
    let worker = Arc::<WorkerCounters>::default();
    let (link, mut tapped, mut reader, counters) = looked_into(&worker, 2000, (1, now));
    assert_eq!(read(&mut reader).len(), 0);
    assert!(!counters.is_empty(), "its process may yet fill it");
    for number in 0..3 {
        link.inject_frame(frame(number, 1_000));
    }
    let mut frames = Receive::batch(&tapped);
    assert_eq!(tapped.receive(&mut frames, 3), 3);
    // Nobody ends the tap of a process that is killed.
    std::mem::forget(tapped);
    counters.gone.set(1);
    let mut batch = reader.batch();
    assert_eq!(reader.receive(&mut batch, 64), 3);
    assert!(!counters.is_empty(), "nobody has looked yet whether that was all");
    batch.clear();
    assert_eq!(reader.receive(&mut batch, 64), 0);
    assert!(counters.is_empty());
    assert_eq!((counters.ended.get(), counters.seen.get()), (0, 3));
}

/// A burst of long frames costs no more time than there is: what is left of it is counted. Several taps share that time.
#[test]
fn a_burst_of_long_frames_is_copied_as_far_as_there_is_time() {
    // Of a copied frame of 9,000 bytes every second one is followed by a look, 400 ticks later than the one before.
    for (taps, most) in [(1, 6), (4, 2)] {
        let worker = Arc::<WorkerCounters>::default();
        let (link, mut tapped, mut reader, counters) = looked_into(&worker, 9_618, (taps, looked_at));
        for number in 0..40 {
            link.inject_frame(frame(number, 9_000));
        }
        let mut frames = Receive::batch(&tapped);
        assert_eq!(tapped.receive(&mut frames, 40), 40);
        drop(tapped);
        let copied = read(&mut reader).len();
        assert_eq!(copied, most, "with {taps} taps");
        assert_eq!((counters.seen.get(), counters.no_room.get()), (40, 0));
        assert_eq!(counters.no_time.get(), 40 - most as u64);
    }
}

/// A ring that says that it has begun 2^64 segments, all of them empty, is damaged at the first look.
#[test]
fn a_damaged_ring_is_told_at_once() {
    let (mut producer, ring) = Producer::new(2, SEGMENT_MIN, &pcapng::preamble("test", &[])).unwrap();
    let (_, page) = ring.seat(true).unwrap();
    producer.commit();
    let sound = File::from(ring.file().try_clone_to_owned().unwrap());
    let mut bytes = vec![0; sound.metadata().unwrap().len() as usize];
    sound.read_exact_at(&mut bytes, 0).unwrap();
    let mut put = |at: usize, value: u64| bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    put(header::BEGUN, u64::MAX);
    for number in 0..2 {
        let at = header::LEN + number as usize * slot::LEN;
        put(at + slot::NUMBER, number + 1);
        put(at + slot::CLOSED, 1);
    }
    let damaged = memfd_create("test", MFdFlags::MFD_ALLOW_SEALING).unwrap();
    let damaged = File::from(damaged);
    damaged.write_all_at(&bytes, 0).unwrap();
    fcntl(&damaged, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SHRINK)).unwrap();
    let consumer = Consumer::new(damaged.as_fd(), page).unwrap();
    let counters = Arc::<TapCounters>::default();
    let clock = Clock::from_calibration(0, 0, 1e9);
    let mut reader = TapReceive::new(consumer, clock, Arc::clone(&counters));
    assert_eq!(read(&mut reader).len(), 0);
    assert_eq!(counters.damaged.get(), 1);
}
