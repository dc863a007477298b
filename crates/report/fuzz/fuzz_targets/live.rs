//! Any bytes as what a run publishes of itself: a state, or a refusal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use report::published::{decode, encode};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(state) = decode(bytes) {
        let again = encode(&state).expect("what was read can be written");
        assert!(decode(&again).is_ok());
    }
});
