//! What the ring holds is pcapng: programs of others read it, packet by packet.

use std::process::Command;

use ring::Consumer;
use ring::Producer;
use ring::layout::SEGMENT_MIN;
use ring::pcapng::{self, Direction, Interface, PacketHead, Statistics};

/// The output of a tool that complains about nothing.
fn output(tool: &str, arguments: &[&str]) -> String {
    let output = Command::new(tool).args(arguments).output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    let complaints: Vec<&str> = complaints
        .lines()
        .filter(|line| !line.contains("as user \"root\""))
        .collect();
    let harmless = |line: &&str| line.starts_with("reading from file") || line.trim().is_empty();
    let complaints: Vec<_> = complaints.into_iter().filter(|line| !harmless(line)).collect();
    assert!(
        output.status.success() && complaints.is_empty(),
        "{tool}: {complaints:?}"
    );
    String::from_utf8(output.stdout).unwrap()
}

/// An Ethernet frame of UDP that is `len` bytes long.
fn frame(len: usize) -> Vec<u8> {
    let mut frame = vec![0; len];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
    let total = (len - 14) as u16;
    frame[14..34].copy_from_slice(&[
        0x45,
        0,
        (total >> 8) as u8,
        total as u8,
        0,
        0,
        0,
        0,
        64,
        17,
        0,
        0,
        198,
        18,
        0,
        1,
        198,
        18,
        0,
        2,
    ]);
    let udp = total - 20;
    frame[34..42].copy_from_slice(&[0xC0, 0, 0, 7, (udp >> 8) as u8, udp as u8, 0, 0]);
    frame
}

/// A part of a filter would be another one.
#[test]
fn a_filter_is_told_whole_or_not_at_all() {
    for (len, is_told) in [
        (5000, true),
        (pcapng::FILTER_MAX, true),
        (pcapng::FILTER_MAX + 1, false),
    ] {
        let interface = Interface {
            filter: Some("f".repeat(len)),
            ..Interface::default()
        };
        let preamble = pcapng::preamble("", &[interface]);
        let there = preamble.split(|byte| *byte != b'f').map(<[u8]>::len).max();
        assert_eq!(there, Some(if is_told { len } else { 0 }));
    }
}

/// A file of segments as they lie in the ring, and the last one as far as it goes.
#[test]
fn tshark_and_tcpdump_read_what_the_ring_holds() {
    let is_there = |tool: &&str| Command::new(tool).arg("--version").output().is_ok();
    if !["tshark", "tcpdump", "capinfos"].iter().all(is_there) {
        return crate::skip::skip("needs tshark, capinfos and tcpdump");
    }
    let interfaces = [Interface {
        name: "ring:a".into(),
        filter: Some("udp port 7".into()),
        ..Interface::default()
    }];
    let (mut producer, ring) =
        Producer::new(8, SEGMENT_MIN, &pcapng::preamble("dropless test", &interfaces)).unwrap();
    let (_, seat) = ring.seat(true).unwrap();
    producer.commit();
    let count = 2000_u64;
    for number in 0..count {
        let frame = frame(60 + (number as usize * 7) % 200);
        let head = PacketHead {
            time_ns: 1_700_000_000_000_000_000 + number * 1_000_001,
            original_len: frame.len() as u32,
            queue: (number % 2 == 0).then_some(number as u32),
            dropped: if number == 1000 { 55 } else { 0 },
            ..PacketHead::default()
        };
        producer.push(&head, frame.len(), [&frame[..]]).unwrap();
    }
    producer.end();
    let mut consumer = Consumer::new(ring.file(), seat).unwrap();
    let mut file = consumer.preamble();
    while let Some(segment) = consumer.segment(consumer.next_segment()).unwrap() {
        file.extend(segment.whole.unwrap());
        let packets = segment.packets as u64;
        consumer.release(consumer.next_segment(), packets);
    }
    assert_eq!(consumer.counts(), (count, 0));
    let statistics = Statistics {
        from_ns: 1,
        to_ns: 2_000_000_000,
        received: count,
        delivered: count,
        ..Statistics::default()
    };
    file.extend(statistics.block(0));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ring.pcapng");
    std::fs::write(&path, &file).unwrap();
    let path = path.to_str().unwrap();

    let fields = ["frame.time_epoch", "frame.len", "udp.dstport"].map(|field| ["-e", field]);
    let fields = output(
        "tshark",
        &[&["-r", path, "-T", "fields"], fields.as_flattened()].concat(),
    );
    let lines: Vec<&str> = fields.lines().collect();
    assert_eq!(lines.len() as u64, count);
    assert_eq!(
        lines[999],
        format!("1700000000.{:09}\t{}\t7", 999 * 1_000_001, 60 + 999 * 7 % 200)
    );
    let lines = output("tcpdump", &["-n", "-r", path]);
    assert_eq!(lines.lines().count() as u64, count);
    let about = output("capinfos", &["-M", path]);
    assert!(
        about.contains("ring:a") && about.contains("udp port 7"),
        "{about}"
    );
}

/// Flags, drop count and queue, and the end of the options, as the draft has them.
#[test]
fn options_of_a_packet() {
    let head = PacketHead {
        queue: Some(7),
        direction: Some(Direction::Out),
        dropped: 9,
        ..PacketHead::default()
    };
    let mut room = vec![0xFF; head.block_len(5)];
    let len = head.write(&mut room, 5, [&[1, 2, 3, 4, 5][..]]);
    assert_eq!(len, room.len());
    let mut wanted = vec![1, 2, 3, 4, 5, 0, 0, 0];
    for (code, value) in [
        (2_u16, &2_u32.to_ne_bytes()[..]),
        (4, &9_u64.to_ne_bytes()),
        (6, &7_u32.to_ne_bytes()),
        (0, &[]),
    ] {
        wanted.extend(code.to_ne_bytes());
        wanted.extend((value.len() as u16).to_ne_bytes());
        wanted.extend(value);
    }
    wanted.extend((len as u32).to_ne_bytes());
    assert_eq!(room[pcapng::PACKET_HEAD..], wanted);
}
