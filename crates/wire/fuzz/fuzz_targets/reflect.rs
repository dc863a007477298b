//! Any bytes may be reflected: nothing panics, what is dropped stays, a swap keeps the receiver's judgement, and a question for
//! the counters has an answer or stays as it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{DropReason, Reflector, ReflectorCounters, Verify, classify, reflect};

#[allow(dead_code, reason = "the targets share it")]
#[path = "../input.rs"]
mod input;

fuzz_target!(|bytes: &[u8]| {
    let Some(input::Input {
        choice: only_ours,
        run,
        mut frame,
        ..
    }) = input::Input::of(bytes)
    else {
        return;
    };
    let before = frame.clone();
    let outcome = reflect(&mut frame, only_ours);
    match outcome {
        Ok(()) => {
            for verify in [Verify::None, Verify::Checksum, Verify::Payload] {
                assert_eq!(classify(&frame, run, verify), classify(&before, run, verify));
            }
        }
        Err(_) => assert_eq!(frame, before),
    }
    // Who remembers the headers of the frame before does the same.
    let mut remembers = Reflector::new(only_ours);
    for _ in 0..2 {
        let mut again = before.clone();
        match remembers.turn(&mut again) {
            // A question for the counters is the reflector's own, wherever it comes from.
            Err(DropReason::NotOurs) => assert_eq!(again, before),
            turned => assert_eq!((turned, &again), (outcome, &frame)),
        }
    }
    let mut asked = before.clone();
    let counters = ReflectorCounters::default();
    if counters.answer(&mut asked) {
        assert_eq!(asked.len(), before.len());
        assert!(!counters.answer(&mut asked), "an answer is no question");
    } else {
        assert_eq!(asked, before);
    }
});
