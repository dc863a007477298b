//! What the targets make of any bytes: a few choices and a frame, whose checksums are mended where the first byte says so,
//! since bytes by chance have none that is right.

use std::net::IpAddr;

use wire::checksum::{self, ICMP, ICMPV6, TCP, UDP};
use wire::{Parsed, parse};

pub struct Input {
    pub choice: bool,
    pub run: u8,
    pub number: u16,
    pub frame: Vec<u8>,
}

impl Input {
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let (&[choices, run, low, high], frame) = bytes.split_first_chunk()?;
        let mut frame = frame.to_vec();
        if choices & 1 != 0 {
            mend(&mut frame);
        }
        Some(Self {
            choice: choices & 2 != 0,
            run,
            number: u16::from_le_bytes([low, high]),
            frame,
        })
    }
}

fn mend(frame: &mut [u8]) {
    let Parsed::Ip(ip) = parse(frame) else { return };
    if let (false, Some(header)) = (ip.v6, frame.get_mut(ip.at..ip.transport)) {
        put(header, 10, 0);
    }
    let addresses = ip.addresses(frame);
    let Some(transport) = frame.get_mut(ip.transport..ip.end) else {
        return;
    };
    let len = transport.len() as u16;
    let pseudo = match addresses {
        _ if ip.protocol == ICMP => 0,
        Some((IpAddr::V4(from), IpAddr::V4(to))) => {
            let both = [from.octets(), to.octets()].concat();
            checksum::pseudo_v4(both.first_chunk().expect("eight bytes"), ip.protocol, len)
        }
        Some((IpAddr::V6(from), IpAddr::V6(to))) => {
            let both = [from.octets(), to.octets()].concat();
            checksum::pseudo_v6(both.first_chunk().expect("32 bytes"), ip.protocol, len)
        }
        _ => return,
    };
    match ip.protocol {
        ICMP | ICMPV6 => put(transport, 2, pseudo),
        UDP => put(transport, 6, pseudo),
        TCP => put(transport, 16, pseudo),
        _ => {}
    }
}

/// Puts the checksum of `bytes` and of a pseudo header at `at`.
fn put(bytes: &mut [u8], at: usize, pseudo: u64) {
    let Some(field) = bytes.get_mut(at..at + 2) else {
        return;
    };
    field.fill(0);
    let sum = checksum::udp_field(pseudo + checksum::sum(bytes));
    bytes[at..at + 2].copy_from_slice(&sum);
}
