//! Any bytes as a packet of any kind of link: one plain line of ASCII.
#![no_main]

use capture::input::{Interface, LinkType, Packet, Resolution};
use dissect::{Clock, Printer, Show, Text, TimeFormat, json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u16, u32, i64, Vec<u8>, Vec<u8>)| {
    let (link, original_len, time_ns, data, comment) = input;
    let interface = Interface {
        id: 0,
        name: "fuzz".into(),
        link: LinkType::from_number(link % 300),
        snap_len: 0,
        resolution: Resolution::NANOSECOND,
        offset_s: 0,
    };
    let packet = Packet {
        interface: &interface,
        interface_index: 0,
        interface_count: 1,
        time_ns: Some(time_ns),
        original_len,
        data: &data,
        direction: None,
        dropped: None,
        queue: None,
        comment: Some(&comment),
    };
    let mut text = Text::default();
    Printer::new(Clock::new(TimeFormat::Epoch, true), Show::default()).line(&mut text, &packet);
    json(&mut text, &mut Clock::new(TimeFormat::Iso, true), &packet);
    assert_eq!(text.as_bytes().split(|byte| *byte == b'\n').count(), 3);
    assert!(
        text.as_bytes()
            .iter()
            .all(|byte| matches!(byte, b'\n' | b' '..=b'~'))
    );
});
