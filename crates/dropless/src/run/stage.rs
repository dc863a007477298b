//! The stage of a job: where it puts its tasks onto the queues of open ports, be those devices or sockets.

use std::sync::Arc;

use capture::pcapng::Direction;
use dataplane::Task;
use dataplane::capture::Source;
use dataplane::dpdk_io::{DpdkReceive, DpdkTransmit};
use dataplane::held_back::HeldBack;
use dataplane::io::{Allocate, FramesMut, Receive, Transmit};
use dataplane::tap::{TapSlot, Tapped};
use dataplane::worker::WorkerCounters;
use host::Medium;
use measure::{Clock, Ticks};
use report::rundir::RunDir;

use super::open::{Dpdk, OpenPort, Rx, Tx};
use super::pools::Pools;
use super::tap::TapPlace;
use super::workers::Worker;

/// Open ports, workers without tasks, and the time of the first packet.
pub struct Stage<'s, 'p, 'e> {
    /// The ports; a job takes their queues out.
    pub ports: &'s mut [OpenPort<'e>],
    /// The core of each worker.
    pub cores: &'s [usize],
    pub clock: Clock,
    /// When the first packet is due.
    pub start: Ticks,
    pub dir: &'s RunDir,
    pools: Option<&'p Pools<'e>>,
    workers: Vec<Worker<'p>>,
    /// What each worker publishes.
    counters: &'s [Arc<WorkerCounters>],
    /// Queues that others may look into.
    taps: Vec<TapPlace>,
}

/// Makes a task of a queue that receives.
pub trait OnReceive {
    /// The task that polls `rx`.
    fn on<'p>(self, rx: impl Receive + 'p) -> Box<dyn Task + 'p>;
}

/// A source of a merge, and the task that receives for it, where that is another one.
pub type Sourced<'p> = (Box<dyn Source + 'p>, Option<Box<dyn Task + 'p>>);

/// Makes a source of a queue that receives: one of several that a task merges.
pub trait OnSource {
    /// The source of what `rx` receives.
    fn on<'p>(self, rx: impl Receive + 'p) -> Sourced<'p>;
}

/// Makes a task of a queue that sends.
pub trait OnTransmit {
    /// The task that fills `tx` with `buffers`.
    fn on<'p, A: Allocate + 'p>(
        self,
        tx: impl Transmit<Frames = A::Frames> + 'p,
        buffers: A,
    ) -> Box<dyn Task + 'p>;
}

/// Makes a task of a queue each way.
pub trait OnPair {
    /// The task between `rx` and `tx`; copies are made in `buffers`.
    fn on<'p, A: Allocate<Frames: FramesMut> + 'p>(
        self,
        rx: impl Receive<Frames = A::Frames> + 'p,
        tx: impl Transmit<Frames = A::Frames> + 'p,
        buffers: A,
    ) -> Box<dyn Task + 'p>;
}

/// Makes a task of a queue each way, and of the host's beside them.
pub trait OnBeside {
    /// The task between `rx` and `tx`, with what goes to the host and what comes from it; copies are made in `buffers`.
    fn on<'p, R, T, A>(
        self,
        link: (
            impl Receive<Frames = A::Frames> + 'p,
            impl Transmit<Frames = A::Frames> + 'p,
        ),
        host: (Option<T>, Option<R>),
        buffers: A,
    ) -> Box<dyn Task + 'p>
    where
        R: Receive<Frames = A::Frames> + 'p,
        T: Transmit<Frames = A::Frames> + 'p,
        A: Allocate<Frames: FramesMut> + 'p;
}

impl<'s, 'p, 'e: 'p> Stage<'s, 'p, 'e> {
    pub fn new(
        pools: Option<&'p Pools<'e>>,
        ports: &'s mut [OpenPort<'e>],
        (cores, counters): (&'s [usize], &'s [Arc<WorkerCounters>]),
        (clock, start): (Clock, Ticks),
        dir: &'s RunDir,
    ) -> Self {
        Self {
            ports,
            cores,
            clock,
            start,
            dir,
            pools,
            workers: cores.iter().map(|core| Worker::new(*core)).collect(),
            counters,
            taps: Vec::new(),
        }
    }

    /// Has `worker` poll `rx`, a queue of `port`. False where there is no such queue: a device without DPDK.
    pub fn receive(
        &mut self,
        (worker, role): (usize, &'static str),
        port: usize,
        rx: Rx<'e>,
        task: impl OnReceive,
    ) -> bool {
        let tap = self.tap(worker, port, Direction::In);
        let task = match (rx, self.dpdk(port)) {
            (Rx::Socket(rx), _) => task.on(Tapped::new(*rx, tap)),
            (Rx::Device(rx), Some(dpdk)) => {
                let rx = DpdkReceive::new(dpdk.eal, rx, self.is_cold(port));
                task.on(Tapped::new(rx, tap))
            }
            (Rx::Device(_), None) => return false,
        };
        self.workers[worker].add(role, task);
        true
    }

    /// Makes a source of `rx`, a queue of `port`; what receives for it, `worker` polls. `None` where there is no such
    /// queue: a device without DPDK.
    pub fn source(
        &mut self,
        (worker, role): (usize, &'static str),
        port: usize,
        rx: Rx<'e>,
        source: impl OnSource,
    ) -> Option<Box<dyn Source + 'p>> {
        let (source, receiver) = match (rx, self.dpdk(port)) {
            (Rx::Socket(rx), _) => source.on(*rx),
            (Rx::Device(rx), Some(dpdk)) => source.on(DpdkReceive::new(dpdk.eal, rx, self.is_cold(port))),
            (Rx::Device(_), None) => return None,
        };
        if let Some(receiver) = receiver {
            self.workers[worker].add(role, receiver);
        }
        Some(source)
    }

    /// Has `worker` poll a task that has its queues already.
    pub fn add(&mut self, (worker, role): (usize, &'static str), task: Box<dyn Task + 'p>) {
        self.workers[worker].add(role, task);
    }

    /// Has `worker` fill `tx`, a queue of `port`.
    pub fn transmit(
        &mut self,
        (worker, role): (usize, &'static str),
        port: usize,
        tx: Tx<'e>,
        task: impl OnTransmit,
    ) -> bool {
        let tap = self.tap(worker, port, Direction::Out);
        let task = match (tx, self.dpdk(port)) {
            (Tx::Socket(tx), _) => {
                let buffers = tx.buffers();
                task.on(Tapped::new(*tx, tap), buffers)
            }
            (Tx::Device(tx), Some(dpdk)) => {
                let tx = DpdkTransmit::new(dpdk.eal, tx, self.is_shared(port));
                task.on(Tapped::new(tx, tap), dpdk.buffers(self.is_far(port)))
            }
            (Tx::Device(_), None) => return false,
        };
        self.workers[worker].add(role, task);
        true
    }

    /// Has `worker` move frames from a queue of one port to a queue of another, or of the same; what it makes itself, it makes
    /// for the one it sends to.
    pub fn pair(
        &mut self,
        (worker, role): (usize, &'static str),
        (from, rx): (usize, Rx<'e>),
        (to, tx): (usize, Tx<'e>),
        task: impl OnPair,
    ) -> bool {
        let taps_in = self.tap(worker, from, Direction::In);
        let taps_out = self.tap(worker, to, Direction::Out);
        let task = match (rx, tx, self.dpdk(to)) {
            (Rx::Socket(rx), Tx::Socket(tx), _) => {
                let buffers = tx.buffers();
                task.on(Tapped::new(*rx, taps_in), Tapped::new(*tx, taps_out), buffers)
            }
            (Rx::Device(rx), Tx::Device(tx), Some(dpdk)) => {
                let rx = DpdkReceive::new(dpdk.eal, rx, self.is_cold(from));
                let tx = DpdkTransmit::new(dpdk.eal, tx, self.is_shared(to));
                task.on(
                    Tapped::new(rx, taps_in),
                    Tapped::new(tx, taps_out),
                    dpdk.buffers(false),
                )
            }
            _ => return false,
        };
        let is_file = self.ports[from].traits().medium == Medium::Files;
        let task = if is_file { Box::new(HeldBack(task)) } else { task };
        self.workers[worker].add(role, task);
        true
    }

    /// Has `wire` put tasks onto the other ends of embedded rings: they are the path and no port, and nobody looks into them.
    pub fn on_far_side<T>(&mut self, wire: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.taps.len();
        let wired = wire(self);
        self.taps.truncate(before);
        wired
    }

    /// As [`Stage::pair`], with queues of the host's taps: where frames of port `from` go to, and where those come from that
    /// leave by `to`. Of DPDK's devices only.
    pub fn pair_beside(
        &mut self,
        (worker, role): (usize, &'static str),
        (from, rx): (usize, Rx<'e>),
        (to, tx): (usize, Tx<'e>),
        (towards, comes): (Option<Tx<'e>>, Option<Rx<'e>>),
        task: impl OnBeside,
    ) -> bool {
        let (Rx::Device(rx), Tx::Device(tx), Some(dpdk)) = (rx, tx, self.dpdk(to)) else {
            return false;
        };
        let taps_in = self.tap(worker, from, Direction::In);
        let taps_out = self.tap(worker, to, Direction::Out);
        let buffers = self.dpdk(from).unwrap_or(dpdk).buffers(false);
        let towards = towards.and_then(|tx| match tx {
            Tx::Device(tx) => Some(DpdkTransmit::new(dpdk.eal, tx, false)),
            Tx::Socket(_) => None,
        });
        let comes = comes.and_then(|rx| match rx {
            Rx::Device(rx) => Some(DpdkReceive::new(dpdk.eal, rx, false)),
            Rx::Socket(_) => None,
        });
        let rx = Tapped::new(DpdkReceive::new(dpdk.eal, rx, self.is_cold(from)), taps_in);
        let tx = Tapped::new(DpdkTransmit::new(dpdk.eal, tx, self.is_shared(to)), taps_out);
        let task = task.on((rx, tx), (towards, comes), buffers);
        self.workers[worker].add(role, task);
        true
    }

    /// Where control leaves a tap for the next queue of `port` in this direction.
    fn tap(&mut self, worker: usize, port: usize, direction: Direction) -> Arc<TapSlot> {
        let slot = TapSlot::new(Arc::clone(&self.counters[worker]));
        let same = |place: &&TapPlace| place.port == port && place.direction == direction;
        let queue = self.taps.iter().filter(same).count();
        self.taps.push(TapPlace {
            port,
            queue,
            direction,
            slot: Arc::clone(&slot),
        });
        slot
    }

    /// The queues that others may look into, once all tasks are there.
    pub fn take_taps(&mut self) -> Vec<TapPlace> {
        std::mem::take(&mut self.taps)
    }

    /// Whether another core, or a device, wrote what comes in through a port.
    fn is_cold(&self, port: usize) -> bool {
        let traits = self.ports[port].traits();
        traits.frames_are_cold && (traits.medium != Medium::Process || self.cores.len() > 1)
    }

    /// Whether another core reads what goes out through a port, where it lies. A NIC leaves it in this core's cache.
    fn is_far(&self, port: usize) -> bool {
        self.is_cold(port) && matches!(self.ports[port].traits().medium, Medium::Process | Medium::Peer)
    }

    /// Whether another process copies what goes out through a port from where it lies.
    fn is_shared(&self, port: usize) -> bool {
        self.is_cold(port) && self.ports[port].traits().medium == Medium::Peer
    }

    fn dpdk(&self, port: usize) -> Option<Dpdk<'p, 'e>> {
        self.pools.map(|pools| pools.of_port(port))
    }

    pub fn into_workers(self) -> Vec<Worker<'p>> {
        self.workers
    }
}
