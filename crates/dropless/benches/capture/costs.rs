//! What a packet costs on one core: ours, the bare costs, and the pipeline that is known, stage by stage.

use std::collections::VecDeque;
use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;

use capture::merge::Order;
use capture::pcapng::{self, PacketHead};
use capture::ring::{Producer, Ring};
use dataplane::capture::{CaptureTask, MergeCounters, PacketPlan, QueuePlan, QueueSource, Selector, Source};
use dataplane::dpdk_io::DpdkReceive;
use dataplane::slot::Slot;
use dataplane::{Phase, Task};
use dpdk::{Burst, Eal, Pool, Port, PortConfig, RxQueue, TxQueue};
use measure::{Clock, Ticks};
use serde::Serialize;

/// Queues that are merged.
const QUEUES: usize = 4;
/// Frames that wait in each of them at each look.
const WAITING: usize = 32;
/// Looks a measurement.
const LOOKS: usize = 20_000;
/// The room into which is copied: larger than the caches.
const ROOM: usize = 64 << 20;
const SEGMENT: u32 = 1 << 20;

/// Nanoseconds a packet.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Costs {
    /// Frame size with FCS, bytes.
    pub size: usize,
    /// Received and freed: what everybody pays.
    pub receive: f64,
    /// Received, merged by the packet, laid into the ring as pcapng, freed.
    pub ours: f64,
    /// Nothing but the choice of the earliest of four, a packet at a time.
    pub bare_merge: f64,
    /// Nothing but the copy of each frame and its entry in a list, on top of `receive`.
    pub bare_copy: f64,
    /// A stage of the known pipeline: receive a burst, hand it on.
    pub known_receive: f64,
    /// Its second stage: hand on the earliest of four bursts.
    pub known_merge: f64,
    /// Its third stage: copy a frame at a time, free.
    pub known_copy: f64,
}

impl Costs {
    /// Merging and copying, without receiving.
    pub fn merge_and_copy(&self) -> f64 {
        self.ours - self.receive
    }

    /// Merging and copying to the bare costs.
    pub fn of_bare(&self) -> f64 {
        self.merge_and_copy() / (self.bare_merge + self.bare_copy)
    }

    /// Packets a second for each core that the known pipeline uses: a receiving core a port, one that merges, one that
    /// copies; its slowest stage decides.
    pub fn known_per_core(&self) -> f64 {
        let slowest = (self.known_receive / QUEUES as f64)
            .max(self.known_merge)
            .max(self.known_copy);
        1e9 / slowest / (QUEUES + 2) as f64
    }

    /// Packets a second of ours, on its one core.
    pub fn ours_per_core(&self) -> f64 {
        1e9 / self.ours
    }

    /// The known pipeline if all its stages could share one core without a loss.
    pub fn known_summed(&self) -> f64 {
        1e9 / (self.known_receive + self.known_merge + self.known_copy)
    }
}

/// Four ports that lead back to themselves.
pub struct Bed<'e> {
    eal: &'e Eal,
    pool: &'e Pool<'e>,
    #[allow(dead_code, reason = "ports are open as long as they live")]
    ports: Vec<Port<'e>>,
    /// What leads to them.
    pub tx: Vec<TxQueue<'e>>,
    frames: Burst<'e>,
    size: usize,
}

impl<'e> Bed<'e> {
    /// Opens them, each with room for `depth` frames.
    pub fn new(
        eal: &'e Eal,
        pool: &'e Pool<'e>,
        name: &str,
        depth: usize,
    ) -> Result<(Self, Vec<RxQueue<'e>>), Box<dyn Error>> {
        let mut bed = Self {
            eal,
            pool,
            ports: Vec::new(),
            tx: Vec::new(),
            frames: Burst::new(eal),
            size: 60,
        };
        let mut all = Vec::new();
        for port in 0..QUEUES {
            let name = eal.ring_loop(&format!("{name}{port}"), depth, 1)?;
            let (mut port, mut rx, tx) =
                Port::by_name(eal, &name)?.configure(&PortConfig::default(), pool)?;
            port.start()?;
            all.append(&mut rx);
            bed.tx.extend(tx);
            bed.ports.push(port);
        }
        Ok((bed, all))
    }

    /// Puts frames into all queues, as NICs do.
    fn fill(&mut self) -> Result<(), &'static str> {
        for tx in &mut self.tx {
            if self.pool.allocate(&mut self.frames, WAITING) != WAITING {
                return Err("the pool is empty");
            }
            for index in 0..WAITING {
                self.frames.write(index, self.size)[..64.min(self.size)].fill(index as u8);
            }
            if tx.transmit(&mut self.frames, WAITING) != WAITING {
                return Err("a ring is full");
            }
        }
        Ok(())
    }
}

/// Time spent, in ticks, over so many packets, as ns a packet.
#[derive(Default)]
struct Spent(u64);

impl Spent {
    #[inline]
    fn on<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let begun = dpdk::tsc();
        let result = work();
        self.0 += dpdk::tsc() - begun;
        result
    }

    fn ns(&self, packets: usize, hz: f64) -> f64 {
        self.0 as f64 / hz * 1e9 / packets as f64
    }
}

const PACKETS: usize = LOOKS * QUEUES * WAITING;

/// The clock of the capture.
pub fn now() -> Ticks {
    Ticks(dpdk::tsc())
}

/// Everything that is measured, on ports of its own.
pub struct Subjects<'e> {
    bed: Bed<'e>,
    rx: Vec<RxQueue<'e>>,
    our_bed: Bed<'e>,
    task: CaptureTask<'e>,
    counters: Arc<MergeCounters>,
    _ring: Ring,
    hz: f64,
}

impl<'e> Subjects<'e> {
    /// Opens the ports.
    pub fn new(eal: &'e Eal, pool: &'e Pool<'e>, hz: f64) -> Result<Self, Box<dyn Error>> {
        let (bed, rx) = Bed::new(eal, pool, "bare", 256)?;
        let (our_bed, our_rx) = Bed::new(eal, pool, "ours", 256)?;
        let (producer, ring) = ring()?;
        let counters = Arc::<MergeCounters>::default();
        let clock = Clock::from_calibration(now().0, 1 << 40, hz);
        let task = CaptureTask::new(
            sources(eal, our_rx),
            (Order::Strict, u64::MAX),
            producer,
            (clock, now),
            Arc::clone(&counters),
            Slot::new().1,
        );
        Ok(Self {
            bed,
            rx,
            our_bed,
            task,
            counters,
            _ring: ring,
            hz,
        })
    }

    /// Measures everything once, at frames of `size` bytes with FCS.
    pub fn measure(&mut self, size: usize) -> Result<Costs, Box<dyn Error>> {
        let (bed, rx, hz) = (&mut self.bed, &mut self.rx, self.hz);
        bed.size = size - 4;
        let receive = receive_and_free(bed, rx, hz)?;
        let bare_copy = copy(bed, rx, hz)? - receive;
        let [known_receive, known_merge, known_copy] = known(bed, rx, hz)?;
        self.our_bed.size = size - 4;
        Ok(Costs {
            size,
            receive,
            bare_copy,
            bare_merge: bare_merge(hz),
            ours: self.ours()?,
            known_receive,
            known_merge,
            known_copy,
        })
    }

    /// The capturing loop itself.
    fn ours(&mut self) -> Result<f64, Box<dyn Error>> {
        let before = self.counters.written.get() as usize;
        let mut spent = Spent::default();
        for _ in 0..LOOKS {
            self.our_bed.fill()?;
            spent.on(|| self.task.poll(now(), Phase::Run));
        }
        // What is held back by equal times goes with the next look.
        let written = self.counters.written.get() as usize - before;
        if written + QUEUES * WAITING < PACKETS {
            return Err(format!("{written} of {PACKETS} packets are in the ring").into());
        }
        Ok(spent.ns(PACKETS, self.hz))
    }
}

/// What a capture takes frames from.
pub fn sources<'e>(eal: &'e Eal, queues: Vec<RxQueue<'e>>) -> Vec<Box<dyn Source + 'e>> {
    let source = |(port, queue)| {
        let plan = QueuePlan {
            burst: 64,
            waits: false,
            selector: Selector::new(None, None),
            packets: PacketPlan {
                cut_at: None,
                driver_unit_ns: None,
                direction: None,
                interface: port as u32,
                queue: Some(0),
                snap_len: 1 << 16,
                epoch_ns: 0,
                drops: Arc::default(),
            },
            counters: Arc::default(),
        };
        Box::new(QueueSource::new(DpdkReceive::new(eal, queue, false), plan)) as Box<dyn Source + 'e>
    };
    queues.into_iter().enumerate().map(source).collect()
}

fn receive_and_free<'e>(bed: &mut Bed<'e>, rx: &mut [RxQueue<'e>], hz: f64) -> Result<f64, Box<dyn Error>> {
    let mut spent = Spent::default();
    let mut burst = Burst::new(bed.eal);
    for _ in 0..LOOKS {
        bed.fill()?;
        spent.on(|| {
            for queue in rx.iter_mut() {
                queue.receive(&mut burst, 64);
                burst.clear();
            }
        });
    }
    Ok(spent.ns(PACKETS, hz))
}

/// A room that is written from its beginning again and again.
struct Room {
    bytes: Vec<u8>,
    list: Vec<(u32, u32)>,
    at: usize,
}

impl Room {
    fn new() -> Self {
        Self {
            bytes: vec![1; ROOM],
            list: vec![(0, 0); ROOM / 64],
            at: 0,
        }
    }

    #[inline]
    fn push(&mut self, entry: usize, frame: &[u8]) {
        if self.at + frame.len() > ROOM {
            self.at = 0;
        }
        self.bytes[self.at..self.at + frame.len()].copy_from_slice(frame);
        let places = self.list.len();
        self.list[entry % places] = (self.at as u32, frame.len() as u32);
        self.at += frame.len().next_multiple_of(4);
    }
}

fn copy<'e>(bed: &mut Bed<'e>, rx: &mut [RxQueue<'e>], hz: f64) -> Result<f64, Box<dyn Error>> {
    let mut spent = Spent::default();
    let mut burst = Burst::new(bed.eal);
    let mut room = Room::new();
    let mut entry = 0;
    for _ in 0..LOOKS {
        bed.fill()?;
        spent.on(|| {
            for queue in rx.iter_mut() {
                queue.receive(&mut burst, 64);
                for (frame, _) in burst.each() {
                    room.push(entry, frame);
                    entry += 1;
                }
                burst.clear();
            }
            // Somebody may read it: else the copy might be left out.
            black_box(&room.bytes);
        });
    }
    Ok(spent.ns(PACKETS, hz))
}

/// Stamps of four queues, a packet at a time, the earliest first.
fn bare_merge(hz: f64) -> f64 {
    let mut spent = Spent::default();
    let mut state = 1_u64;
    for _ in 0..LOOKS {
        let mut stamps = [[0_u64; WAITING + 1]; QUEUES];
        for queue in &mut stamps {
            let mut at = 0;
            for stamp in queue.iter_mut() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                at += state >> 54;
                *stamp = at;
            }
            queue[WAITING] = u64::MAX;
        }
        let mut out = [0_u8; QUEUES * WAITING];
        spent.on(|| {
            let mut next = [0_usize; QUEUES];
            for place in &mut out {
                let mut first = 0;
                for queue in 1..QUEUES {
                    if stamps[queue][next[queue]] < stamps[first][next[first]] {
                        first = queue;
                    }
                }
                *place = first as u8;
                next[first] += 1;
            }
            black_box(&out);
        });
    }
    spent.ns(PACKETS, hz)
}

/// The pipeline that is known, its stages one after the other on this core: what its hand-over between cores costs is left
/// out, in its favour.
fn known<'e>(bed: &mut Bed<'e>, rx: &mut [RxQueue<'e>], hz: f64) -> Result<[f64; 3], Box<dyn Error>> {
    let mut spent = [Spent::default(), Spent::default(), Spent::default()];
    let eal = bed.eal;
    let mut free: Vec<_> = (0..QUEUES).map(|_| Burst::new(eal)).collect();
    let mut received: Vec<VecDeque<(u64, Burst<'_>)>> =
        (0..QUEUES).map(|_| VecDeque::with_capacity(4)).collect();
    let mut merged: VecDeque<Burst<'_>> = VecDeque::with_capacity(QUEUES);
    let mut room = Room::new();
    let mut entry = 0;
    for _ in 0..LOOKS {
        bed.fill()?;
        spent[0].on(|| {
            for (queue, to) in rx.iter_mut().zip(&mut received) {
                let Some(mut burst) = free.pop() else { continue };
                queue.receive(&mut burst, 64);
                to.push_back((dpdk::tsc(), burst));
            }
        });
        spent[1].on(|| {
            loop {
                let heads = received.iter().enumerate();
                let first = heads
                    .filter_map(|(queue, bursts)| Some((bursts.front()?.0, queue)))
                    .min();
                let Some((_, queue)) = first else { break };
                merged.extend(received[queue].pop_front().map(|(_, burst)| burst));
            }
        });
        spent[2].on(|| {
            while let Some(mut burst) = merged.pop_front() {
                for (frame, _) in burst.each() {
                    room.push(entry, frame);
                    entry += 1;
                }
                burst.clear();
                free.push(burst);
            }
            black_box(&room.bytes);
        });
    }
    Ok(spent.map(|spent| spent.ns(PACKETS, hz)))
}

/// A ring without consumers.
pub fn ring() -> Result<(Producer, Ring), Box<dyn Error>> {
    let preamble = pcapng::preamble("bench", &vec![pcapng::Interface::default(); QUEUES]);
    Ok(Producer::new(
        (ROOM / SEGMENT as usize) as u32,
        SEGMENT,
        &preamble,
    )?)
}

/// What is told of each packet of the benchmark.
pub fn head(index: usize, len: usize) -> PacketHead {
    PacketHead {
        time_ns: index as u64,
        original_len: len as u32,
        ..PacketHead::default()
    }
}
