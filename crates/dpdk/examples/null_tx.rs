//! How fast one core can write and send 64-byte frames: a null port, bursts of 64, raw buffers one burst ahead.
//!
//! `cargo run --release -p dpdk --example null_tx -- [seconds] [core] [EAL arguments]`

use std::{
    error::Error,
    fs,
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
        let small = [
            "--no-huge",
            "--no-pci",
            "--no-shconf",
            "-m",
            "128",
            "--file-prefix",
            "dl-null-tx",
        ];
        arguments = small.map(str::to_owned).to_vec();
    }
    let eal = Eal::init(&arguments)?;
    let pool = Pool::new(&eal, "packets", 8191, 512, 2048, None)?;
    let name = eal.null("0", FRAME_LEN)?;
    let config = PortConfig {
        promiscuous: false,
        ..PortConfig::default()
    };
    let (mut port, _rx, mut tx) = Port::by_name(&eal, &name)?.configure(&config, &pool)?;
    port.start()?;
    let queue = tx.first_mut().ok_or("the port has no transmit queue")?;
    let Sent {
        packets,
        elapsed,
        on_cpu,
    } = thread::scope(|scope| {
        let work = || send(&eal, &pool, queue, Duration::from_secs_f64(seconds));
        spawn_worker(scope, core, "null_tx", work)?
            .join()
            .map_err(|_| "the worker panicked".into())
    })
    .map_err(|error: Box<dyn Error>| error)?;
    let mpps = |time: Duration| packets as f64 / time.as_secs_f64() / 1e6;
    println!(
        "{packets} packets in {:.3} s: {:.1} Mpps",
        elapsed.as_secs_f64(),
        mpps(elapsed)
    );
    if let Some(on_cpu) = on_cpu {
        // What the core would do if the thread had it alone.
        println!(
            "{:.3} s of that on the core: {:.1} Mpps",
            on_cpu.as_secs_f64(),
            mpps(on_cpu)
        );
    }
    Ok(())
}

struct Sent {
    packets: u64,
    elapsed: Duration,
    on_cpu: Option<Duration>,
}

/// How long the calling thread has been on a core, where the kernel keeps it.
fn on_cpu() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace()
        .next()?
        .parse()
        .ok()
        .map(Duration::from_nanos)
}

/// Bursts between two looks at the clock.
const CLOCK_BURSTS: usize = 4096;

fn send<'e>(eal: &'e Eal, pool: &Pool<'e>, queue: &mut TxQueue<'e>, length: Duration) -> Sent {
    let template = &black_box(std::array::from_fn::<u8, 64, _>(|index| index as u8));
    let (mut one, mut other) = (Burst::new(eal), Burst::new(eal));
    let (mut current, mut next) = (&mut one, &mut other);
    let mut sequence = 0_u64;
    let (start, cpu_start) = (Instant::now(), on_cpu());
    pool.allocate(current, BURST);
    while start.elapsed() < length {
        for _ in 0..CLOCK_BURSTS {
            // The lines of the next burst arrive while this one is written.
            pool.allocate(next, BURST);
            for blank in current.blanks() {
                let room = blank.write(FRAME_LEN);
                room[..64].copy_from_slice(template);
                room[46..54].copy_from_slice(&sequence.to_be_bytes());
                sequence += 1;
            }
            queue.transmit(current, BURST);
            // Nothing is left: the null port takes everything.
            current.clear();
            std::mem::swap(&mut current, &mut next);
        }
    }
    let on_cpu = on_cpu()
        .zip(cpu_start)
        .map(|(end, start)| end.saturating_sub(start));
    Sent {
        packets: queue.accepted(),
        elapsed: start.elapsed(),
        on_cpu,
    }
}
