//! A ring that holds anything: no panic, no end that never comes, nothing read outside; in Rust and in C the same.

use std::fmt::Write as _;
use std::os::fd::AsFd;
use std::path::Path;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use ring::layout::{Geometry, header, slot};
use ring::pcapng::{ENTRY, PacketHead};
use ring::{Consumer, RingError};

use crate::support::{Compiler, Served, contents, contrib, ended, sealed, spawn};

const PACKETS: u64 = 700;

/// The bytes of a ring, and of a consumer's page.
#[derive(Clone, Debug, Default)]
struct Image {
    ring: Vec<u8>,
    page: Vec<u8>,
}

/// Where the first byte of a change is.
#[derive(Clone, Copy, Debug)]
enum Place {
    Header(usize),
    Slot(usize),
    /// An entry of a worklist.
    Entry(u64, usize),
    /// Somewhere in a segment.
    Segment(u64, usize),
    Page(usize),
}

/// Numbers that fit, that nearly fit, and any.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..8,
        any::<u64>(),
        any::<u32>().prop_map(u64::from),
        (0u64..40_000, 0u64..140_000).prop_map(|(packets, bytes)| packets << 32 | bytes),
        (0u32..8).prop_map(|less| u64::MAX - u64::from(less)),
    ]
}

fn change() -> impl Strategy<Value = (Place, u64)> {
    let place = prop_oneof![
        (0usize..20).prop_map(|word| Place::Header(word * 8)),
        (0usize..32).prop_map(|word| Place::Slot(word * 8)),
        (0u64..4, 0usize..200).prop_map(|(segment, entry)| Place::Entry(segment, entry)),
        (0u64..4, 0usize..131_000).prop_map(|(segment, at)| Place::Segment(segment, at)),
        (0usize..12).prop_map(|word| Place::Page(word * 8)),
    ];
    (place, value())
}

/// A ring of four segments of which some were overwritten, as a consumer of this kind finds it.
fn sound(is_lossless: bool) -> Image {
    let mut served = Served::new();
    let (_seat, page) = served.ring.seat(is_lossless).unwrap();
    served.producer.commit();
    for number in 0..PACKETS {
        let frame = vec![number as u8; 60 + (number * 37 % 1400) as usize];
        let head = PacketHead {
            time_ns: number,
            ..PacketHead::default()
        };
        if served.producer.push(&head, frame.len(), [&frame[..]]).is_err() {
            break;
        }
        served.producer.commit();
    }
    Image {
        ring: contents(served.ring.file()),
        page: contents(page.as_fd()),
    }
}

impl Image {
    fn change(&mut self, changes: &[(Place, u64)]) {
        let geometry = Geometry {
            segments: 4,
            segment_len: ring::layout::SEGMENT_MIN,
            preamble_len: 4096,
        };
        for (place, value) in changes {
            let value = value.to_ne_bytes();
            let (bytes, at) = match place {
                Place::Header(at) => (&mut self.ring, *at),
                Place::Slot(at) => (&mut self.ring, header::LEN + at),
                Place::Entry(segment, entry) => {
                    let end = geometry.segment_at(*segment) + geometry.segment_len as usize - 4;
                    (&mut self.ring, end - (entry + 1) * ENTRY)
                }
                Place::Segment(segment, at) => (&mut self.ring, geometry.segment_at(*segment) + at),
                Place::Page(at) => (&mut self.page, *at),
            };
            bytes[at..at + 8].copy_from_slice(&value);
        }
    }

    /// Reads it to its end: packets, the sum of their bytes, and whether an error ended it.
    fn read(&self) -> (u64, u64, bool) {
        let (mut count, mut sum) = (0, 0);
        let mut go = || {
            let mut consumer = Consumer::new(sealed(&self.ring), sealed(&self.page))?;
            consumer.preamble();
            while let Some(packets) = consumer.packets()? {
                for packet in packets.iter() {
                    let packet = packet?;
                    count += 1;
                    sum += packet.data.iter().map(|byte| u64::from(*byte)).sum::<u64>();
                }
            }
            Ok::<(), RingError>(())
        };
        let is_wrong = go().is_err();
        (count, sum, is_wrong)
    }

    /// Reads it as files are written: by whole segments.
    fn read_segments(&self) -> Result<(), RingError> {
        let mut consumer = Consumer::new(sealed(&self.ring), sealed(&self.page))?;
        loop {
            let number = consumer.next_segment();
            let Some(segment) = consumer.segment(number)? else {
                return Ok(());
            };
            let (packets, _) = (segment.packets as u64, segment.blocks.to_vec());
            consumer.release(number, packets);
        }
    }
}

fn case() -> impl Strategy<Value = Image> {
    let images = [sound(true), sound(false)];
    let changes = prop::collection::vec(change(), 0..6);
    (0usize..2, changes).prop_map(move |(kind, changes)| {
        let mut image = images[kind].clone();
        image.change(&changes);
        image
    })
}

/// Cases by a fixed seed.
fn cases(count: usize) -> Vec<Image> {
    let (mut runner, strategy) = (TestRunner::deterministic(), case());
    (0..count)
        .map(|_| strategy.new_tree(&mut runner).unwrap().current())
        .collect()
}

#[test]
fn a_sound_one_is_read() {
    let (count, _, is_wrong) = sound(true).read();
    assert!(count > 600 && !is_wrong, "{count}");
    let (count, _, is_wrong) = sound(false).read();
    assert!(count > 100 && count < PACKETS && !is_wrong, "{count}");
}

/// Some are still read, many end with an error, none with a crash.
#[test]
fn a_damaged_one_is_an_error_at_most() {
    let (mut sound, mut wrong) = (0, 0);
    for (number, image) in cases(400).iter().enumerate() {
        println!("case {number}");
        let (count, _, is_wrong) = image.read();
        assert!(count <= 4 * 131_072 / 8);
        wrong += u32::from(is_wrong);
        sound += u32::from(!is_wrong);
        let _ = image.read_segments();
    }
    assert!(sound > 20 && wrong > 20, "{sound} {wrong}");
}

/// One that says that it has begun 2^64 segments has no more than it has places for.
#[test]
fn segments_without_end_are_an_error() {
    let mut image = sound(true);
    let mut changes = vec![(Place::Header(header::BEGUN), u64::MAX)];
    for segment in 0..4 {
        let slot = segment * slot::LEN;
        changes.push((Place::Slot(slot + slot::COMMITTED), 0));
        changes.push((Place::Slot(slot + slot::CLOSED), 1));
    }
    image.change(&changes);
    assert!(matches!(image.read_segments(), Err(RingError::Damaged(_))));
}

/// The reader in C, under the sanitizers, comes to the same.
#[test]
fn a_damaged_one_is_the_same_in_c() {
    let Some(compiler) = Compiler::new() else { return };
    let include = format!("-I{}", contrib().join("c").display());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/walk.c");
    let walk = compiler.compile("walk", &source, &[&include]);
    let images = cases(120);
    let (mut arguments, mut wanted) = (Vec::new(), String::new());
    for (number, image) in images.iter().enumerate() {
        let at = |kind: &str| compiler.dir.path().join(format!("{number}.{kind}"));
        std::fs::write(at("ring"), &image.ring).unwrap();
        std::fs::write(at("page"), &image.page).unwrap();
        arguments.push(format!("{},{}", at("ring").display(), at("page").display()));
        let (count, sum, is_wrong) = image.read();
        writeln!(wanted, "{number}: {count} {sum} {is_wrong}").unwrap();
    }
    let arguments: Vec<_> = arguments.iter().map(AsRef::as_ref).collect();
    let (said, complaints, code) = ended(spawn(&walk, &arguments));
    assert_eq!((complaints.as_str(), code), ("", Some(0)));
    let mut found = String::new();
    for (number, line) in said.lines().enumerate() {
        let mut words = line.splitn(3, ' ');
        let (count, sum) = (words.next().unwrap(), words.next().unwrap());
        let is_wrong = words.next() != Some("-");
        writeln!(found, "{number}: {count} {sum} {is_wrong}").unwrap();
    }
    assert_eq!(found, wanted);
}
