//! The ring: what goes in comes out, byte for byte and in order, or is counted.

use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;

use crate::any::{contents, sealed};
use ring::layout::SEGMENT_MIN;
use ring::pcapng::{self, Direction, Interface, PacketHead};
use ring::{Consumer, Full, Producer, Ring, RingError};

fn preamble() -> Vec<u8> {
    let interface = |name: &str| Interface {
        name: name.into(),
        description: "stamped by the time stamp counter".into(),
        mac: Some([2, 0, 0, 0, 0, 1]),
        speed: Some(10_000_000_000),
        snap_len: 0,
        filter: Some("udp".into()),
    };
    pcapng::preamble("dropless", &[interface("ring:a"), interface("ring:b")])
}

/// The bytes of packet `number`: as many as its number says, and each told by it.
fn bytes(number: u64, longest: u64) -> Vec<u8> {
    let len = 14 + number.wrapping_mul(0x9E37_79B9) % (longest - 13);
    (0..len).map(|at| (number.wrapping_mul(31) + at) as u8).collect()
}

fn head(number: u64, len: usize) -> PacketHead {
    PacketHead {
        interface: (number % 2) as u32,
        time_ns: 1_700_000_000_000_000_000 + number,
        original_len: len as u32 + 4,
        queue: (number % 3 == 0).then_some(7),
        direction: (number % 5 == 0).then_some(Direction::Out),
        dropped: if number % 7 == 0 { number } else { 0 },
    }
}

fn push(producer: &mut Producer, number: u64, longest: u64) -> Result<(), Full> {
    let bytes = bytes(number, longest);
    let (one, other) = bytes.split_at(bytes.len() / 3);
    producer.push(&head(number, bytes.len()), bytes.len(), [one, other])
}

fn number_of(time_ns: u64) -> u64 {
    time_ns - 1_700_000_000_000_000_000
}

/// Takes all that is there, and holds each packet against what was written. Returns the numbers.
fn take(consumer: &mut Consumer, longest: u64) -> Vec<u64> {
    let mut numbers = Vec::new();
    while let Some(packets) = consumer.packets().unwrap() {
        for packet in packets.iter() {
            let packet = packet.unwrap();
            let number = number_of(packet.time_ns);
            assert_eq!(packet.data, bytes(number, longest), "packet {number}");
            let head = head(number, packet.data.len());
            assert_eq!(
                (packet.interface, packet.original_len),
                (head.interface, head.original_len)
            );
            numbers.push(number);
        }
    }
    numbers
}

fn seat((producer, ring): (&mut Producer, &Ring), is_lossless: bool) -> Consumer {
    let (seat, page) = ring.seat(is_lossless).unwrap();
    producer.commit();
    assert!(seat.is_taken());
    Consumer::new(ring.file(), page).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    /// A lossless consumer that takes as it likes gets every packet, once and in order; what did not fit was refused.
    #[test]
    fn a_lossless_consumer_gets_all(bursts in prop::collection::vec((1u64..200, any::<bool>()), 1..60), longest in 60u64..3000) {
        let (mut producer, ring) = Producer::new(4, SEGMENT_MIN, &preamble()).unwrap();
        let mut consumer = seat((&mut producer, &ring), true);
        let (mut number, mut written, mut taken) = (0, Vec::new(), Vec::new());
        for (count, takes) in bursts {
            for _ in 0..count {
                if push(&mut producer, number, longest).is_ok() {
                    written.push(number);
                }
                number += 1;
            }
            producer.commit();
            if takes {
                taken.extend(take(&mut consumer, longest));
            }
        }
        producer.end();
        taken.extend(take(&mut consumer, longest));
        prop_assert!(consumer.is_ended());
        prop_assert_eq!(&taken, &written);
        prop_assert_eq!(consumer.counts(), (written.len() as u64, 0));
    }

    /// What is taken back before it is committed was never there, wherever a segment ends.
    #[test]
    fn what_was_withdrawn_nobody_sees(bursts in prop::collection::vec((1usize..64, 0usize..80, any::<bool>()), 1..200), longest in 60u64..1600) {
        let (mut producer, ring) = Producer::new(4, SEGMENT_MIN, &preamble()).unwrap();
        let mut consumer = seat((&mut producer, &ring), true);
        let (mut number, mut written, mut taken) = (0, Vec::new(), Vec::new());
        for (count, withdrawn, takes) in bursts {
            let numbers: Vec<u64> = (number..).take(count).collect();
            number += count as u64;
            let block = |number: u64| {
                let len = bytes(number, longest).len();
                head(number, len).block_len(len)
            };
            let len = numbers.iter().map(|number| block(*number)).sum();
            if producer.reserve(count, len).is_ok() {
                for number in &numbers {
                    prop_assert!(push(&mut producer, *number, longest).is_ok());
                }
                let withdrawn = withdrawn.min(count);
                producer.withdraw(withdrawn);
                written.extend(&numbers[..count - withdrawn]);
            }
            producer.commit();
            if takes {
                taken.extend(take(&mut consumer, longest));
            }
        }
        producer.tell(2, number);
        producer.end();
        taken.extend(take(&mut consumer, longest));
        prop_assert_eq!(&taken, &written);
        prop_assert_eq!(consumer.told(2), number);
        prop_assert_eq!(producer.packets(), written.len() as u64);
    }

    /// A lossy one never stands in the way; what it did not get is counted, to the packet.
    #[test]
    fn a_lossy_consumer_counts_what_it_lost(bursts in prop::collection::vec((1u64..2000, any::<bool>()), 1..60), longest in 60u64..3000) {
        let (mut producer, ring) = Producer::new(4, SEGMENT_MIN, &preamble()).unwrap();
        let mut consumer = seat((&mut producer, &ring), false);
        let (mut number, mut taken) = (0, Vec::new());
        for (count, takes) in bursts {
            for _ in 0..count {
                prop_assert!(push(&mut producer, number, longest).is_ok());
                number += 1;
            }
            producer.commit();
            if takes {
                taken.extend(take(&mut consumer, longest));
            }
        }
        producer.end();
        taken.extend(take(&mut consumer, longest));
        prop_assert!(taken.windows(2).all(|two| two[0] < two[1]));
        let (got, lost) = consumer.counts();
        prop_assert_eq!(got, taken.len() as u64);
        prop_assert_eq!(got + lost, number);
    }
}

/// A producer at full speed, and consumers of both kinds beside it.
#[test]
fn side_by_side_all_is_conserved() {
    const PACKETS: u64 = 300_000;
    let (mut producer, ring) = Producer::new(8, SEGMENT_MIN, &preamble()).unwrap();
    let (lossless, lossy) = (
        seat((&mut producer, &ring), true),
        seat((&mut producer, &ring), false),
    );
    let is_done = AtomicBool::new(false);
    let consume = |mut consumer: Consumer| {
        let mut all = Vec::new();
        while !is_done.load(Ordering::Acquire) {
            all.extend(take(&mut consumer, 200));
        }
        all.extend(take(&mut consumer, 200));
        (all, consumer.counts())
    };
    std::thread::scope(|scope| {
        let (lossless, lossy) = (scope.spawn(|| consume(lossless)), scope.spawn(|| consume(lossy)));
        for number in 0..PACKETS {
            while push(&mut producer, number, 200).is_err() {
                std::thread::yield_now();
            }
            if number % 32 == 0 {
                producer.commit();
            }
        }
        producer.end();
        is_done.store(true, Ordering::Release);
        let (all, counts) = lossless.join().unwrap();
        assert!(all.into_iter().eq(0..PACKETS));
        assert_eq!(counts, (PACKETS, 0));
        let (some, (got, lost)) = lossy.join().unwrap();
        assert!(some.windows(2).all(|two| two[0] < two[1]));
        assert_eq!((some.len() as u64, got + lost), (got, PACKETS));
    });
}

#[test]
fn a_consumer_that_came_late_begins_with_the_segment_under_way() {
    let (mut producer, ring) = Producer::new(4, SEGMENT_MIN, &preamble()).unwrap();
    for number in 0..100 {
        push(&mut producer, number, 1000).unwrap();
    }
    producer.commit();
    for is_lossless in [true, false] {
        let mut consumer = seat((&mut producer, &ring), is_lossless);
        assert!(take(&mut consumer, 1000).into_iter().eq(0..100));
        assert_eq!(consumer.counts(), (100, 0));
    }
}

#[test]
fn the_seat_of_one_that_is_gone_holds_nobody_up() {
    let (mut producer, ring) = Producer::new(2, SEGMENT_MIN, &preamble()).unwrap();
    let (seat, _page) = ring.seat(true).unwrap();
    producer.commit();
    let mut written = 0;
    while push(&mut producer, written, 1000).is_ok() {
        written += 1;
    }
    seat.vacate();
    assert_eq!(push(&mut producer, written, 1000), Ok(()));
}

#[test]
fn consumers_cannot_write_the_ring() {
    use nix::sys::mman::{MapFlags, ProtFlags, mmap};
    let (_producer, ring) = Producer::new(2, SEGMENT_MIN, &preamble()).unwrap();
    let len = std::num::NonZeroUsize::new(4096).unwrap();
    // SAFETY: a new mapping touches no memory of ours, and is refused.
    let mapped = unsafe {
        mmap(
            None,
            len,
            ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
            MapFlags::MAP_SHARED,
            ring.file(),
            0,
        )
    };
    assert_eq!(mapped.err(), Some(nix::Error::EPERM));
}

#[test]
fn a_ring_that_is_none_says_so() {
    let (_producer, ring) = Producer::new(2, SEGMENT_MIN, &preamble()).unwrap();
    let (_, seat) = ring.seat(true).unwrap();
    let error = |bytes: &[u8]| Consumer::new(sealed(bytes), &seat).map(drop).unwrap_err();
    assert!(matches!(error(b"short"), RingError::NotARing(_)));
    assert!(matches!(error(&[0; 8192]), RingError::NotARing(_)));
    let mut other = vec![0; 8192];
    other[..8].copy_from_slice(b"DRPLRING");
    other[8..12].copy_from_slice(&9_u32.to_ne_bytes());
    assert!(matches!(error(&other), RingError::Version(9)));
    other[8..12].copy_from_slice(&1_u32.to_ne_bytes());
    assert!(matches!(error(&other), RingError::Geometry(_)));
    other[12..16].copy_from_slice(&4_u32.to_ne_bytes());
    other[16..20].copy_from_slice(&SEGMENT_MIN.to_ne_bytes());
    assert!(matches!(error(&other), RingError::NotARing(_)));
    // A file that may become shorter is none, whatever is in it.
    let file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut &file, &contents(ring.file())).unwrap();
    let unsealed = |error| matches!(error, RingError::NotARing("its memory could shrink"));
    assert!(unsealed(Consumer::new(&file, &seat).map(drop).unwrap_err()));
    assert!(Consumer::new(ring.file(), &file).is_err());
}
