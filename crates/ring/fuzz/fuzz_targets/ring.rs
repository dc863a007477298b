//! Changes of a ring in shared memory, 13 bytes each: it is read to its end or to an error, and no further.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the targets share it, and so do the tests")]
#[path = "../../tests/it/any.rs"]
mod any;

fn sound() -> &'static [any::Image; 2] {
    static SOUND: std::sync::OnceLock<[any::Image; 2]> = std::sync::OnceLock::new();
    SOUND.get_or_init(|| [any::Image::sound(false), any::Image::sound(true)])
}

fuzz_target!(|input: &[u8]| {
    let _ = any::ring(sound(), input);
});
