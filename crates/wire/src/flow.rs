//! A hash of the flow that a frame belongs to, the same in both directions and in every process.

use std::net::IpAddr;

use crate::bytes::try_array;
use crate::headers::{Parsed, parse};

/// The hash of a frame's flow: of addresses, protocol and ports, whichever way it goes. Fragments have no ports (only the
/// first one holds them), so that those of two hosts are one flow; what is no IP is told apart by its MAC addresses.
#[inline]
pub fn flow_hash(frame: &[u8]) -> u64 {
    let found = match parse(frame) {
        Parsed::Ip(ip) => ip.addresses(frame).map(|addresses| {
            let ports = ip.ports(frame).filter(|_| !ip.fragment).unwrap_or_default();
            of_ends(address(addresses.0), address(addresses.1), ports, ip.protocol)
        }),
        _ => None,
    };
    found.unwrap_or_else(|| {
        let mac = |at| {
            let bytes = try_array::<6>(frame, at).unwrap_or(&[0; 6]);
            bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte))
        };
        of_ends(mac(0), mac(6), (0, 0), 0)
    })
}

fn address(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            mix((bits >> 64) as u64) ^ bits as u64
        }
    }
}

/// A sum has no first and no second end.
fn of_ends(one: u64, other: u64, (port, other_port): (u16, u16), protocol: u8) -> u64 {
    let end = |address: u64, port: u16| mix(mix(address) ^ u64::from(port));
    mix(end(one, port).wrapping_add(end(other, other_port)) ^ u64::from(protocol))
}

/// The finalizer of `SplitMix64` (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014): every bit of
/// the result depends on every bit.
#[inline]
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}
