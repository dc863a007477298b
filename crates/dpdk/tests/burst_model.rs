//! Random operations on bursts against a plain list: no packet is lost, doubled or moved, whatever the order.

#![allow(clippy::unwrap_used, reason = "a test's helpers")]

mod support;

use std::collections::VecDeque;

use dpdk::{BURST_CAPACITY, Burst, Eal, Mbuf, Pool};

/// A small generator: the seed is the test's, so each failure replays.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

fn numbers(burst: &Burst<'_>) -> Vec<u64> {
    (0..burst.len())
        .map(|index| u64::from_be_bytes(burst.bytes(index)[..8].try_into().unwrap_or_default()))
        .collect()
}

#[test]
fn bursts_behave_like_lists() {
    let eal = support::eal("model");
    let pool = Pool::new(&eal, "packets", 1023, 64, 512, None).unwrap();
    for seed in 1..=20 {
        run(&eal, &pool, seed);
        assert_eq!(pool.in_use(), 0, "seed {seed}");
    }
    let mut burst = Burst::new(&eal);
    assert_eq!(pool.allocate(&mut burst, BURST_CAPACITY + 1), 0, "all or none");
    let mut held = Vec::new();
    held.extend(std::iter::from_fn(|| pool.allocate_one()));
    assert_eq!(held.len(), 1023);
    assert_eq!(pool.allocate(&mut burst, 1), 0, "the pool is empty");
    let mut packet = held.pop().unwrap();
    assert!(packet.copy_from(&[7; 512]) && packet.bytes() == [7; 512]);
    assert!(
        !packet.copy_from(&[8; 513]) && packet.bytes() == [7; 512],
        "it does not fit"
    );
}

fn run<'e>(eal: &'e Eal, pool: &Pool<'e>, seed: u64) {
    let mut random = Random(seed);
    let (mut burst, mut other) = (Burst::new(eal), Burst::new(eal));
    let (mut model, mut other_model) = (VecDeque::new(), VecDeque::new());
    let mut held: VecDeque<(u64, Mbuf<'e>)> = VecDeque::new();
    let mut next = 0_u64;
    for step in 0..2000 {
        match random.below(9) {
            0 | 1 => {
                let count = random.below(40);
                let from = burst.len();
                if pool.allocate(&mut burst, count) > 0 {
                    for index in from..from + count {
                        let len = 8 + random.below(400);
                        burst.write(index, len)[..8].copy_from_slice(&next.to_be_bytes());
                        assert_eq!(burst.packet_len(index), len);
                        model.push_back(next);
                        next += 1;
                    }
                }
            }
            2 => {
                let keep: Vec<bool> = (0..random.below(BURST_CAPACITY))
                    .map(|_| random.below(3) > 0)
                    .collect();
                burst.retain(&keep);
                let mut index = 0;
                model.retain(|_| {
                    index += 1;
                    keep.get(index - 1).copied().unwrap_or(true)
                });
            }
            3 if !burst.is_empty() => {
                let index = random.below(burst.len());
                held.push_back((model.remove(index).unwrap(), burst.take(index)));
            }
            4 => {
                if let Some((number, packet)) = held.pop_front() {
                    match burst.push(packet) {
                        Ok(()) => model.push_back(number),
                        Err(packet) => held.push_front((number, packet)),
                    }
                }
            }
            5 => {
                let moved = other.append(&mut burst, random.below(BURST_CAPACITY));
                other_model.extend(model.drain(..moved));
            }
            6 => {
                let to: Vec<u8> = (0..random.below(BURST_CAPACITY))
                    .map(|_| random.below(3) as u8)
                    .collect();
                burst.distribute(&to, std::slice::from_mut(&mut other));
                let mut index = 0;
                model.retain(|number| {
                    index += 1;
                    let goes = to.get(index - 1) == Some(&0) && other_model.len() < BURST_CAPACITY;
                    if goes {
                        other_model.push_back(*number);
                    }
                    !goes
                });
            }
            7 => {
                if let Some(packet) = burst.pop_front() {
                    held.push_back((model.pop_front().unwrap(), packet));
                }
                if let Some(packet) = burst.pop() {
                    held.push_back((model.pop_back().unwrap(), packet));
                }
            }
            _ => {
                let len = random.below(BURST_CAPACITY);
                other.truncate(len);
                other_model.truncate(len);
                held.truncate(100);
            }
        }
        assert_eq!(model, numbers(&burst), "seed {seed} step {step}");
        assert_eq!(other_model, numbers(&other), "seed {seed} step {step}");
        assert_eq!(
            pool.in_use(),
            model.len() + other_model.len() + held.len(),
            "seed {seed} step {step}"
        );
    }
}
