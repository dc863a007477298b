//! Values of words: addresses, ports, flags, types.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use rules::Prefix;

use super::super::common::{mask_len, other_types};
use super::super::conditions::{Read, Unfit, flag, prefixes, unfit};

pub fn prefix(text: &str) -> Read<Prefix> {
    let (address, len) = text
        .split_once('/')
        .map_or((text, None), |(address, len)| (address, Some(len)));
    let Ok(address) = address.parse::<IpAddr>() else {
        return unfit(format!("the address {text}"));
    };
    let whole = if address.is_ipv6() { 128 } else { 32 };
    let len = match len {
        None => whole,
        Some(len) => match len.parse() {
            Ok(len) => len,
            Err(_) if len == "0.0.0.0" => 0,
            Err(_) => mask_len(len)?,
        },
    };
    match Prefix::new(address, len) {
        Some(prefix) => Ok(prefix),
        None => unfit(format!("the address {text}")),
    }
}

pub fn range_of(text: &str) -> Read<Vec<Prefix>> {
    let ends = text.split_once('-').unwrap_or((text, text));
    match (ends.0.parse(), ends.1.parse()) {
        (Ok(first), Ok(last)) => prefixes(first, last),
        _ => unfit(format!("the addresses {text}")),
    }
}

/// `80,443,8000:8100`.
pub fn port_list(text: &str) -> Read<Vec<RangeInclusive<u16>>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once(':').unwrap_or((part, part));
        match (first.parse::<u16>(), last.parse::<u16>()) {
            (Ok(first), Ok(last)) if first <= last => all.push(first..=last),
            _ => return unfit(format!("the ports {part}")),
        }
    }
    Ok(all)
}

pub fn flags(text: &str) -> Read<u8> {
    let mut bits = 0;
    for name in text.split(',') {
        bits |= match name {
            "NONE" => 0,
            // Those that iptables knows.
            "ALL" => 0x3F,
            name => match flag(name) {
                Some(bit) => bit,
                None => return unfit(format!("the flag {name}")),
            },
        };
    }
    Ok(bits)
}

/// A type by its number; `any` asks for none.
pub fn types(text: &str, not: bool) -> Read<Option<Vec<RangeInclusive<u8>>>> {
    if text.contains('/') {
        return unfit("codes of ICMP are not in our language");
    }
    if text == "any" {
        return if not { Err(Unfit::Never) } else { Ok(None) };
    }
    match text.parse::<u8>() {
        Ok(kind) if not => Ok(Some(other_types(&[kind..=kind]))),
        Ok(kind) => Ok(Some(vec![kind..=kind])),
        Err(_) => unfit(format!("the type {text}")),
    }
}
