//! kill -9 of producers and consumers at any moment: what was committed is whole, and every packet has an account.
//!
//! `RING_ROUNDS` says how often (50), `RING_SEED` with which moments; a failure prints its seed.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use ring::layout::SEGMENT_MIN;
use ring::pcapng::{ENTRY, PACKET_HEAD, PADDING_MIN, PacketHead, WORKLIST_OVERHEAD};
use ring::share::Joined;

use crate::support::{SUM, Served, process, stop, sum_on};

/// How far a producer may run ahead of its commit.
const BURST: u64 = 32;
/// Packets of a round in which consumers die.
const PACKETS: u64 = 5000;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

fn rounds() -> u64 {
    number("RING_ROUNDS", 50)
}

/// The seed of a round.
fn seed(round: u64) -> u64 {
    let base = number("RING_SEED", u64::from(std::process::id()));
    base.wrapping_mul(1_000_003) + round
}

/// A number below another one (`SplitMix64`).
fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ mixed >> 31) % below
}

/// Packet `number`: it says which it is, and its last bytes are a sum over all others.
pub fn frame(number: u64) -> Vec<u8> {
    let mut frame = number.to_le_bytes().to_vec();
    frame.resize(
        14 + (number.wrapping_mul(0x9E37_79B9) % 1200) as usize,
        number as u8,
    );
    let sum = sum_on(SUM, &frame);
    frame.extend(sum.to_le_bytes());
    frame
}

/// Which packet it is, if it is whole.
fn whole(frame: &[u8]) -> Option<u64> {
    let (rest, sum) = frame.split_last_chunk::<8>()?;
    let number = u64::from_le_bytes(*rest.first_chunk::<8>()?);
    (sum_on(SUM, rest) == u64::from_le_bytes(*sum)).then_some(number)
}

/// This program once more, in the part of one of the ignored tests below.
fn part(name: &str, ring: &Path, how: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--ignored", "--nocapture"])
        .env("RING", ring)
        .env("HOW", how)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::yield_now();
    }
}

/// Takes all that is there; each packet is whole, and comes after the one before.
fn take(joined: &mut Joined, next: &mut u64, is_lossless: bool) -> u64 {
    let mut taken = 0;
    while let Some(packets) = joined.consumer.packets().unwrap() {
        for packet in packets.iter() {
            let number = whole(packet.unwrap().data).expect("a packet that is not torn");
            assert!(
                number == *next || (number > *next && !is_lossless),
                "{number} after {next}"
            );
            *next = number + 1;
            taken += 1;
        }
    }
    taken
}

/// Takes packets until it is killed, or until their end, and says how many.
#[test]
#[ignore = "consumers_are_killed() runs it in another process"]
fn a_consumer_that_is_killed() {
    let Some(path) = std::env::var_os("RING") else {
        return;
    };
    let is_lossless = std::env::var("HOW").is_ok_and(|how| how == "lossless");
    let mut joined = Joined::new(&PathBuf::from(path), "elsewhere", is_lossless).unwrap();
    let (mut next, mut taken) = (0, 0);
    loop {
        let is_over = joined.consumer.is_ended();
        taken += take(&mut joined, &mut next, is_lossless);
        if is_over {
            return println!("taken {taken}");
        }
        std::thread::yield_now();
    }
}

/// A capture goes on whatever becomes of its consumers: a lossless one that died holds nothing up, one that lives gets all.
#[test]
fn consumers_are_killed() {
    for round in 0..rounds() {
        let seed = seed(round);
        println!("seed {seed}");
        let mut state = seed;
        let mut served = Served::new();
        let start = |how| part("killed::a_consumer_that_is_killed", &served.path(), how);
        let mut victims = ["lossless", "lossy"].map(start);
        let survivor = start("lossless");
        served.wait_for(3);
        let dies_at = [random(&mut state, 4000), random(&mut state, 4000)];
        for number in 0..PACKETS {
            for (victim, _) in victims.iter_mut().zip(dies_at).filter(|(_, at)| *at == number) {
                victim.kill().unwrap();
            }
            served.push(number, &frame(number));
            if random(&mut state, BURST) == 0 {
                served.producer.commit();
                served.door.look(&served.ring);
            }
        }
        served.producer.end();
        let said = survivor.wait_with_output().unwrap().stdout;
        let said = String::from_utf8(said).unwrap();
        assert!(
            said.contains(&format!("taken {PACKETS}\n")),
            "seed {seed}: {said}"
        );
        for victim in &mut victims {
            let _ = victim.wait();
        }
        served.serve(|door| door.guests().iter().all(|guest| guest.is_gone));
        for guest in served.door.guests() {
            let ((taken, lost), first) = (guest.seat().counts, guest.seat().first);
            // What is left is none of a dead one's: the rest of what it was offered.
            let left = PACKETS.checked_sub(first + taken + lost);
            assert!(left.is_some(), "seed {seed}: {taken} + {lost}");
            assert!(!guest.is_lossless || lost == 0, "seed {seed}");
        }
    }
}

/// Makes a ring, and writes it until it is killed. It says up to which packet it is about to write,
/// and which it has committed.
#[test]
#[ignore = "producers_are_killed() runs it in another process"]
fn a_producer_that_is_killed() {
    let Some(path) = std::env::var_os("RING") else {
        return;
    };
    let mut state: u64 = std::env::var("HOW").unwrap().parse().unwrap();
    let mut served = Served::at(&PathBuf::from(path));
    println!("ready");
    served.wait_for(2);
    let mut number = 0;
    loop {
        let until = number + 1 + random(&mut state, BURST);
        println!("until {until}");
        for number in number..until {
            served.push(number, &frame(number));
        }
        served.producer.commit();
        println!("committed {until}");
        served.door.look(&served.ring);
        number = until;
    }
}

/// The last number after a word in what a producer said, of a whole line.
fn last(said: &str, word: &str) -> u64 {
    let whole = said.rfind('\n').map_or("", |end| &said[..end]);
    let mut numbers = whole
        .lines()
        .filter_map(|line| line.strip_prefix(word)?.trim().parse().ok());
    numbers.next_back().unwrap_or(0)
}

/// Who holds the mapping of a dead producer's ring reads on to what it committed last.
#[test]
fn producers_are_killed() {
    let mut salvaged = 0;
    for round in 0..rounds() {
        let seed = seed(round);
        println!("seed {seed}");
        let mut state = seed;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ring.sock");
        let mut producer = part("killed::a_producer_that_is_killed", &path, &seed.to_string());
        let mut said = BufReader::new(producer.stdout.take().unwrap());
        let mut line = String::new();
        while line != "ready\n" {
            line.clear();
            assert!(
                said.read_line(&mut line).unwrap() > 0,
                "seed {seed}: the producer is gone"
            );
        }
        // What it says is gathered beside, so that it never waits for us.
        let gathered = std::thread::spawn(move || {
            let mut text = String::new();
            said.read_to_string(&mut text).unwrap();
            text
        });
        let mut readers = [true, false].map(|is_lossless| {
            let joined = Joined::new(&path, "reader", is_lossless).unwrap();
            (joined, 0, 0, is_lossless)
        });
        let dies_after = random(&mut state, 3000);
        wait_until("packets of the producer", || {
            for (joined, next, taken, is_lossless) in &mut readers {
                *taken += take(joined, next, *is_lossless);
            }
            readers[0].2 >= dies_after
        });
        // It goes on for a while with nobody reading, until the ring is full perhaps.
        std::thread::sleep(Duration::from_micros(random(&mut state, 3000)));
        producer.kill().unwrap();
        let _ = producer.wait();
        let said = gathered.join().unwrap();
        let before = readers[0].2;
        for (joined, next, taken, is_lossless) in &mut readers {
            wait_until("the end of the connection", || joined.is_alone());
            *taken += take(joined, next, *is_lossless);
            let (counted, lost) = joined.consumer.counts();
            assert_eq!(counted, *taken, "seed {seed}");
            // All that it said it had committed is there, and nothing that it had not begun.
            let all = *taken + lost;
            let (least, most) = (last(&said, "committed"), last(&said, "until"));
            assert!(
                (least..=most).contains(&all),
                "seed {seed}: {all} of {least} to {most}"
            );
            assert!(lost == 0 || !*is_lossless, "seed {seed}");
        }
        salvaged += readers[0].2 - before;
    }
    println!("{salvaged} packets were read after their producers' deaths");
    assert!(salvaged > 0);
}

/// What a lossless consumer that stands still keeps from it is refused, and counted; the ring holds as much as it can.
#[test]
fn a_stopped_consumer_loses_nothing_that_fits() {
    const LEN: usize = 1000;
    let mut served = Served::new();
    let slow = part("killed::a_consumer_that_is_killed", &served.path(), "lossless");
    served.wait_for(1);
    stop(&slow);
    // How many packets a segment holds, and the ring.
    let block = PACKET_HEAD + LEN.next_multiple_of(4) + 4;
    let fits = served.ring.geometry().segments as usize
        * ((SEGMENT_MIN as usize - WORKLIST_OVERHEAD - PADDING_MIN) / (block + ENTRY));
    let (mut accepted, mut refused) = (0_u64, 0_u64);
    let mut offer = |served: &mut Served, count: usize| {
        for _ in 0..count {
            let mut frame = accepted.to_le_bytes().to_vec();
            frame.resize(LEN - 8, 7);
            frame.extend(sum_on(SUM, &frame).to_le_bytes());
            match served.producer.push(&PacketHead::default(), LEN, [&frame[..]]) {
                Ok(()) => accepted += 1,
                Err(_) => refused += 1,
            }
        }
        served.producer.commit();
        (accepted, refused)
    };
    assert_eq!(offer(&mut served, 2 * fits), (fits as u64, fits as u64));
    kill(process(&slow), Signal::SIGCONT).unwrap();
    served.serve(|door| door.guests()[0].seat().counts.0 == fits as u64);
    let (accepted, refused) = offer(&mut served, fits / 2);
    assert_eq!((accepted, refused), (fits as u64 + fits as u64 / 2, fits as u64));
    served.producer.end();
    let said = String::from_utf8(slow.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.contains(&format!("taken {accepted}\n")), "{said}");
    assert_eq!(served.door.guests()[0].seat().counts, (accepted, 0));
}
