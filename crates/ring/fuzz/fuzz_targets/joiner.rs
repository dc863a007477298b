//! Any bytes of whoever joins a ring: a seat, or nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the targets share it, and so do the tests")]
#[path = "../../tests/it/any.rs"]
mod any;

fuzz_target!(|input: &[u8]| {
    any::joiner(input);
});
