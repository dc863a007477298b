//! Files of other programs, and such as are damaged in a way of their own.

use std::io::{Cursor, Read, Write};

use capture::input::{InputError, Reader};
use capture::pcapng::{self, Interface, Statistics};

use super::{CORPUS, ours, read, reader, three};
use crate::foreign::{Sample, Writer};

/// When the packets of all of them were seen, as `tshark` says.
const MOMENTS_US: [i64; 4] = [
    1_795_364_289_874_114,
    1_795_364_289_874_130,
    1_795_364_289_913_264,
    1_795_364_289_913_279,
];

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

/// Words on a packet are those of that packet, wherever it stands in the file, and the first of several.
#[test]
fn comments_on_packets() {
    let head = |number: u64| pcapng::PacketHead {
        time_ns: number,
        original_len: 60,
        ..pcapng::PacketHead::default()
    };
    let mut file = pcapng::preamble("somebody", &[Interface::default()]);
    for (number, words) in (0..).zip(["the first", "", "denied by edge.rules:3 deny udp"]) {
        file.extend(head(number).commented(&[number as u8; 60], words));
    }
    let mut reader = Reader::new("commented".into(), Cursor::new(file)).unwrap();
    let mut said = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        let words = packet
            .comment
            .map(|words| String::from_utf8(words.to_vec()).unwrap());
        said.push((packet.data[0], words.unwrap_or_default()));
    }
    let wanted = [(0, "the first"), (1, ""), (2, "denied by edge.rules:3 deny udp")];
    assert_eq!(said, wanted.map(|(first, words)| (first, words.to_owned())));
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
    let zipped = |bytes: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    };
    let gzip = zipped(&file);
    let zstandard = zstd::encode_all(&file[..], 1).unwrap();
    // As pzstd writes it: how long the next frame is, in a frame that is passed over.
    let skippable = [&[0x50, 0x2A, 0x4D, 0x18, 4, 0, 0, 0, 1, 2, 3, 4][..], &zstandard].concat();
    let behind = read(&[&gzip[..], b"more"].concat(), 100);
    assert_eq!(behind.0, wanted);
    let told = behind.1.map(|error| error.to_string()).unwrap_or_default();
    assert!(told.contains("behind the end of the gzip data"), "{told}");
    let (one, other) = file.split_at(file.len() / 2);
    let members = [zipped(one), zipped(other)].concat();
    assert_eq!(read(&members, 100).0, wanted);
    for compressed in [gzip, zstandard, skippable] {
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

/// Ours end with statistics: one that does not was left open. Of others' nobody knows.
#[test]
fn a_file_of_ours_says_whether_it_was_ended() {
    let is_left_open = |bytes: &[u8]| {
        let mut reader = reader(bytes, 100).unwrap();
        while reader.next_packet().unwrap().is_some() {
            assert!(!reader.is_left_open(), "nobody knows yet");
        }
        reader.is_left_open()
    };
    let interface = Interface {
        name: "ring:a".into(),
        ..Interface::default()
    };
    let mut file = pcapng::preamble("dropless 0.1.0", &[interface]);
    assert!(is_left_open(&file));
    file.extend(Statistics::default().block(0));
    assert!(!is_left_open(&file));
    // Another one behind it.
    file.extend(pcapng::preamble("dropless 0.1.0", &[]));
    assert!(is_left_open(&file));
    assert!(!is_left_open(&ours(&three()).0));
    assert!(CORPUS.iter().all(|(_, file, _)| !is_left_open(file)));
}
