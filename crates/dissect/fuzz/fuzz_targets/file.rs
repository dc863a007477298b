//! Any bytes as a capture file: it is read to an end, in bounded memory, and every packet becomes one plain line.
#![no_main]

use std::io::Cursor;

use capture::input::Reader;
use dissect::flow::{Connections, Talkers};
use dissect::{Clock, Printer, Show, Text, TimeFormat, View, json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = Reader::new("fuzz".into(), Cursor::new(bytes.to_vec())) else {
        return;
    };
    let clock = |format| Clock::new(format, true);
    let mut printer = Printer::new(clock(TimeFormat::Date), Show { ethernet: true });
    let mut iso = clock(TimeFormat::Iso);
    let (mut connections, mut talkers) = (Connections::new(8), Talkers::new(8));
    let mut text = Text::default();
    let mut packets = 0_u64;
    while let Ok(Some(packet)) = reader.next_packet() {
        packets += 1;
        text.clear();
        printer.line(&mut text, &packet);
        json(&mut text, &mut iso, &packet);
        let lines = text.as_bytes().split(|byte| *byte == b'\n');
        assert_eq!(lines.count(), 3);
        // Names of interfaces may have letters of any language.
        assert!(text.as_bytes().iter().all(|byte| *byte == b'\n' || *byte >= b' '));
        let view = View::of(&packet);
        connections.add(&view, packet.time_ns, packet.original_len);
        talkers.add(&view, packet.original_len);
    }
    let (all, evicted, other) = connections.finish();
    let shown: u64 = all
        .iter()
        .map(|one| one.sent.packets + one.returned.packets)
        .sum();
    assert_eq!(shown + evicted.count.packets + other.packets, packets);
    let _ = talkers.finish();
});
