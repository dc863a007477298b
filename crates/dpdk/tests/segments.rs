//! Packets in several buffers, as a pcap port gives them: seen as such, cut when written anew, and freed whole.

mod support;

use std::fs;

use dpdk::{Burst, Pool, Port, PortConfig};

const FRAME_LEN: usize = 3000;
const COUNT: usize = 4;

/// A classic pcap file of `COUNT` frames.
fn pcap() -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 1] {
        file.extend(word.to_le_bytes());
    }
    for number in 0..COUNT {
        for word in [number as u32, 5, FRAME_LEN as u32, FRAME_LEN as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend((0..FRAME_LEN).map(|index| (index + number) as u8));
    }
    file
}

#[test]
fn segmented_packets_are_cut_and_freed() {
    let path = std::env::temp_dir().join(format!("dl-segments-{}.pcap", std::process::id()));
    fs::write(&path, pcap()).unwrap();
    let eal = support::eal("segments");
    let mut pool = Pool::new(&eal, "packets", 255, 32, 1024, None).unwrap();
    let name = eal
        .add_device("net_pcap0", &format!("rx_pcap={}", path.display()))
        .unwrap();
    let (mut port, mut rx, tx) = Port::by_name(&eal, &name)
        .unwrap()
        .configure(&PortConfig::default(), &pool)
        .unwrap();
    port.start().unwrap();
    let mut burst = Burst::new(&eal);
    assert_eq!(rx[0].receive(&mut burst, 32), COUNT);
    // The first buffer holds 1024 bytes, the later ones have no headroom.
    assert_eq!(pool.in_use(), COUNT * 3);
    for index in 0..COUNT {
        assert!(burst.is_segmented(index));
        assert_eq!(
            (burst.packet_len(index), burst.bytes(index).len()),
            (FRAME_LEN, 1024)
        );
        let segments: Vec<&[u8]> = burst.segments(index).collect();
        assert_eq!((segments.len(), segments[0]), (3, burst.bytes(index)));
        let whole = segments.concat();
        assert_eq!(whole.len(), FRAME_LEN);
        assert!(
            whole
                .iter()
                .zip(index..)
                .all(|(byte, value)| *byte == value as u8)
        );
        // The driver's clock is the file's, in microseconds.
        assert_eq!(burst.rx_timestamp(index), Some(index as u64 * 1_000_000 + 5));
    }
    burst.write(0, 100).fill(5);
    burst.set_len(1, 60);
    assert_eq!(burst.rx_timestamp(0), None, "a fresh frame was not received");
    for (index, len) in [(0, 100), (1, 60)] {
        assert!(!burst.is_segmented(index) && burst.segments(index).count() == 1);
        assert_eq!((burst.packet_len(index), burst.bytes(index).len()), (len, len));
    }
    assert_eq!(burst.bytes(0), [5; 100]);
    assert_eq!(pool.in_use(), COUNT * 3 - 4);
    drop((burst, port, rx, tx));
    assert_eq!(pool.in_use(), 0);
    assert_eq!(pool.audit().len(), 0);
    fs::remove_file(path).unwrap();
}
