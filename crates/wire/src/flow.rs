//! A hash of the flow that a frame belongs to, the same in both directions and in every process.

use std::net::IpAddr;

use crate::bytes::try_array;
use crate::headers::{Ip, Parsed, parse};

/// The hash of a frame's flow: of addresses, protocol and ports, whichever way it goes. Fragments have no ports (only the
/// first one holds them), so that those of two hosts are one flow; what is no IP is told apart by its MAC addresses.
#[inline]
pub fn flow_hash(frame: &[u8]) -> u64 {
    let (ends, protocol) = match parse(frame) {
        // What follows the Fragment header is the same in all fragments; headers behind it has only the first.
        Parsed::Ip(ip) if ip.fragment && ip.v6 => (of_ip(&ip, frame), frame[ip.fragment_at]),
        Parsed::Ip(ip) => (of_ip(&ip, frame), ip.protocol),
        _ => (None, 0),
    };
    // A sum has no first and no second end.
    let ends = ends.unwrap_or_else(|| mac_end(frame, 0).wrapping_add(mac_end(frame, 6)));
    mix(ends ^ u64::from(protocol))
}

fn of_ip(ip: &Ip, frame: &[u8]) -> Option<u64> {
    let (from, to) = ip.addresses(frame)?;
    let ports = if ip.fragment { None } else { ip.ports(frame) };
    let (from_port, to_port) = ports.unwrap_or_default();
    Some(ip_end(from, from_port).wrapping_add(ip_end(to, to_port)))
}

fn ip_end(address: IpAddr, port: u16) -> u64 {
    match address {
        IpAddr::V4(address) => mix(u64::from(u32::from(address)) << 16 | u64::from(port)),
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            mix(mix((bits >> 64) as u64 ^ u64::from(port)) ^ bits as u64)
        }
    }
}

fn mac_end(frame: &[u8], at: usize) -> u64 {
    let bytes = try_array::<6>(frame, at).unwrap_or(&[0; 6]);
    mix(bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)))
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
