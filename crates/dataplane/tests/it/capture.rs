//! The capturing loop over memory links and a virtual clock: every frame is in the ring, in the order of its stamps, or counted.
#![allow(
    clippy::unwrap_used,
    clippy::similar_names,
    reason = "a test says so by failing"
)]

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use capture::filter::Filter;
use capture::merge::Order;
use capture::pcapng;
use capture::ring::layout::SEGMENT_MIN;
use capture::ring::{Consumer, Producer};
use dataplane::capture::{
    CaptureCounters, CaptureResult, CaptureTask, InterfaceDrops, MergeCounters, PacketPlan, QueuePlan,
    QueueSource, Sample, Selector, Source, buffers_held, hand_over,
};
use dataplane::memory::{MemoryFrame, MemoryLink};
use dataplane::slot::Slot;
use dataplane::{Phase, Task};
use measure::{Clock, Ticks};
use proptest::prelude::*;

thread_local!(static NOW: Cell<u64> = const { Cell::new(0) });

/// The virtual clock: one tick is one nanosecond, and each look takes some.
fn now() -> Ticks {
    NOW.set(NOW.get() + 7);
    Ticks(NOW.get())
}

/// A frame that says which it is, in buffers of `buffer` bytes.
fn frame(queue: usize, number: u64, len: usize, buffer: usize) -> MemoryFrame {
    let bytes = bytes(queue, number, len);
    MemoryFrame::in_segments(bytes.chunks(buffer))
}

fn bytes(queue: usize, number: u64, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|at| (at as u64 * 7 + number) as u8).collect();
    bytes[..8].copy_from_slice(&number.to_ne_bytes());
    bytes[8] = queue as u8;
    bytes
}

#[derive(Clone, Debug)]
struct Case {
    queues: usize,
    snap_len: usize,
    buffer: usize,
    burst: usize,
    /// Before each poll: frames that come to a queue, and their length.
    arrivals: Vec<Vec<(usize, usize)>>,
    /// Whether the consumer takes what is there after so many polls.
    takes_every: usize,
    wanted: u64,
    /// Whether other workers receive; these then poll in the rounds whose bit is set for the queue.
    polls: Option<u64>,
    order: Order,
    /// Whether frames whose number is odd are filtered out.
    is_filtered: bool,
    /// Whether what there is before the run belongs to it.
    waits: bool,
}

impl Case {
    /// All of what comes to these queues is wanted, strictly in order.
    fn strict(queues: usize) -> Self {
        Self {
            queues,
            snap_len: usize::MAX,
            buffer: 2048,
            burst: 32,
            arrivals: Vec::new(),
            takes_every: 1,
            wanted: u64::MAX,
            polls: None,
            order: Order::Strict,
            is_filtered: false,
            waits: false,
        }
    }

    fn polls(&self, queue: usize, round: usize) -> bool {
        self.polls
            .is_none_or(|polls| polls.rotate_right((queue * 17 + round) as u32) & 1 == 1)
    }
}

/// Passes frames whose number is even.
const FILTER: &str = "ether[0] & 1 = 0";

fn plan(case: &Case, index: u32, counters: &Arc<CaptureCounters>, drops: &Arc<InterfaceDrops>) -> QueuePlan {
    let filter = case.is_filtered.then(|| Filter::compile(FILTER).unwrap());
    QueuePlan {
        burst: case.burst,
        waits: case.waits,
        selector: Selector::new(filter, None),
        packets: PacketPlan {
            cut_at: None,
            driver_unit_ns: None,
            direction: None,
            interface: index,
            queue: Some(index),
            snap_len: case.snap_len,
            epoch_ns: 0,
            drops: Arc::clone(drops),
        },
        counters: Arc::clone(counters),
    }
}

/// The tasks of a case, on the virtual clock, and what they count.
struct Books {
    links: Vec<MemoryLink>,
    counters: Vec<Arc<CaptureCounters>>,
    drops: Vec<Arc<InterfaceDrops>>,
    merged: Arc<MergeCounters>,
    totals: Slot<CaptureResult>,
}

fn build(case: &Case, producer: Producer) -> (Books, Vec<Box<dyn Task>>, Box<dyn Task>) {
    let (totals, leave) = Slot::new();
    let queues = 0..case.queues;
    let books = Books {
        links: queues.clone().map(|_| MemoryLink::new(1 << 16)).collect(),
        counters: queues.clone().map(|_| Arc::default()).collect(),
        drops: queues.map(|_| Arc::default()).collect(),
        merged: Arc::default(),
        totals,
    };
    let clock = Clock::from_calibration(0, 0, 1e9);
    let (mut sources, mut receivers) = (Vec::<Box<dyn Source>>::new(), Vec::<Box<dyn Task>>::new());
    for (index, link) in books.links.iter().enumerate() {
        let plan = plan(case, index as u32, &books.counters[index], &books.drops[index]);
        if case.polls.is_some() {
            let (task, source) = hand_over(link.clone(), plan, (clock, now));
            receivers.push(Box::new(task));
            sources.push(Box::new(source));
        } else {
            sources.push(Box::new(QueueSource::new(link.clone(), plan)));
        }
    }
    let task = CaptureTask::new(
        sources,
        (case.order, case.wanted),
        producer,
        (clock, now),
        Arc::clone(&books.merged),
        leave,
    );
    (books, receivers, Box::new(task))
}

impl Books {
    fn sum(&self, of: fn(&CaptureCounters) -> u64) -> u64 {
        self.counters.iter().map(|counters| of(counters)).sum()
    }

    /// All that was sent was received, and written or counted; what was written was taken.
    fn assert_balanced(self, case: &Case, sent: &[u64], (taken, late): (u64, u64)) {
        let frames = self.sum(|counters| counters.received.frames.get());
        assert_eq!(frames, sent.iter().sum::<u64>(), "every frame was received");
        let refused = self.sum(|counters| counters.written.refused.get());
        let unwanted = self.sum(|counters| counters.written.unwanted.get());
        let filtered = self.sum(|counters| counters.received.filtered.get());
        let odd: u64 = sent.iter().map(|sent| sent / 2).sum();
        assert_eq!(filtered, if case.is_filtered { odd } else { 0 });
        let untold: u64 = self.drops.iter().map(|drops| drops.untold()).sum();
        assert!(untold <= refused, "a packet tells of what was lost before it");
        let merged = &self.merged;
        let counted = merged.written.get() + refused + unwanted + filtered;
        assert_eq!(frames, counted, "and written, or counted");
        assert!(unwanted == 0 || merged.written.get() == case.wanted);
        assert_eq!(taken, merged.written.get(), "and taken");
        // late = 0: sorted.
        assert!(late <= merged.late.get(), "{late} are out of order");
        assert!(case.order != Order::Strict || merged.late.get() == 0);
        assert_eq!(self.counters[0].received.flushed.get(), 1);
        assert_eq!(self.totals.take().unwrap().held, 0);
    }
}

fn check(case: &Case) {
    NOW.set(1_000_000);
    let (producer, ring) = Producer::new(3, SEGMENT_MIN, &pcapng::preamble("test", &[])).unwrap();
    let (seat, page) = ring.seat(true).unwrap();
    let (books, mut receivers, mut task) = build(case, producer);
    let links = &books.links;
    // What came before the run is none of it.
    links[0].inject(&[0; 60]);
    for receiver in &mut receivers {
        receiver.poll(now(), Phase::Warm);
    }
    task.poll(now(), Phase::Warm);
    assert!(seat.is_taken());
    let mut consumer = Consumer::new(ring.file(), page).unwrap();
    let (mut sent, mut seen) = (vec![0; case.queues], vec![0; case.queues]);
    let (mut last, mut late) = ((0, 0), 0);
    let mut take = |consumer: &mut Consumer, sent: &[u64]| {
        let mut taken = 0;
        while let Some(packets) = consumer.packets().unwrap() {
            for packet in packets.iter() {
                let packet = packet.unwrap();
                let queue = packet.interface as usize;
                let number = u64::from_ne_bytes(*packet.data.first_chunk().unwrap());
                let whole = bytes(queue, number, packet.original_len as usize);
                assert_eq!(packet.data, &whole[..whole.len().min(case.snap_len)]);
                assert!(
                    number >= seen[queue] && number < sent[queue],
                    "once, and in order"
                );
                seen[queue] = number + 1;
                late += u64::from(packet.time_ns < last.0);
                assert!(
                    case.order != Order::Strict || (packet.time_ns, packet.interface) >= last,
                    "sorted"
                );
                last = (packet.time_ns, packet.interface);
                taken += 1;
            }
        }
        taken
    };
    let mut taken = 0;
    for (round, arrivals) in case.arrivals.iter().enumerate() {
        for (queue, len) in arrivals {
            links[*queue].inject_frame(frame(*queue, sent[*queue], *len, case.buffer));
            sent[*queue] += 1;
        }
        for (queue, receiver) in receivers.iter_mut().enumerate() {
            if case.polls(queue, round) {
                receiver.poll(now(), Phase::Run);
            }
        }
        task.poll(now(), Phase::Run);
        if round % case.takes_every == 0 {
            taken += take(&mut consumer, &sent);
        }
    }
    while links.iter().any(|link| !link.is_empty()) {
        for receiver in &mut receivers {
            receiver.poll(now(), Phase::Run);
        }
        task.poll(now(), Phase::Run);
    }
    receivers.into_iter().for_each(Task::finish);
    task.finish();
    taken += take(&mut consumer, &sent);
    books.assert_balanced(case, &sent, (taken, late));
}

fn cases() -> impl Strategy<Value = Case> {
    (1usize..6).prop_flat_map(|queues| {
        let lens = prop_oneof![20usize..200, 1000usize..5000];
        let arrivals = prop::collection::vec(prop::collection::vec((0..queues, lens), 0..40), 1..80);
        let snap_len = prop_oneof![Just(usize::MAX), 20usize..3000];
        (
            arrivals,
            snap_len,
            64usize..2048,
            1usize..64,
            1usize..60,
            prop_oneof![Just(u64::MAX), 1u64..500],
            prop::option::of(any::<u64>()),
            prop_oneof![Just(Order::Strict), (0u64..500).prop_map(Order::Bounded)],
            any::<bool>(),
        )
            .prop_map(
                move |(arrivals, snap_len, buffer, burst, takes_every, wanted, polls, order, is_filtered)| {
                    Case {
                        queues,
                        snap_len,
                        buffer,
                        burst,
                        arrivals,
                        takes_every,
                        wanted,
                        polls,
                        order,
                        is_filtered,
                        waits: false,
                    }
                },
            )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn everything_is_in_the_ring_in_order_or_counted(case in cases()) {
        check(&case);
    }
}

#[test]
fn what_a_file_holds_waits_for_the_run() {
    for polls in [None, Some(u64::MAX)] {
        let case = Case {
            polls,
            waits: true,
            ..Case::strict(1)
        };
        NOW.set(1_000_000);
        let (producer, _ring) = Producer::new(3, SEGMENT_MIN, &pcapng::preamble("test", &[])).unwrap();
        let (books, mut receivers, mut merge) = build(&case, producer);
        books.links[0].inject(&[0; 60]);
        for phase in [Phase::Warm, Phase::Warm, Phase::Run, Phase::Run] {
            for receiver in &mut receivers {
                receiver.poll(now(), phase);
            }
            merge.poll(now(), phase);
        }
        assert_eq!(books.sum(|counters| counters.received.flushed.get()), 0);
        assert_eq!(books.sum(|counters| counters.received.frames.get()), 1);
    }
}

/// A queue that is not polled is waited for, and what others hold meanwhile is bounded: the rest stays where it is.
#[test]
fn who_waits_holds_a_bounded_number_of_frames() {
    const FRAMES: u64 = 10_000;
    let case = Case {
        polls: Some(0),
        ..Case::strict(2)
    };
    NOW.set(1_000_000);
    let (producer, _ring) = Producer::new(64, SEGMENT_MIN, &pcapng::preamble("test", &[])).unwrap();
    let (books, mut receivers, mut merge) = build(&case, producer);
    for number in 0..FRAMES {
        books.links[0].inject_frame(frame(0, number, 60, 2048));
    }
    let came = || books.sum(|counters| counters.received.frames.get());
    for _ in 0..FRAMES {
        receivers[0].poll(now(), Phase::Run);
        merge.poll(now(), Phase::Run);
    }
    assert_eq!(
        books.merged.written.get(),
        0,
        "the other one may have an earlier one"
    );
    assert_eq!(came(), buffers_held(case.burst, true) as u64);
    assert_eq!(came() + books.links[0].len() as u64, FRAMES);
    assert!(
        books.sum(|counters| counters.received.full.get()) > 0,
        "and that is counted"
    );
    // One empty poll is proof.
    while !books.links[0].is_empty() {
        for receiver in &mut receivers {
            receiver.poll(now(), Phase::Run);
        }
        merge.poll(now(), Phase::Run);
    }
    receivers.into_iter().for_each(Task::finish);
    merge.finish();
    assert_eq!((books.merged.written.get(), books.merged.late.get()), (FRAMES, 0));
}

/// One clock for all threads, in nanoseconds.
fn shared_now() -> Ticks {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    Ticks(BEGUN.get_or_init(Instant::now).elapsed().as_nanos() as u64 + 1)
}

/// Workers that receive and one that merges, on threads: whatever they do when, every frame is written or counted, in order.
#[test]
fn nothing_is_lost_between_workers() {
    const FRAMES: u64 = 20_000;
    let (producer, ring) = Producer::new(64, SEGMENT_MIN, &pcapng::preamble("test", &[])).unwrap();
    let (seat, page) = ring.seat(true).unwrap();
    let clock = Clock::from_calibration(0, 0, 1e9);
    let links: Vec<MemoryLink> = (0..3).map(|_| MemoryLink::new(1 << 16)).collect();
    let counters: Vec<Arc<CaptureCounters>> = links.iter().map(|_| Arc::default()).collect();
    let case = Case {
        is_filtered: true,
        ..Case::strict(3)
    };
    let (mut sources, mut receivers) = (Vec::<Box<dyn Source>>::new(), Vec::<Box<dyn Task>>::new());
    for (index, link) in links.iter().enumerate() {
        let plan = plan(&case, index as u32, &counters[index], &Arc::default());
        let (task, source) = hand_over(link.clone(), plan, (clock, shared_now));
        receivers.push(Box::new(task));
        sources.push(Box::new(source));
    }
    let merged = Arc::<MergeCounters>::default();
    let (totals, leave) = Slot::new();
    let mut merge: Box<dyn Task> = Box::new(CaptureTask::new(
        sources,
        (Order::Strict, u64::MAX),
        producer,
        (clock, shared_now),
        Arc::clone(&merged),
        leave,
    ));
    merge.poll(shared_now(), Phase::Run);
    assert!(seat.is_taken());
    let mut consumer = Consumer::new(ring.file(), page).unwrap();
    let stopped = AtomicBool::new(false);
    let is_stopped = || stopped.load(Ordering::Acquire);
    let mut taken = 0;
    std::thread::scope(|scope| {
        for mut receiver in receivers {
            scope.spawn(move || {
                while !is_stopped() {
                    receiver.poll(shared_now(), Phase::Run);
                }
                receiver.finish();
            });
        }
        scope.spawn(|| {
            while !is_stopped() {
                merge.poll(shared_now(), Phase::Run);
            }
            merge.finish();
        });
        for number in 0..FRAMES {
            for (queue, link) in links.iter().enumerate() {
                link.inject_frame(frame(queue, number, 60, 2048));
            }
            while number == FRAMES / 2 && merged.written.get() == 0 {
                std::thread::yield_now();
            }
        }
        // Stopped in the middle of it.
        stopped.store(true, Ordering::Release);
    });
    let mut last = (0, 0);
    while let Some(packets) = consumer.packets().unwrap() {
        for packet in packets.iter() {
            let packet = packet.unwrap();
            assert!((packet.time_ns, packet.interface) >= last, "sorted");
            last = (packet.time_ns, packet.interface);
            taken += 1;
        }
    }
    let sum = |of: fn(&CaptureCounters) -> u64| counters.iter().map(|counters| of(counters)).sum::<u64>();
    let waiting: usize = links.iter().map(MemoryLink::len).sum();
    let frames = sum(|counters| counters.received.frames.get());
    assert_eq!(frames + waiting as u64, 3 * FRAMES);
    let filtered = sum(|counters| counters.received.filtered.get());
    let refused = sum(|counters| counters.written.refused.get());
    assert!(filtered > 0 && totals.take().unwrap().held == 0);
    assert_eq!(frames, merged.written.get() + filtered + refused);
    assert_eq!((taken, merged.late.get()), (merged.written.get(), 0));
}

/// A flow is in the sample as a whole, and as many flows as were asked for are.
#[test]
fn flows_are_in_the_sample_or_not() {
    const FLOWS: u32 = 20_000;
    let frame = |flow: u32, number: u8, is_back: bool| {
        let mut frame = vec![number; 60];
        frame[12..18].copy_from_slice(&[8, 0, 0x45, 0, 0, 46]);
        frame[20..24].copy_from_slice(&[0, 0, 64, 6]);
        let [_, high, middle, low] = flow.to_be_bytes();
        let (here, there) = ([10, high, middle, low, 0x30, low], [192, 168, 0, 1, 0, 80]);
        let (from, to) = if is_back { (there, here) } else { (here, there) };
        frame[26..30].copy_from_slice(&from[..4]);
        frame[30..34].copy_from_slice(&to[..4]);
        frame[34..36].copy_from_slice(&from[4..]);
        frame[36..38].copy_from_slice(&to[4..]);
        frame
    };
    for one_in in [1, 2, 10, 64] {
        let sample = Sample::one_in(one_in);
        let mut sampled = 0;
        for flow in 0..FLOWS {
            let is_in = sample.has(&frame(flow, 0, false));
            let packets = (1..4).map(|number| frame(flow, number, number % 2 == 0));
            assert!(
                packets.into_iter().all(|packet| sample.has(&packet) == is_in),
                "{flow}"
            );
            sampled += u32::from(is_in);
        }
        let share = 1.0 / one_in as f64;
        let (mean, deviation) = (
            f64::from(FLOWS) * share,
            (f64::from(FLOWS) * share * (1.0 - share)).sqrt(),
        );
        let off = (f64::from(sampled) - mean).abs();
        assert!(off <= 5.0 * deviation, "1/{one_in}: {sampled}");
    }
}
