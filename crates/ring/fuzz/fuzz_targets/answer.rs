//! Any bytes as the answer to whoever joins a ring, with a ring or without: a ring to read, or an error.
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
    let _ = any::answer(sound(), input);
});
