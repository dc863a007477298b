//! Capture files of any program are read as they are, up to where they are damaged.

use std::io::{Cursor, Read};

use capture::input::{InputError, Packet, Reader};
use capture::pcapng::{self, Direction, Interface, PacketHead, WORKLIST_OVERHEAD};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::foreign::{Sample, Writer};

mod files;
mod properties;

/// Files of other programs, four packets each but where there are two interfaces: of `tcpdump` from a loopback and from
/// any interface (nanoseconds, `LINUX_SLL2`), the first by `editcap` as modified pcap, of `dumpcap` from both, and both by
/// `mergecap`.
const CORPUS: [(&str, &[u8], usize); 5] = [
    ("lo.pcap", include_bytes!("../../corpus/lo.pcap"), 1),
    ("sll2.pcap", include_bytes!("../../corpus/sll2.pcap"), 1),
    ("mod.pcap", include_bytes!("../../corpus/mod.pcap"), 1),
    ("two.pcapng", include_bytes!("../../corpus/two.pcapng"), 2),
    ("merged.pcapng", include_bytes!("../../corpus/merged.pcapng"), 2),
];

/// A packet as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    interface: usize,
    time_ns: Option<i64>,
    original_len: u32,
    data: Vec<u8>,
}

/// Gives a few bytes at a time, so that records are met in parts.
struct Drops(Cursor<Vec<u8>>, usize);

impl Read for Drops {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = buffer.len().min(self.1);
        self.0.read(&mut buffer[..len])
    }
}

fn reader(bytes: &[u8], at_once: usize) -> Result<Reader, InputError> {
    Reader::new("it".into(), Drops(Cursor::new(bytes.to_vec()), at_once))
}

/// All packets up to the end or the first error.
fn read(bytes: &[u8], at_once: usize) -> (Vec<Seen>, Option<InputError>) {
    let mut seen = Vec::new();
    let mut reader = match reader(bytes, at_once) {
        Ok(reader) => reader,
        Err(error) => return (seen, Some(error)),
    };
    loop {
        match reader.next_packet() {
            Ok(Some(packet)) => seen.push(Seen {
                interface: packet.interface_index,
                time_ns: packet.time_ns,
                original_len: packet.original_len,
                data: packet.data.to_vec(),
            }),
            Ok(None) => return (seen, None),
            Err(error) => {
                assert!(reader.next_packet().unwrap().is_none(), "an error is the end");
                return (seen, Some(error));
            }
        }
    }
}

fn sample() -> impl Strategy<Value = Sample> {
    // Seconds that pcap holds, and any length that a packet may have had.
    (
        0..u64::from(u32::MAX) * 1_000_000,
        0..2000_u32,
        vec(any::<u8>(), 0..200),
    )
        .prop_map(|(stamp, cut, data)| Sample {
            interface: 0,
            stamp,
            original_len: data.len() as u32 + cut,
            data,
        })
}

fn seen(sample: &Sample, interface: usize, time_ns: u64) -> Seen {
    Seen {
        interface,
        time_ns: i64::try_from(time_ns).ok(),
        original_len: sample.original_len,
        data: sample.data.clone(),
    }
}

/// A file of pcapng of all blocks that there are, and what is to be read of it.
fn blocks(samples: &[Sample], is_big_endian: bool) -> (Vec<u8>, Vec<Seen>) {
    let mut file = Writer::new(is_big_endian);
    file.section()
        .interface(1, 100, "eth0", None)
        .interface(101, 0, "", Some((9, 1000)));
    let mut all = Vec::new();
    for (number, packet) in samples.iter().enumerate() {
        let mut packet = packet.clone();
        match number % 5 {
            0 => {
                file.enhanced(&packet);
                all.push(seen(&packet, 0, packet.stamp * 1000));
            }
            1 => {
                packet.interface = 1;
                file.enhanced(&packet);
                all.push(seen(&packet, 1, packet.stamp + 1_000_000_000_000));
            }
            2 => {
                file.obsolete(&packet, u16::MAX);
                all.push(seen(&packet, 0, packet.stamp * 1000));
            }
            3 => {
                let len = packet.data.len().min(100).min(packet.original_len as usize);
                // What was cut is all that the interface keeps.
                packet.original_len = if len == 100 {
                    packet.original_len
                } else {
                    len as u32
                };
                packet.data.truncate(len);
                file.simple(packet.original_len, &packet.data);
                all.push(Seen {
                    time_ns: None,
                    ..seen(&packet, 0, 0)
                });
            }
            // What nobody knows, a new section in the other byte order, and its own interfaces.
            _ => {
                file.block(0x0BAD_CAFE, |body| {
                    body.raw(&packet.data);
                });
                file.is_big_endian = !file.is_big_endian;
                file.section()
                    .interface(1, 100, "eth0", None)
                    .interface(101, 0, "", Some((9, 1000)));
            }
        }
    }
    (file.bytes, all)
}

/// A file as this project writes it, with its blocks of local use, and what is to be read of it.
fn ours(samples: &[Sample]) -> (Vec<u8>, Vec<Seen>) {
    let mut file = pcapng::preamble(
        "test",
        &[Interface {
            name: "ring:a".into(),
            ..Interface::default()
        }],
    );
    for packet in samples {
        let head = PacketHead {
            interface: 0,
            time_ns: packet.stamp,
            original_len: packet.original_len,
            queue: (packet.stamp % 2 == 0).then_some(7),
            direction: (packet.stamp % 3 == 0).then_some(Direction::Out),
            dropped: packet.stamp % 5,
        };
        let at = file.len();
        file.resize(at + head.block_len(packet.data.len()), 0);
        head.write(&mut file[at..], packet.data.len(), [&packet.data[..]]);
        file.extend(pcapng::worklist(&[0; 24]));
        let gap = file.len();
        file.resize(gap + WORKLIST_OVERHEAD, 0);
        pcapng::fill(&mut file[gap..]);
    }
    let all = samples.iter().map(|packet| seen(packet, 0, packet.stamp));
    (file, all.collect())
}

fn any_kind(samples: &[Sample], kind: usize) -> (Vec<u8>, Vec<Seen>) {
    match kind {
        0 => ours(samples),
        1 => blocks(samples, true),
        3.. => {
            let file = CORPUS[(kind - 3) % CORPUS.len()].1.to_vec();
            let (all, error) = read(&file, 1000);
            assert!(error.is_none());
            (file, all)
        }
        _ => {
            let mut file = Writer::pcap(false, 0xA1B2_3C4D, 1);
            for packet in samples {
                file.record(packet, 1_000_000_000, 0);
            }
            let all = samples.iter().map(|packet| seen(packet, 0, packet.stamp));
            (file.bytes, all.collect())
        }
    }
}

fn three() -> Vec<Sample> {
    let sample = |number: u8| Sample {
        interface: 0,
        stamp: u64::from(number),
        original_len: 60,
        data: vec![number; 60],
    };
    (1..4).map(sample).collect()
}

/// What a ring has of a packet is a block by itself, in which all is found that a file would say.
#[test]
fn a_block_by_itself_says_all_of_its_packet() {
    let preamble = pcapng::preamble("test", &[Interface::default(), Interface::default()]);
    let mut described = reader(&preamble, 100).unwrap();
    assert!(described.next_packet().unwrap().is_none());
    let head = PacketHead {
        interface: 1,
        time_ns: 1_700_000_000_123_456_789,
        original_len: 90,
        queue: Some(3),
        direction: Some(Direction::Out),
        dropped: 7,
    };
    let mut block = vec![0; head.block_len(61)];
    head.write(&mut block, 61, [&[9; 61][..]]);
    let interfaces = described.interfaces();
    let packet = Packet::of_block(&block, interfaces).unwrap();
    assert_eq!((packet.interface_index, packet.data), (1, &[9; 61][..]));
    assert_eq!(packet.time_ns, i64::try_from(head.time_ns).ok());
    assert_eq!(packet.original_len, 90);
    assert_eq!(
        (packet.queue, packet.direction, packet.dropped),
        (head.queue, head.direction, Some(7))
    );
    assert!(Packet::of_block(&block, &interfaces[..1]).is_err());
    for len in 0..block.len() {
        let _ = Packet::of_block(&block[..len], interfaces);
    }
}
