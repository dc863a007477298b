//! How fast one core can write and send 64-byte frames: a null port, bursts of 64, raw buffers one burst ahead.
//!
//! `cargo run --release -p dpdk --example null_tx -- [seconds] [core] [EAL arguments]`

use std::{
    error::Error,
    hint::black_box,
    thread,
    time::{Duration, Instant},
};

use dpdk::{Burst, Eal, Pool, Port, PortConfig, TxQueue, spawn_worker};

const BURST: usize = 64;
/// Without the FCS.
const FRAME_LEN: usize = 60;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let seconds: f64 = words.next().map_or(Ok(2.0), |word| word.parse())?;
    let core: usize = words.next().map_or(Ok(0), |word| word.parse())?;
    let mut arguments: Vec<String> = words.collect();
    if arguments.is_empty() {
        let small = ["--no-huge", "--no-pci", "--no-shconf", "-m", "128", "--file-prefix", "dl-null-tx"];
        arguments = small.map(str::to_owned).to_vec();
    }
    let eal = Eal::init(&arguments)?;
    let pool = Pool::new(&eal, "packets", 8191, 512, 2048, None)?;
    let name = eal.null("0", FRAME_LEN)?;
    let config = PortConfig { promiscuous: false, ..PortConfig::default() };
    let (mut port, _rx, mut tx) = Port::by_name(&eal, &name)?.configure(&config, &pool)?;
    port.start()?;
    let queue = tx.first_mut().ok_or("the port has no transmit queue")?;
    let (packets, elapsed) = thread::scope(|scope| {
        let work = || send(&eal, &pool, queue, Duration::from_secs_f64(seconds));
        spawn_worker(scope, core, "null_tx", work)?.join().map_err(|_| "the worker panicked".into())
    })
    .map_err(|error: Box<dyn Error>| error)?;
    let rate_mpps = packets as f64 / elapsed.as_secs_f64() / 1e6;
    println!("{packets} packets in {:.3} s: {rate_mpps:.1} Mpps", elapsed.as_secs_f64());
    Ok(())
}

/// Bursts between two looks at the clock.
const CLOCK_BURSTS: usize = 4096;

fn send<'e>(eal: &'e Eal, pool: &Pool<'e>, queue: &mut TxQueue<'e>, length: Duration) -> (u64, Duration) {
    let template: [u8; 64] = std::array::from_fn(|index| index as u8);
    let (mut current, mut next) = (Burst::new(eal), Burst::new(eal));
    let mut sequence = 0_u64;
    let start = Instant::now();
    pool.allocate(&mut current, BURST);
    while start.elapsed() < length {
        for _ in 0..CLOCK_BURSTS {
            // The lines of the next burst arrive while this one is written.
            pool.allocate(&mut next, BURST);
            for index in 0..current.len() {
                let room = current.write(index, FRAME_LEN);
                room[..64].copy_from_slice(black_box(&template));
                room[46..54].copy_from_slice(&sequence.to_be_bytes());
                sequence += 1;
            }
            queue.transmit(&mut current, BURST);
            // Nothing is left: the null port takes everything.
            current.clear();
            std::mem::swap(&mut current, &mut next);
        }
    }
    (queue.accepted(), start.elapsed())
}
