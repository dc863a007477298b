//! Any bytes as a page of the kernel's trace buffer: records that lie in it, and no further.
#![no_main]

use doctor::noise::page::records;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|page: &[u8]| {
    let mut bytes = 0;
    records(page, |_, record| bytes += record.len());
    assert!(bytes <= page.len());
});
