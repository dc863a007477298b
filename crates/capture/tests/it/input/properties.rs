//! Whatever a file is: what was written is read, and nothing that was damaged is believed.

use capture::input::{InputError, LinkType, Resolution};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{Seen, any_kind, blocks, ours, read, reader, sample, seen};
use crate::foreign::Writer;

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
