//! Does contiguous matter? Headers read out of the ring, and out of buffers that lie anywhere.

use std::error::Error;
use std::hint::black_box;

use capture::ring::Consumer;
use dpdk::{Burst, Eal, Pool};
use serde::Serialize;

use crate::costs::{head, ring};

/// Packets that are read: with their buffers more than any cache holds.
const PACKETS: usize = 30_000;
/// Bytes of a header: Ethernet, IPv4, ports.
const HEADER: usize = 42;
const BURST: usize = 64;

/// Nanoseconds a packet, when its header is read for the first time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Reads {
    /// Frame size with FCS, bytes.
    pub size: usize,
    /// Out of the ring by its worklist.
    pub worklist: f64,
    /// Out of the ring from length to length.
    pub lengths: f64,
    /// Out of buffers in the order in which the pool has them.
    pub scattered: f64,
    /// Out of buffers in the order that a pool has after some use.
    pub shuffled: f64,
}

/// Measures once.
pub fn measure<'e>(eal: &'e Eal, pool: &Pool<'e>, size: usize, hz: f64) -> Result<Reads, Box<dyn Error>> {
    let len = size - 4;
    let mut bursts = frames(eal, pool, len)?;
    let mut cache = vec![1_u8; 96 << 20];
    let scattered = timed(&mut cache, hz, || Ok(of_bursts(&bursts)));
    shuffle(eal, &mut bursts);
    let shuffled = timed(&mut cache, hz, || Ok(of_bursts(&bursts)));
    let (mut producer, ring) = ring()?;
    let (seat, page) = ring.seat(true)?;
    producer.commit();
    for (index, frame) in bursts
        .iter()
        .flat_map(|burst| burst.each().map(|(frame, _)| frame))
        .enumerate()
    {
        producer
            .push(&head(index, frame.len()), frame.len(), [frame])
            .map_err(|_| "the ring is too small")?;
    }
    producer.commit();
    let mut consumer = Consumer::new(ring.file(), page)?;
    let lengths = timed(&mut cache, hz, || of_lengths(&consumer));
    let worklist = timed(&mut cache, hz, || of_worklist(&mut consumer));
    let taken = seat.counts().0;
    if taken != (bursts.len() * BURST) as u64 {
        return Err(format!("{taken} packets came out of the ring").into());
    }
    Ok(Reads {
        size,
        worklist: worklist?,
        lengths: lengths?,
        scattered: scattered?,
        shuffled: shuffled?,
    })
}

fn frames<'e>(eal: &'e Eal, pool: &Pool<'e>, len: usize) -> Result<Vec<Burst<'e>>, Box<dyn Error>> {
    let mut bursts = Vec::new();
    for _ in 0..PACKETS / BURST {
        let mut burst = Burst::new(eal);
        if pool.allocate(&mut burst, BURST) != BURST {
            return Err("the pool is empty".into());
        }
        for index in 0..BURST {
            burst.write(index, len).fill(index as u8);
        }
        bursts.push(burst);
    }
    Ok(bursts)
}

/// Exchanges frames between bursts at random.
fn shuffle<'e>(eal: &'e Eal, bursts: &mut Vec<Burst<'e>>) {
    let mut all: Vec<_> = bursts
        .drain(..)
        .flat_map(|mut burst| std::iter::from_fn(move || burst.pop()).collect::<Vec<_>>())
        .collect();
    let mut state = 7_u64;
    while all.len() >= BURST {
        let mut burst = Burst::new(eal);
        for _ in 0..BURST {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let index = (state >> 33) as usize % all.len();
            let _ = burst.push(all.swap_remove(index));
        }
        bursts.push(burst);
    }
}

/// Time of `work` over all packets, when the caches hold something else.
fn timed(
    cache: &mut [u8],
    hz: f64,
    work: impl FnOnce() -> Result<(usize, u64), Box<dyn Error>>,
) -> Result<f64, Box<dyn Error>> {
    cache
        .iter_mut()
        .step_by(64)
        .for_each(|byte| *byte = byte.wrapping_add(1));
    black_box(&cache);
    let begun = dpdk::tsc();
    let (count, sum) = work()?;
    let ticks = dpdk::tsc() - begun;
    black_box(sum);
    if count != PACKETS / BURST * BURST {
        return Err(format!("{count} packets were read").into());
    }
    Ok(ticks as f64 / hz * 1e9 / count as f64)
}

#[inline]
fn sum(frame: &[u8]) -> u64 {
    let words = frame[..HEADER].chunks_exact(2);
    words
        .map(|word| u64::from(u16::from_ne_bytes([word[0], word[1]])))
        .sum()
}

fn of_bursts(bursts: &[Burst<'_>]) -> (usize, u64) {
    let mut all = (0, 0);
    for burst in bursts {
        for (frame, _) in burst.each() {
            all = (all.0 + 1, all.1 + sum(frame));
        }
    }
    all
}

fn of_worklist(consumer: &mut Consumer) -> Result<(usize, u64), Box<dyn Error>> {
    let mut all = (0, 0);
    while let Some(packets) = consumer.packets()? {
        for packet in packets.iter() {
            all = (all.0 + 1, all.1 + sum(packet?.data));
        }
    }
    // The last segment is given back with the next call.
    Ok(all)
}

fn of_lengths(consumer: &Consumer) -> Result<(usize, u64), Box<dyn Error>> {
    let mut all = (0, 0);
    let mut number = consumer.next_segment();
    while let Some(segment) = consumer.segment(number)? {
        let mut at = 0;
        for _ in 0..segment.packets {
            let word = |at: usize| segment.blocks[at..at + 4].try_into().map(u32::from_ne_bytes);
            all = (all.0 + 1, all.1 + sum(&segment.blocks[at + 28..]));
            at += word(at + 4)? as usize;
        }
        number += 1;
    }
    Ok(all)
}
