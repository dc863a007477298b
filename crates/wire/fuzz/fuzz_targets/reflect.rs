//! Any bytes may be reflected: nothing panics, what is dropped stays, and a swap keeps the receiver's judgement.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{Verify, classify, reflect};

fuzz_target!(|input: (bool, u8, Vec<u8>)| {
    let (only_ours, run, mut frame) = input;
    let before = frame.clone();
    match reflect(&mut frame, only_ours) {
        Ok(()) => {
            for verify in [Verify::None, Verify::Checksum, Verify::Payload] {
                assert_eq!(classify(&frame, run, verify), classify(&before, run, verify));
            }
        }
        Err(_) => assert_eq!(frame, before),
    }
});
