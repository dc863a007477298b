//! Any bytes may arrive: nothing panics, and one more flipped bit never makes a packet good.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{
    Class, Classifier, Parsed, ReflectorCounters, Verify, classify, corrupt_one_bit, envelope, flow_hash,
    parse, peek,
};

#[allow(dead_code, reason = "the targets share it")]
#[path = "../input.rs"]
mod input;

const HOW: [Verify; 3] = [Verify::None, Verify::Checksum, Verify::Payload];

fuzz_target!(|bytes: &[u8]| {
    let Some(input::Input {
        run,
        number,
        mut frame,
        ..
    }) = input::Input::of(bytes)
    else {
        return;
    };
    if let Parsed::Ip(ip) = parse(&frame) {
        assert!(ip.transport <= frame.len());
        let _ = (ip.addresses(&frame), ip.ports(&frame), ip.vlans(&frame).count());
    }
    let _ = (
        flow_hash(&frame),
        envelope::unwrap(&frame),
        ReflectorCounters::read(&frame, 0),
    );
    // Who remembers the headers of the frame before judges the same.
    let mut all = HOW.map(|how| Classifier::new(run, how));
    let classes = HOW.map(|how| classify(&frame, run, how));
    for _ in 0..2 {
        assert_eq!(all.each_mut().map(|one| one.classify(&frame)), classes);
    }
    // Who passes the stricter check passes the laxer.
    if let [lax, checked, Class::Probe(probe)] = classes {
        assert_eq!((lax, checked), (Class::Probe(probe), Class::Probe(probe)));
    }
    if let Class::Probe(probe) = classes[1] {
        assert_eq!(peek(&frame), Some(probe));
        assert!(corrupt_one_bit(&mut frame, number.into()));
        for strict in &mut all[1..] {
            assert_eq!(strict.classify(&frame), Class::Corrupt);
        }
    } else {
        let _ = (peek(&frame), corrupt_one_bit(&mut frame, number.into()));
    }
});
