//! A ring in two processes: joining, leaving, and dying on either side.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ring::layout::SEGMENT_MIN;
use ring::pcapng::{self, PacketHead};
use ring::share::{Door, Joined};
use ring::{Producer, Ring, RingError};

fn ring() -> (Producer, Ring) {
    Producer::new(4, SEGMENT_MIN, &pcapng::preamble("test", &[])).unwrap()
}

fn push(producer: &mut Producer, number: u64) -> bool {
    let head = PacketHead {
        time_ns: number,
        original_len: 1000,
        ..PacketHead::default()
    };
    producer.push(&head, 1000, [&[number as u8; 1000][..]]).is_ok()
}

/// Takes part in the ring until `until` is so.
fn serve(door: &mut Door, (producer, ring): (&mut Producer, &Ring), mut until: impl FnMut(&Door) -> bool) {
    let begun = Instant::now();
    while !until(door) {
        assert!(begun.elapsed() < Duration::from_secs(20), "{door:?}");
        producer.commit();
        door.look(ring);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// This program once more, as a consumer: see `a_consumer_elsewhere`.
fn elsewhere(path: &Path, how: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "share::a_consumer_elsewhere",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env("RING", path)
        .env("HOW", how)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Takes packets until the producer has ended, and says how many; or only the first, and then nothing for ever.
#[test]
#[ignore = "elsewhere() runs it in another process"]
fn a_consumer_elsewhere() {
    let Some(path) = std::env::var_os("RING") else {
        return;
    };
    let mut joined = Joined::new(Path::new(&path), "elsewhere", true).unwrap();
    let (mut taken, mut next) = (0, None);
    loop {
        let is_over = joined.consumer.is_ended() || joined.is_alone();
        while let Some(packets) = joined.consumer.packets().unwrap() {
            for packet in packets.iter() {
                let packet = packet.unwrap();
                assert!(
                    next.is_none_or(|next| packet.time_ns == next),
                    "once, and in order"
                );
                next = Some(packet.time_ns + 1);
                taken += 1;
            }
            if std::env::var("HOW").is_ok_and(|how| how == "stops") {
                std::thread::sleep(Duration::from_secs(60));
            }
        }
        if is_over {
            println!("taken {taken} {}", joined.consumer.counts().0);
            return;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_consumer_in_another_process_gets_everything() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ring.sock");
    let (mut producer, ring) = ring();
    let mut door = Door::open(&path, None).unwrap();
    let child = elsewhere(&path, "takes");
    serve(&mut door, (&mut producer, &ring), |door| {
        door.guests().first().is_some_and(|guest| guest.seat.is_taken())
    });
    for number in 0..5000 {
        while !push(&mut producer, number) {
            producer.commit();
            door.look(&ring);
        }
    }
    producer.end();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("taken 5000 5000"), "{said}");
    serve(&mut door, (&mut producer, &ring), |door| door.guests()[0].is_gone);
    let guest = &door.guests()[0];
    assert_eq!(
        (guest.name.as_str(), guest.seat.counts()),
        ("elsewhere", (5000, 0))
    );
}

/// A lossless consumer that is killed holds the ring no longer.
#[test]
fn a_dead_consumer_is_shown_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ring.sock");
    let (mut producer, ring) = ring();
    let mut door = Door::open(&path, None).unwrap();
    let mut child = elsewhere(&path, "stops");
    serve(&mut door, (&mut producer, &ring), |door| {
        door.guests().first().is_some_and(|guest| guest.seat.is_taken())
    });
    let mut number = 0;
    while push(&mut producer, number) {
        number += 1;
        producer.commit();
        door.look(&ring);
    }
    child.kill().unwrap();
    let _ = child.wait();
    serve(&mut door, (&mut producer, &ring), |door| door.guests()[0].is_gone);
    assert!(push(&mut producer, number));
}

/// What a dead producer had committed can be read.
#[test]
fn the_packets_of_a_dead_producer_are_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ring.sock");
    let (mut producer, ring) = ring();
    let mut door = Door::open(&path, None).unwrap();
    let child = elsewhere(&path, "takes");
    serve(&mut door, (&mut producer, &ring), |door| {
        door.guests().first().is_some_and(|guest| guest.seat.is_taken())
    });
    for number in 0..100 {
        assert!(push(&mut producer, number));
    }
    producer.commit();
    // It never ends: it is gone.
    drop((door, producer, ring));
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("taken 100 100"), "{said}");
    assert!(matches!(
        Joined::new(&path, "late", true),
        Err(RingError::Door(..))
    ));
}

#[test]
fn one_door_a_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ring.sock");
    let first = Door::open(&path, None).unwrap();
    assert!(Door::open(&path, None).is_err());
    drop(first);
    // What a killed one left is no obstacle; what is something else is left alone.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(Door::open(&path, None).is_ok());
    std::fs::write(&path, "mine").unwrap();
    assert!(Door::open(&path, None).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}
