//! The reader in C: the same packets, the same counts, and no crash whatever it finds.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nix::sys::signal::{Signal, kill};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use ring::socket;

use crate::killed;
use crate::support::{Compiler, SUM, Served, contrib, ended, process, spawn, stop, sum_on};

/// Packet `number`: of all lengths, and told by its number.
fn frame(number: u64) -> Vec<u8> {
    let len = 14 + number.wrapping_mul(0x9E37_79B9) % 1500;
    (0..len).map(|at| (number.wrapping_mul(31) + at) as u8).collect()
}

pub fn count(compiler: &Compiler) -> PathBuf {
    static COUNT: OnceLock<PathBuf> = OnceLock::new();
    let build = || compiler.shared("count", &contrib().join("c/count.c"), &[]);
    COUNT.get_or_init(build).clone()
}

/// Pushes so many packets, every so many committed together; returns their bytes and their sum.
fn feed(served: &mut Served, packets: u64) -> (u64, u64) {
    let (mut bytes, mut sum) = (0, SUM);
    for number in 0..packets {
        let frame = frame(number);
        served.push(number, &frame);
        (bytes, sum) = (bytes + frame.len() as u64, sum_on(sum, &frame));
        if number % 23 == 0 {
            served.producer.commit();
            served.door.look(&served.ring);
        }
    }
    (bytes, sum)
}

#[test]
fn a_lossless_reader_gets_every_byte() {
    let Some(compiler) = Compiler::new() else { return };
    let mut served = Served::new();
    let child = spawn(&count(&compiler), &[served.path().as_os_str()]);
    served.wait_for(1);
    let (bytes, sum) = feed(&mut served, 5000);
    served.producer.end();
    let (said, complaints, code) = ended(child);
    let wanted = format!("packets 5000 bytes {bytes} sum {sum:016x} taken 5000 lost 0\n");
    assert_eq!((said, complaints.as_str(), code), (wanted, "", Some(0)));
    served.serve(|door| door.guests()[0].is_gone);
    let guest = &served.door.guests()[0];
    assert_eq!((guest.name.as_str(), guest.seat().counts), ("count", (5000, 0)));
}

/// A lossy one gets what the ring still holds.
#[test]
fn a_lossy_reader_gets_every_byte_that_is_there() {
    let Some(compiler) = Compiler::new() else { return };
    let mut served = Served::new();
    let child = spawn(&count(&compiler), &[served.path().as_os_str(), "lossy".as_ref()]);
    served.wait_for(1);
    let (bytes, sum) = feed(&mut served, 200);
    served.producer.end();
    let (said, complaints, code) = ended(child);
    let wanted = format!("packets 200 bytes {bytes} sum {sum:016x} taken 200 lost 0\n");
    assert_eq!((said, complaints.as_str(), code), (wanted, "", Some(0)));
}

/// What is overwritten before it was read is counted, to the packet.
#[test]
fn a_lossy_reader_counts_what_it_lost() {
    let Some(compiler) = Compiler::new() else { return };
    let mut served = Served::new();
    let child = spawn(&count(&compiler), &[served.path().as_os_str(), "lossy".as_ref()]);
    served.wait_for(1);
    feed(&mut served, 50_000);
    served.producer.end();
    let (said, complaints, code) = ended(child);
    let number = |name: &str| {
        let mut words = said.split_whitespace().skip_while(|word| *word != name);
        words.nth(1).and_then(|word| word.parse::<u64>().ok()).unwrap()
    };
    assert_eq!((complaints.as_str(), code), ("", Some(0)), "{said}");
    assert_eq!(number("packets"), number("taken"), "{said}");
    assert_eq!(number("taken") + number("lost"), 50_000, "{said}");
}

/// Overtaken time and again, it hands out nothing that was overwritten while it was copied.
#[test]
fn a_lossy_reader_hands_out_nothing_torn() {
    const PACKETS: u64 = 400_000;
    let Some(compiler) = Compiler::new() else { return };
    let include = format!("-I{}", contrib().join("c").display());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/whole.c");
    let whole = compiler.compile("whole", &source, &[&include]);
    let mut served = Served::new();
    let child = spawn(&whole, &[served.path().as_os_str()]);
    served.wait_for(1);
    for number in 0..PACKETS {
        // While it stands still more is written than the ring holds; often it stands in the middle of a copy.
        match number % 3000 {
            1000 => stop(&child),
            2500 => kill(process(&child), Signal::SIGCONT).unwrap(),
            _ => {}
        }
        served.push(number, &killed::frame(number));
        if number % 150 == 0 {
            served.producer.commit();
        }
    }
    served.producer.end();
    let (said, complaints, code) = ended(child);
    assert_eq!((complaints.as_str(), code), ("", Some(0)), "{said}");
    let words: Vec<&str> = said.split_whitespace().collect();
    let [taken, lost] = [1, 3].map(|at| words[at].parse::<u64>().unwrap());
    assert_eq!(
        (taken + lost, &words[4..]),
        (PACKETS, &["torn", "0", "disordered", "0"][..])
    );
    assert!(taken > 0 && lost > 0, "{said}");
}

/// What a dead producer committed is read to its end.
#[test]
fn the_packets_of_a_dead_producer_are_read() {
    let Some(compiler) = Compiler::new() else { return };
    let mut served = Served::new();
    let child = spawn(&count(&compiler), &[served.path().as_os_str()]);
    served.wait_for(1);
    let (bytes, sum) = feed(&mut served, 100);
    served.producer.commit();
    drop(served);
    let (said, complaints, code) = ended(child);
    let wanted = format!("packets 100 bytes {bytes} sum {sum:016x} taken 100 lost 0\n");
    assert_eq!((said, code), (wanted, Some(0)));
    assert!(
        complaints.contains("the capture died without an end"),
        "{complaints}"
    );
}

/// A reader of another version is told so, by the ring.
#[test]
fn another_version_is_one_line() {
    let Some(compiler) = Compiler::new() else { return };
    let dir = compiler.dir.path();
    let read = |name: &str| std::fs::read_to_string(contrib().join("c").join(name)).unwrap();
    let (ours, theirs) = ("DROPLESS_RING_VERSION 1u", "DROPLESS_RING_VERSION 7u");
    let header = read("dropless_ring.h");
    assert!(header.contains(ours));
    std::fs::write(dir.join("dropless_ring.h"), header.replace(ours, theirs)).unwrap();
    std::fs::write(dir.join("count.c"), read("count.c")).unwrap();
    let count = compiler.compile("count7", &dir.join("count.c"), &[]);
    let mut served = Served::new();
    let mut child = spawn(&count, &[served.path().as_os_str()]);
    served.serve(|_| child.try_wait().unwrap().is_some());
    let (said, complaints, code) = ended(child);
    assert_eq!((said.as_str(), code), ("", Some(2)));
    assert_eq!(
        complaints,
        "count: the ring refused: the ring has version 1, who wants to join it reads version 7: use the same version of dropless on both sides\n"
    );
}

#[test]
fn no_ring_is_one_line() {
    let Some(compiler) = Compiler::new() else { return };
    let (said, complaints, code) = ended(spawn(&count(&compiler), &["/nonexistent/ring".as_ref()]));
    assert_eq!((said.as_str(), code), ("", Some(2)));
    assert_eq!(
        complaints,
        "count: no ring at /nonexistent/ring: No such file or directory; is a capture with --ring running?\n"
    );
}

/// Frames of all kinds: IPv4 and IPv6, with tags and extension headers, fragments, cut short, and anything.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![
        Just(vec![8, 0, 0x45]),
        Just(vec![8, 0, 0x47]),
        Just(vec![0x86, 0xDD, 0x60]),
        Just(vec![0x81, 0, 0, 5, 8, 0, 0x45]),
        Just(vec![0x88, 0xA8, 0, 5, 0x81, 0, 0, 6, 0x86, 0xDD, 0x60]),
        Just(vec![0x81, 0, 0, 5, 0x81, 0, 0, 5, 0x81, 0, 0, 6, 8, 0, 0x45]),
        Just(vec![8, 6]),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    // What is carried, and extension headers, are among few numbers; so are lengths and fragments.
    let byte = prop_oneof![
        any::<u8>(),
        prop::sample::select(vec![0, 0, 0, 0, 1, 6, 17, 43, 44, 51, 60, 132])
    ];
    let rest = prop::collection::vec(byte, 0..120);
    (prop::collection::vec(any::<u8>(), 12), kind, rest)
        .prop_map(|(macs, kind, rest)| [macs, kind, rest].concat())
        .prop_flat_map(|frame| (Just(frame), prop_oneof![3 => Just(200), 1 => 0usize..60]))
        .prop_map(|(mut frame, len)| {
            frame.truncate(len);
            frame
        })
}

/// Both languages put a flow into the same place, and a sample of flows is shared by all.
#[test]
fn flows_are_told_apart_as_in_rust() {
    let Some(compiler) = Compiler::new() else { return };
    let include = format!("-I{}", contrib().join("c").display());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/flow.c");
    let flow = compiler.compile("flow", &source, &[&include]);
    let (mut runner, strategy) = (TestRunner::deterministic(), frames());
    let (mut input, mut wanted, mut sampled) = (Vec::new(), String::new(), [0; 4]);
    for _ in 0..20_000 {
        let frame = strategy.new_tree(&mut runner).unwrap().current();
        let hash = wire::flow_hash(&frame);
        let share = (((hash & 0xFFFF_FFFF) * 4) >> 32) as usize;
        sampled[share] += u32::from(hash >> 62 == 0);
        writeln!(wanted, "{hash:016x} {share}").unwrap();
        input.push(frame.len() as u8);
        input.extend(frame);
    }
    let frames = compiler.dir.path().join("frames");
    std::fs::write(&frames, input).unwrap();
    let (said, complaints, code) = ended(spawn(&flow, &[frames.as_os_str()]));
    assert_eq!((complaints.as_str(), code), ("", Some(0)));
    let differs = said
        .lines()
        .zip(wanted.lines())
        .position(|(said, wanted)| said != wanted);
    assert_eq!((differs, said.len()), (None, wanted.len()));
    assert!(sampled.iter().all(|count| *count > 500), "{sampled:?}");
}

/// What refuses may be anybody: nothing of its sentence gets at the terminal but text.
#[test]
fn a_refusal_that_is_hostile_is_text() {
    let Some(compiler) = Compiler::new() else { return };
    let path = compiler.dir.path().join("hostile");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // Who hangs up on a question not read yet takes its own answer along.
            let _ = stream.read(&mut [0; 256]);
            let mut answer = socket::message(*b"DRPLSEAT", &[1, 1]);
            answer.extend(b"no\x1b[2J\x07\nseat");
            let _ = stream.write_all(&answer);
        }
    });
    let (_, complaints, code) = ended(spawn(&count(&compiler), &[path.as_os_str()]));
    assert_eq!(
        (complaints.as_str(), code),
        ("count: the ring refused: no?[2J??seat\n", Some(2))
    );
}
