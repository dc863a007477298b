//! Any bytes as what a run publishes of itself: a state, or a refusal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use report::published::{VERSION, decode, encode};

fuzz_target!(|bytes: &[u8]| {
    // Also behind a first line that is right: bytes by chance have none that tells their number.
    let framed = [
        format!("dropless-live {VERSION} {}\n", bytes.len()).as_bytes(),
        bytes,
    ]
    .concat();
    for file in [bytes, &framed] {
        if let Ok(state) = decode(file) {
            let again = encode(&state).expect("what was read can be written");
            assert!(decode(&again).is_ok());
        }
    }
});
