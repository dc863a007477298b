//! A port is stopped and started while workers poll it: no burst call overlaps a stop, and no packet is lost to it.

mod support;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use dpdk::{Burst, Pool, Port, PortConfig};

#[test]
fn stopping_waits_for_the_workers() {
    let eal = support::eal("stop");
    let pool = Pool::new(&eal, "packets", 2047, 64, 2048, None).unwrap();
    let name = eal.ring_loop("loop", 512, 1).unwrap();
    let config = PortConfig::default();
    let (mut port, rx, tx) = Port::by_name(&eal, &name)
        .unwrap()
        .configure(&config, &pool)
        .unwrap();
    // The sender may be inside a last round when it is told to end: what it sends there is for the receiver, too.
    let [done, all_sent] = [const { AtomicBool::new(false) }; 2];
    let (sent, received) = thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut queue = tx.into_iter().next().unwrap();
            let mut burst = Burst::new(&eal);
            while !done.load(Ordering::Relaxed) {
                if burst.is_empty() && pool.allocate(&mut burst, 32) == 32 {
                    (0..32).for_each(|index| burst.write(index, 60).fill(1));
                }
                queue.transmit(&mut burst, 32);
                thread::yield_now();
            }
            queue.accepted()
        });
        let receiver = scope.spawn(|| {
            let mut queue = rx.into_iter().next().unwrap();
            let mut burst = Burst::new(&eal);
            let mut quiet = 0;
            // After the end the ring is emptied. That nothing came while the port was stopped says nothing of it.
            while quiet < 10 {
                let is_end = all_sent.load(Ordering::Acquire);
                let is_quiet = queue.receive(&mut burst, 32) == 0;
                quiet = if is_end && is_quiet { quiet + 1 } else { 0 };
                burst.clear();
                thread::yield_now();
            }
            queue.received()
        });
        for _ in 0..200 {
            port.start().unwrap();
            thread::sleep(Duration::from_micros(500));
            port.stop().unwrap();
        }
        port.start().unwrap();
        done.store(true, Ordering::Relaxed);
        let sent = sender.join().unwrap();
        all_sent.store(true, Ordering::Release);
        (sent, receiver.join().unwrap())
    });
    assert!(sent > 0, "nothing was sent");
    assert_eq!(sent, received);
    assert_eq!(pool.in_use(), 0);
}
