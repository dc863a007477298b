//! Any text as rules and any bytes as frames: the tables decide as the reference does.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rules::limit::Limiter;
use rules::tables::Memo;
use rules::{Groups, Tables, look, parse};

fuzz_target!(|input: (&str, Vec<(Vec<u8>, u32)>)| {
    let (text, frames) = input;
    let Ok(set) = parse("fuzz.rules", &|_| Ok(text.to_owned())) else {
        return;
    };
    let Ok(tables) = Tables::new(&set) else { return };
    let (limiter, mut groups) = (Limiter::new(1 << 10, 7), Groups::default());
    let (whole, mut memo) = (Limiter::new(1 << 10, 7), Memo::default());
    let mut now_ns = 1_000_000_000;
    for (frame, pause_ns) in frames {
        now_ns += u64::from(pause_ns);
        let packet = look(&frame, frame.len(), set.reasons());
        let meant = set.judge(&packet, now_ns, &mut groups, |_, _| {});
        assert_eq!(tables.classify(&frame, frame.len(), &limiter, now_ns), meant);
        if let Some(recalled) = tables.recall(&memo, &frame) {
            assert_eq!(recalled, meant);
        }
        let (judged, _) = tables.judge(&mut memo, (&frame, frame.len()), (&whole, now_ns));
        assert_eq!(judged, meant);
    }
});
