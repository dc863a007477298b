//! The highest rate at which one core takes the frames of four ports into the ring without losing one: another core sends.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

use capture::merge::Order;
use capture::ring::Ring;
use dataplane::capture::{CaptureTask, MergeCounters};
use dataplane::slot::Slot;
use dataplane::{Phase, Task};
use dpdk::{Burst, Eal, Pool, TxQueue, spawn_worker};
use measure::Clock;
use serde::Serialize;

use crate::costs::{Bed, now, ring, sources};

/// Packets that wait at most at a port: as many as large NICs have descriptors.
const DEPTH: usize = 4096;
/// Frames sent to a port at once.
const BURST: usize = 32;
/// Halvings of the range between what was lost and what was not.
pub const STEPS: u32 = 7;
/// Where a search begins, packets a second.
const LOWEST: f64 = 200e3;
/// How long a trial sends, seconds.
const TRIAL: f64 = 0.1;

/// One trial, or the best of a search.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Flow {
    /// Frame size with FCS, bytes.
    pub size: usize,
    /// Packets offered a second.
    pub rate: f64,
    /// Packets that found their port's ring full.
    pub lost: u64,
    /// The sending core could do no more: the capture can perhaps.
    pub is_sender: bool,
}

/// The capture of four ports on the calling core.
pub struct Four<'e> {
    eal: &'e Eal,
    pool: &'e Pool<'e>,
    bed: Bed<'e>,
    task: CaptureTask<'e>,
    counters: Arc<MergeCounters>,
    _ring: Ring,
    sender: usize,
    hz: f64,
}

impl<'e> Four<'e> {
    /// Opens the ports; `sender` is the core that will send.
    pub fn new(eal: &'e Eal, pool: &'e Pool<'e>, sender: usize, hz: f64) -> Result<Self, Box<dyn Error>> {
        let (bed, rx) = Bed::new(eal, pool, "four", DEPTH)?;
        let (producer, ring) = ring()?;
        let counters = Arc::<MergeCounters>::default();
        let task = CaptureTask::new(
            sources(eal, rx),
            (Order::Strict, u64::MAX),
            producer,
            (Clock::from_calibration(now().0, 1 << 40, hz), now),
            Arc::clone(&counters),
            Slot::new().1,
        );
        Ok(Self {
            eal,
            pool,
            bed,
            task,
            counters,
            _ring: ring,
            sender,
            hz,
        })
    }

    /// The highest rate without loss at frames of `size` bytes with FCS.
    pub fn search(&mut self, size: usize) -> Result<Flow, Box<dyn Error>> {
        let flood = self.trial(size, None)?;
        if flood.lost == 0 {
            return Ok(Flow {
                is_sender: true,
                ..flood
            });
        }
        let (mut good, mut bad, mut best) = (LOWEST, flood.rate, None);
        for _ in 0..STEPS {
            let rate = (good * bad).sqrt();
            let at = self.majority(size, rate)?;
            if at.lost == 0 {
                (good, best) = (rate, Some(at));
            } else {
                bad = rate;
            }
        }
        best.ok_or_else(|| format!("{size} bytes: frames were lost at every rate").into())
    }

    /// What two of three trials came to: a pause of this machine is none of a rate's fault.
    fn majority(&mut self, size: usize, rate: f64) -> Result<Flow, Box<dyn Error>> {
        let mut trials = [
            self.trial(size, Some(rate))?,
            self.trial(size, Some(rate))?,
            self.trial(size, Some(rate))?,
        ];
        trials.sort_by_key(|trial| trial.lost);
        Ok(trials[1])
    }

    fn trial(&mut self, size: usize, rate: Option<f64>) -> Result<Flow, Box<dyn Error>> {
        let before = self.counters.written.get();
        let is_over = AtomicBool::new(false);
        let (eal, pool, hz, sender) = (self.eal, self.pool, self.hz, self.sender);
        let (tx, task) = (&mut self.bed.tx, &mut self.task);
        let (offered, lost, seconds) = std::thread::scope(|scope| {
            let work = || {
                let sent = send(eal, pool, tx, (size - 4, rate, hz));
                is_over.store(true, Release);
                sent
            };
            let worker = spawn_worker(scope, Some(eal), sender, "bench-send", work)?;
            while !is_over.load(Acquire) {
                task.poll(now(), Phase::Run);
            }
            // What waits still: each look takes a burst of each port.
            for _ in 0..2 * DEPTH / BURST {
                task.poll(now(), Phase::Run);
            }
            let sent = worker.join().map_err(|_| "the sender panicked")?;
            Ok::<_, Box<dyn Error>>(sent?)
        })?;
        let written = self.counters.written.get() - before;
        if written + lost != offered {
            return Err(format!("{offered} offered, {written} in the ring, {lost} lost").into());
        }
        Ok(Flow {
            size,
            rate: offered as f64 / seconds,
            lost,
            is_sender: false,
        })
    }
}

/// Sends to the ports in turn at this rate, or as fast as it goes: what was offered, what found no room, and the seconds.
fn send<'e>(
    eal: &'e Eal,
    pool: &Pool<'e>,
    tx: &mut [TxQueue<'e>],
    (len, rate, hz): (usize, Option<f64>, f64),
) -> Result<(u64, u64, f64), &'static str> {
    let every = rate.map_or(0.0, |rate| hz * BURST as f64 / rate);
    let (begun, mut burst) = (dpdk::tsc(), Burst::new(eal));
    let (mut bursts, mut lost) = (0_u64, 0_u64);
    let until = (TRIAL * hz) as u64;
    loop {
        let due = (bursts as f64 * every) as u64;
        while dpdk::tsc() - begun < due {
            std::hint::spin_loop();
        }
        if dpdk::tsc() - begun >= until {
            break;
        }
        if pool.allocate(&mut burst, BURST) != BURST {
            return Err("the pool is empty");
        }
        for index in 0..BURST {
            burst.write(index, len)[..60].fill(index as u8);
        }
        let queue = (bursts % tx.len() as u64) as usize;
        lost += (BURST - tx[queue].transmit(&mut burst, BURST)) as u64;
        burst.clear();
        bursts += 1;
    }
    Ok((bursts * BURST as u64, lost, (dpdk::tsc() - begun) as f64 / hz))
}
