//! Any bytes may ask: nothing panics, replies stay within the room and are never answered themselves.
#![no_main]

use std::net::{Ipv4Addr, Ipv6Addr};

use libfuzzer_sys::fuzz_target;
use wire::{Addresses, answer, neighbour::parse_reply};

#[allow(dead_code, reason = "the targets share it")]
#[path = "../input.rs"]
mod input;

fuzz_target!(|bytes: &[u8]| {
    let Some(input::Input {
        number,
        frame: mut room,
        ..
    }) = input::Input::of(bytes)
    else {
        return;
    };
    let (v4, v6) = (
        Ipv4Addr::new(192, 0, 2, 1),
        Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, 1),
    );
    let me = Addresses {
        mac: [2, 0, 0, 0, 0, 1],
        ips: vec![v4.into(), v6.into()],
    };
    let _ = (parse_reply(&room, v4.into()), parse_reply(&room, v6.into()));
    let len = room.len();
    let before = room.clone();
    room.resize(len + usize::from(number % 256), 0);
    match answer(&mut room, len, &me) {
        Some(answered) => {
            assert!(answered <= room.len());
            assert_eq!(answer(&mut room, answered, &me), None);
        }
        None => assert_eq!(room[..len], before),
    }
});
