//! What nftables and iptables have in common: interfaces, masks, rates, and conditions put together.

use std::net::IpAddr;
use std::num::NonZeroU64;
use std::ops::RangeInclusive;

use rules::{Fragment, Layer, RATE_MAX, Rate, Verdict};

use super::conditions::{Conditions, Read, Unfit, unfit};
use super::ruleset::Target;

/// Different conditions that a rule may stand for: an element of a map is one.
pub const PARTS_MAX: usize = 1024;
/// Fragments that no single word of ours names.
pub const NOT_LATER: [Fragment; 2] = [Fragment::Not, Fragment::First];

/// Whether an interface is named, where `rest` at the end of a name stands for any rest.
pub fn is_named(device: &str, name: &str, rest: char) -> bool {
    match name.strip_suffix(rest) {
        Some(start) => device.starts_with(start),
        None => device == name,
    }
}

/// Whether packets of the interface that the rules are for are meant. For `rest` see [`is_named`].
pub fn device((name, rest): (&str, char), is_wanted: bool, device: Option<&str>) -> Read<()> {
    let is_it = match device {
        // Nobody filters packets on their way to the machine itself.
        None if name == "lo" => false,
        None => return unfit("it is for one interface; say by --dev for which one the rules are"),
        Some(device)
            if name
                .strip_prefix(device)
                .is_some_and(|rest| rest.starts_with('.')) =>
        {
            return unfit("it is for a VLAN on the interface; a rule of ours says `vlan` for it");
        }
        Some(device) => is_named(device, name, rest),
    };
    if is_it == is_wanted {
        Ok(())
    } else {
        Err(Unfit::Never)
    }
}

/// The length of a mask that is written as an address.
pub fn mask_len(mask: &str) -> Read<u8> {
    let (bits, whole) = match mask.parse() {
        Ok(IpAddr::V4(mask)) => (u128::from(mask.to_bits()) << 96, 32),
        Ok(IpAddr::V6(mask)) => (mask.to_bits(), 128),
        Err(_) => return unfit("a mask that is not known here"),
    };
    let len = bits.leading_ones() as u8;
    if bits == 0 || len > whole || bits << (len % 128) != 0 && len < 128 {
        return unfit("a mask with holes");
    }
    Ok(len)
}

/// Both conditions of each pair; pairs that no packet fulfils are left away.
pub fn product(some: &[Conditions], others: &[Conditions]) -> Read<Vec<Conditions>> {
    let mut all = Vec::new();
    for one in some {
        for other in others {
            match one.and(other) {
                Ok(both) => all.push(both),
                Err(Unfit::Never) => {}
                Err(why) => return Err(why),
            }
        }
    }
    if all.len() > PARTS_MAX {
        return unfit(format!("more than {PARTS_MAX} conditions in one rule"));
    }
    if all.is_empty() {
        Err(Unfit::Never)
    } else {
        Ok(all)
    }
}

/// What becomes of packets, where those that a rate lets pass are spared.
pub fn then(target: Target, above: Option<Read<Rate>>) -> Read<Target> {
    match (above, target) {
        (None, target) => Ok(target),
        (Some(rate), Target::Decide(Verdict::Deny)) => rate.map(Target::Limit),
        (Some(_), _) => unfit("a rate, above which packets are not dropped"),
    }
}

/// So many packets in so many seconds, where that is a whole number each second.
pub fn whole_per_second(packets: u64, seconds: u64) -> Option<NonZeroU64> {
    let rate = NonZeroU64::new(packets / seconds)?;
    (packets % seconds == 0 && rate.get() <= RATE_MAX).then_some(rate)
}

/// The lengths of prefixes of IPv4 and IPv6 that a rate is for each of; of the family that it is not for, the usual one.
pub fn lens(layer: Layer, len: u8) -> (u8, u8) {
    if layer == Layer::V6 { (32, len) } else { (len, 64) }
}

/// The types of ICMP that are not among these.
pub fn other_types(those: &[RangeInclusive<u8>]) -> Vec<RangeInclusive<u8>> {
    let others = (0..=255).filter(|kind| !those.iter().any(|range| range.contains(kind)));
    others.map(|kind| kind..=kind).collect()
}
