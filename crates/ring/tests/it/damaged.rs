//! A ring that holds anything: no panic, no end that never comes, nothing read outside; in Rust and in C the same.

use std::fmt::Write as _;
use std::path::Path;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use ring::RingError;
use ring::layout::{header, slot};
use ring::share::{JOIN, SEAT};

use crate::any::{self, Image, PACKETS, Place};
use crate::support::{Compiler, contrib, ended, spawn};

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

/// As bytes for the functions of `any`.
fn case() -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec(change(), 0..6);
    (any::<bool>(), changes).prop_map(|(is_lossless, changes)| any::changes(is_lossless, &changes))
}

/// Cases by a fixed seed.
fn cases<T>(strategy: impl Strategy<Value = T>, count: usize) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    (0..count)
        .map(|_| strategy.new_tree(&mut runner).unwrap().current())
        .collect()
}

fn both() -> [Image; 2] {
    [Image::sound(false), Image::sound(true)]
}

#[test]
fn a_sound_one_is_read() {
    let (count, _, is_wrong) = Image::sound(true).read();
    assert!(count > 600 && !is_wrong, "{count}");
    let (count, _, is_wrong) = Image::sound(false).read();
    assert!(count > 100 && count < PACKETS && !is_wrong, "{count}");
}

/// Some are still read, many end with an error, none with a crash.
#[test]
fn a_damaged_one_is_an_error_at_most() {
    let (rings, mut sound, mut wrong) = (both(), 0, 0);
    for (number, input) in cases(case(), 400).iter().enumerate() {
        println!("case {number}");
        let is_wrong = any::ring(&rings, input);
        wrong += u32::from(is_wrong);
        sound += u32::from(!is_wrong);
    }
    assert!(sound > 20 && wrong > 20, "{sound} {wrong}");
}

/// Any bytes are changes, too.
#[test]
fn what_no_change_names_is_none() {
    let rings = both();
    for input in cases(prop::collection::vec(any::<u8>(), 0..200), 200) {
        any::ring(&rings, &input);
    }
}

/// A message, most often one that begins as it should.
fn message(begins: [u8; 8]) -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        3 => Just(ring::layout::VERSION),
        2 => Just(0),
        1 => Just(1),
        1 => any::<u32>()
    ];
    let begin = prop_oneof![
        9 => Just(begins.to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..9)
    ];
    let rest = prop_oneof![
        2 => prop::collection::vec(any::<u8>(), 64),
        1 => prop::collection::vec(any::<u8>(), 0..200)
    ];
    (begin, word.clone(), word, rest).prop_map(|(mut message, version, code, rest)| {
        message.extend(version.to_ne_bytes());
        message.extend(code.to_ne_bytes());
        message.extend(rest);
        message
    })
}

/// Whatever is said at the door: a seat for who asks for one as he should, and nothing for all others.
#[test]
fn whoever_asks_gets_a_seat_or_nothing() {
    for message in cases(message(JOIN), 300) {
        any::joiner(&message);
    }
}

/// Whatever the answer: a ring, if one came with it, or an error.
#[test]
fn whatever_is_answered_is_a_ring_or_an_error() {
    let rings = both();
    let answers = (any::<u8>(), message(SEAT)).prop_map(|(first, message)| {
        let mut input = vec![first];
        input.extend(message);
        input
    });
    let joined = cases(answers, 200);
    let joined = joined.iter().filter(|input| any::answer(&rings, input)).count();
    assert!((20..180).contains(&joined), "{joined}");
}

/// One that says that it has begun 2^64 segments has no more than it has places for.
#[test]
fn segments_without_end_are_an_error() {
    let mut image = Image::sound(true);
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
    let rings = both();
    let images = cases(case(), 120);
    let images: Vec<Image> = images.iter().map(|input| any::damaged(&rings, input)).collect();
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
