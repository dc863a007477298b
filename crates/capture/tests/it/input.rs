//! Capture files of any program are read as they are, up to where they are damaged.

use std::io::{Cursor, Read, Write};

use capture::input::{InputError, LinkType, Reader, Resolution};
use capture::pcapng::{self, Direction, Interface, PacketHead, WORKLIST_OVERHEAD};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::foreign::{Sample, Writer};

/// Files of other programs, four packets each but where there are two interfaces: of `tcpdump` from a loopback and from
/// any interface (nanoseconds, `LINUX_SLL2`), the first by `editcap` as modified pcap, of `dumpcap` from both, and both by
/// `mergecap`.
const CORPUS: [(&str, &[u8], usize); 5] = [
    ("lo.pcap", include_bytes!("../corpus/lo.pcap"), 1),
    ("sll2.pcap", include_bytes!("../corpus/sll2.pcap"), 1),
    ("mod.pcap", include_bytes!("../corpus/mod.pcap"), 1),
    ("two.pcapng", include_bytes!("../corpus/two.pcapng"), 2),
    ("merged.pcapng", include_bytes!("../corpus/merged.pcapng"), 2),
];

/// When the packets of all of them were seen, as `tshark` says.
const MOMENTS_US: [i64; 4] = [
    1_795_364_289_874_114,
    1_795_364_289_874_130,
    1_795_364_289_913_264,
    1_795_364_289_913_279,
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

proptest! {
    #[test]
    fn pcap_of_either_order_and_resolution(
        samples in vec(sample(), 0..20),
        is_big_endian: bool,
        at_once in 1..4000_usize,
        kind in 0..3_usize,
    ) {
        let (magic, per_second, extra) =
            [(0xA1B2_C3D4, 1_000_000, 0), (0xA1B2_3C4D, 1_000_000_000, 0), (0xA1B2_CD34, 1_000_000, 8)][kind];
        let mut file = Writer::pcap(is_big_endian, magic, 113);
        for packet in &samples {
            file.record(packet, per_second, extra);
        }
        let unit = 1_000_000_000 / per_second;
        let wanted: Vec<Seen> = samples.iter().map(|packet| seen(packet, 0, packet.stamp * unit)).collect();
        let (got, error) = read(&file.bytes, at_once);
        prop_assert!(error.is_none());
        prop_assert_eq!(got, wanted);
        let reader = reader(&file.bytes, at_once).unwrap();
        prop_assert_eq!(reader.interfaces()[0].link, LinkType::Sll);
    }

    #[test]
    fn pcapng_of_several_sections(samples in vec(sample(), 0..20), is_big_endian: bool, at_once in 1..4000_usize) {
        let (file, wanted) = blocks(&samples, is_big_endian);
        let (got, error) = read(&file, at_once);
        prop_assert!(error.is_none(), "{error:?}");
        prop_assert_eq!(got, wanted);
        let mut reader = reader(&file, at_once).unwrap();
        while reader.next_packet().unwrap().is_some() {}
        // Those of later sections are the same.
        prop_assert_eq!(reader.interfaces().len(), 2);
        prop_assert_eq!(reader.interfaces()[1].resolution, Resolution::NANOSECOND);
        prop_assert_eq!(reader.offset(), file.len() as u64);
    }

    #[test]
    fn what_we_write(samples in vec(sample(), 0..20), at_once in 1..4000_usize) {
        let (file, wanted) = ours(&samples);
        let (got, error) = read(&file, at_once);
        prop_assert!(error.is_none(), "{error:?}");
        prop_assert_eq!(got, wanted);
        let mut reader = reader(&file, at_once).unwrap();
        for packet in &samples {
            let told = reader.next_packet().unwrap().unwrap();
            prop_assert_eq!(&told.interface.name, "ring:a");
            prop_assert_eq!(told.queue.is_some(), packet.stamp % 2 == 0);
            prop_assert_eq!(told.direction.is_some(), packet.stamp % 3 == 0);
            prop_assert_eq!(told.dropped.unwrap_or(0), packet.stamp % 5);
        }
    }

    /// Cut at any byte, a file gives all packets before, and says where it ends, if not between two of them.
    #[test]
    fn a_file_cut_short(samples in vec(sample(), 1..8), kind in 0..8_usize, at in any::<prop::sample::Index>()) {
        let (file, wanted) = any_kind(&samples, kind);
        let cut = at.index(file.len());
        let (got, error) = read(&file[..cut], 1000);
        prop_assert_eq!(&got[..], &wanted[..got.len()]);
        match error {
            None | Some(InputError::Empty(_) | InputError::Foreign(..)) => {}
            Some(InputError::Truncated(_, offset, there, of)) => {
                prop_assert_eq!(offset + there, cut as u64);
                prop_assert!(there < of);
            }
            Some(other) => prop_assert!(false, "{other}"),
        }
        // The first file that is long enough has the next packet.
        let (whole, _) = read(&file, 1000);
        prop_assert_eq!(whole, wanted);
    }

    /// Whatever was changed: no panic, an end, and no more packets than bytes can hold.
    #[test]
    fn a_damaged_file(
        samples in vec(sample(), 1..8),
        kind in 0..8_usize,
        changes in vec((any::<prop::sample::Index>(), any::<[u8; 4]>(), 1..5_usize), 1..5),
        at_once in 1..4000_usize,
    ) {
        let (mut file, _) = any_kind(&samples, kind);
        for (at, bytes, len) in changes {
            let at = at.index(file.len());
            let len = len.min(4).min(file.len() - at);
            file[at..at + len].copy_from_slice(&bytes[..len]);
        }
        let (got, error) = read(&file, at_once);
        prop_assert!(got.len() <= file.len() / 12);
        if let Some(error) = error {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }

    /// Any bytes behind a right beginning.
    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..400), kind in 0..4_usize) {
        let mut file = match kind {
            0 => Vec::new(),
            1 => Writer::pcap(false, 0xA1B2_C3D4, 1).bytes,
            2 => Writer::new(true).section().interface(1, 0, "a", None).bytes.clone(),
            _ => b"\x1f\x8b\x08\x00".to_vec(),
        };
        file.extend(bytes);
        let (got, _) = read(&file, 100);
        prop_assert!(got.len() <= file.len() / 12);
    }
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

/// An echo and its answer by IPv4 and by IPv6, the same moments in every file.
#[test]
fn files_of_other_programs() {
    for (name, file, interfaces) in CORPUS {
        let (got, error) = read(file, 1000);
        assert!(error.is_none(), "{name}: {error:?}");
        assert_eq!(got.len(), 4 * interfaces, "{name}");
        for packet in &got {
            let micros = packet.time_ns.unwrap() / 1000;
            assert!(
                MOMENTS_US.contains(&micros) && packet.data.len() == packet.original_len as usize,
                "{name}: {packet:?}"
            );
        }
        let mut seen: Vec<usize> = got.iter().map(|packet| packet.interface).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, (0..interfaces).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn what_is_compressed_is_read_by_its_first_bytes() {
    // Bytes that do not shrink, so that half a file decompresses to about half.
    let mut bits = 1_u64;
    let mut noise = move || {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (bits >> 56) as u8
    };
    let samples: Vec<Sample> = (0..500)
        .map(|number| Sample {
            interface: 0,
            stamp: number,
            original_len: 1000,
            data: (0..1000).map(|_| noise()).collect(),
        })
        .collect();
    let (file, wanted) = ours(&samples);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&file).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstandard = zstd::encode_all(&file[..], 1).unwrap();
    for compressed in [gzip, zstandard] {
        let (got, error) = read(&compressed, 100);
        assert!(error.is_none(), "{error:?}");
        assert_eq!(got, wanted);
        // Cut short, it gives what was before, and says so.
        let (got, error) = read(&compressed[..compressed.len() / 2], 100);
        assert!(!got.is_empty() && got.len() < wanted.len());
        assert_eq!(got, wanted[..got.len()]);
        assert!(matches!(error, Some(InputError::Read(..))), "{error:?}");
    }
}

/// What claims to be 4 GiB long is passed over where it holds no packet, and refused where it does.
#[test]
fn claims_of_gigabytes_cost_no_memory() {
    let head = |kind: u32| {
        let mut file = Writer::new(false);
        file.section().interface(1, 0, "a", None);
        let at = file.bytes.len() as u64;
        (file.u32(kind).u32(0xFFFF_FFFC).raw(&[0; 24]).bytes.clone(), at)
    };
    let (unknown, begin) = head(0x0BAD_CAFE);
    let long = Cursor::new(unknown).chain(std::io::repeat(0).take(5_000_000));
    let mut reader = Reader::new("it".into(), long).unwrap();
    let error = reader.next_packet().unwrap_err();
    let cut = matches!(&error, InputError::Truncated(_, at, 5_000_032, 0xFFFF_FFFC) if *at == begin);
    assert!(cut, "{error}");
    for kind in [1, 2, 3, 6] {
        let (file, begin) = head(kind);
        let (_, error) = read(&file, 1000);
        let refused = matches!(&error, Some(InputError::Damaged(_, at, _)) if *at == begin);
        assert!(refused, "{error:?}");
    }
    let mut pcap = Writer::pcap(true, 0xA1B2_C3D4, 1);
    pcap.u32(1).u32(1).u32(u32::MAX).u32(u32::MAX);
    let (_, error) = read(&pcap.bytes, 1000);
    assert!(matches!(error, Some(InputError::Damaged(_, 24, _))), "{error:?}");
}

#[test]
fn a_packet_whose_time_cannot_be_has_none() {
    let mut file = Writer::new(true);
    let mut late = three()[0].clone();
    late.stamp = u64::MAX;
    file.section()
        .interface(1, 0, "a", None)
        .enhanced(&late)
        .enhanced(&three()[0]);
    let (got, error) = read(&file.bytes, 1000);
    assert!(error.is_none(), "{error:?}");
    let times: Vec<bool> = got.iter().map(|packet| packet.time_ns.is_some()).collect();
    assert_eq!(times, [false, true]);
}

#[test]
fn each_lie_has_its_place() {
    let lie = |write: &dyn Fn(&mut Writer)| {
        let mut file = Writer::new(true);
        file.section().interface(1, 0, "a", None).enhanced(&three()[0]);
        let begin = file.bytes.len() as u64;
        write(&mut file);
        let (got, error) = read(&file.bytes, 1000);
        assert_eq!(got.len(), 1);
        match error {
            Some(InputError::Damaged(_, at, what)) => {
                assert_eq!(at, begin);
                what
            }
            other => panic!("{other:?}"),
        }
    };
    let mut elsewhere = three()[0].clone();
    elsewhere.interface = 1;
    let unknown = lie(&|file| {
        file.enhanced(&elsewhere);
    });
    assert_eq!(unknown, "a packet is of an interface that was not described");
    let longer = lie(&|file| {
        file.block(6, |body| {
            body.u32(0).u32(0).u32(0).u32(100).u32(100).raw(&[0; 20]);
        });
    });
    assert_eq!(longer, "a packet is longer than its block");
    let two = lie(&|file| {
        file.u32(6).u32(32).raw(&[0; 20]).u32(36);
    });
    assert_eq!(two, "a block says two different lengths of itself");
    let odd = lie(&|file| {
        file.u32(6).u32(33).raw(&[0; 40]);
    });
    assert_eq!(odd, "the length of a block is no multiple of 4, or too short");
}

#[test]
fn what_is_no_capture_is_refused() {
    let refused = |bytes: &[u8]| reader(bytes, 1000).unwrap_err().to_string();
    assert!(refused(b"").contains("it is empty"));
    let text = refused(b"#!/bin/sh\necho this is no capture\n");
    assert!(
        text.contains("it is no pcap or pcapng file (it begins with 23 21 2f 62)"),
        "{text}"
    );
    assert!(matches!(
        reader(&Writer::pcap(false, 0xA1B2_C3D4, 1).bytes[..10], 10),
        Err(InputError::Truncated(_, 0, 10, 24))
    ));
    let no_file = Reader::open(std::path::Path::new("/nowhere/a.pcap")).unwrap_err();
    assert!(
        no_file.to_string().starts_with("cannot open /nowhere/a.pcap: "),
        "{no_file}"
    );
    let directory = Reader::open(std::path::Path::new("/")).unwrap_err();
    assert!(matches!(directory, InputError::Open(..)));
}

/// What would wait is not asked before what is there was given.
#[test]
fn what_is_in_memory_is_given_without_asking() {
    let mut file = Writer::pcap(false, 0xA1B2_C3D4, 1);
    for packet in three() {
        file.record(&packet, 1_000_000, 0);
    }
    // One byte is missing.
    file.bytes.pop();
    let mut reader = reader(&file.bytes, 10_000).unwrap();
    assert!(reader.next_in_memory().unwrap().is_some());
    assert!(reader.next_in_memory().unwrap().is_some());
    assert!(reader.next_in_memory().unwrap().is_none());
    assert!(reader.next_packet().is_err());
}
