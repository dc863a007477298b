//! Any bytes may arrive: nothing panics, and one more flipped bit never makes a packet good.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{Class, Parsed, Verify, classify, corrupt_one_bit, parse, peek};

fuzz_target!(|input: (u8, u64, Vec<u8>)| {
    let (run, selector, mut frame) = input;
    if let Parsed::Ip(ip) = parse(&frame) {
        assert!(ip.transport <= frame.len());
        let _ = (ip.addresses(&frame), ip.ports(&frame), ip.vlans(&frame).count());
    }
    let classes =
        [Verify::None, Verify::Checksum, Verify::Payload].map(|verify| classify(&frame, run, verify));
    // Who passes the stricter check passes the laxer.
    if let [lax, checked, Class::Probe(probe)] = classes {
        assert_eq!((lax, checked), (Class::Probe(probe), Class::Probe(probe)));
    }
    if let Class::Probe(probe) = classes[1] {
        assert_eq!(peek(&frame), Some(probe));
        assert!(corrupt_one_bit(&mut frame, selector));
        assert_eq!(classify(&frame, run, Verify::Checksum), Class::Corrupt);
    } else {
        let _ = (peek(&frame), corrupt_one_bit(&mut frame, selector));
    }
});
