//! The stage of a job: where it puts its tasks onto the queues of open ports, be those devices or sockets.

use dataplane::Task;
use dataplane::dpdk_io::{DpdkBuffers, DpdkReceive, DpdkTransmit};
use dataplane::io::{Allocate, FramesMut, Receive, Transmit};
use measure::{Clock, Ticks};
use report::rundir::RunDir;

use super::open::{Dpdk, OpenPort, Rx, Tx};
use super::workers::Worker;

/// Open ports, workers without tasks, and the time of the first packet.
pub struct Stage<'s, 'p, 'e> {
    /// The ports; a job takes their queues out.
    pub ports: &'s mut [OpenPort<'e>],
    /// The core of each worker.
    pub cores: &'s [usize],
    /// The clock.
    pub clock: Clock,
    /// When the first packet is due.
    pub start: Ticks,
    /// Where its files go.
    pub dir: &'s RunDir,
    dpdk: Option<Dpdk<'p, 'e>>,
    workers: Vec<Worker<'p>>,
}

/// Makes a task of a queue that receives.
pub trait OnReceive {
    /// The task that polls `rx`.
    fn on<'p>(self, rx: impl Receive + 'p) -> Box<dyn Task + 'p>;
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
    /// The task between `rx` and `tx`; `buffers` are there for copies.
    fn on<'p, A: Allocate<Frames: FramesMut> + 'p>(
        self,
        rx: impl Receive<Frames = A::Frames> + 'p,
        tx: impl Transmit<Frames = A::Frames> + 'p,
        buffers: A,
    ) -> Box<dyn Task + 'p>;
}

impl<'s, 'p, 'e: 'p> Stage<'s, 'p, 'e> {
    /// An empty stage.
    pub fn new(
        dpdk: Option<Dpdk<'p, 'e>>,
        ports: &'s mut [OpenPort<'e>],
        cores: &'s [usize],
        (clock, start): (Clock, Ticks),
        dir: &'s RunDir,
    ) -> Self {
        Self {
            ports,
            cores,
            clock,
            start,
            dir,
            dpdk,
            workers: cores.iter().map(|core| Worker::new(*core)).collect(),
        }
    }

    /// Has `worker` poll `rx`, whose frames are in no cache of its core where it `is_cold`. False where there is no such
    /// queue: a device without DPDK.
    pub fn receive(
        &mut self,
        worker: usize,
        role: &'static str,
        (rx, is_cold): (Rx<'e>, bool),
        task: impl OnReceive,
    ) -> bool {
        let task = match (rx, self.dpdk) {
            (Rx::Socket(rx), _) => task.on(*rx),
            (Rx::Device(rx), Some(Dpdk { eal, .. })) => task.on(DpdkReceive::new(eal, rx, is_cold)),
            (Rx::Device(_), None) => return false,
        };
        self.workers[worker].add(role, task);
        true
    }

    /// Has `worker` fill `tx`.
    pub fn transmit(&mut self, worker: usize, role: &'static str, tx: Tx<'e>, task: impl OnTransmit) -> bool {
        let task = match (tx, self.dpdk) {
            (Tx::Socket(tx), _) => {
                let buffers = tx.buffers();
                task.on(*tx, buffers)
            }
            (Tx::Device(tx), Some(Dpdk { eal, pool })) => {
                task.on(DpdkTransmit::new(eal, tx), DpdkBuffers::new(eal, pool))
            }
            (Tx::Device(_), None) => return false,
        };
        self.workers[worker].add(role, task);
        true
    }

    /// Has `worker` move frames from `rx` to `tx`.
    pub fn pair(
        &mut self,
        worker: usize,
        role: &'static str,
        (rx, is_cold): (Rx<'e>, bool),
        tx: Tx<'e>,
        task: impl OnPair,
    ) -> bool {
        let task = match (rx, tx, self.dpdk) {
            (Rx::Socket(rx), Tx::Socket(tx), _) => {
                let buffers = tx.buffers();
                task.on(*rx, *tx, buffers)
            }
            (Rx::Device(rx), Tx::Device(tx), Some(Dpdk { eal, pool })) => task.on(
                DpdkReceive::new(eal, rx, is_cold),
                DpdkTransmit::new(eal, tx),
                DpdkBuffers::new(eal, pool),
            ),
            _ => return false,
        };
        self.workers[worker].add(role, task);
        true
    }

    /// The workers with their tasks.
    pub fn into_workers(self) -> Vec<Worker<'p>> {
        self.workers
    }
}
