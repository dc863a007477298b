//! What a `match` of nftables asks, and rates.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::ops::RangeInclusive;

use rules::{End, Flags, Fragment, Layer, Prefix, Rate};
use serde_json::Value;

use super::super::conditions::{Choice, Conditions, Read, Unfit, flag, prefixes, unfit};
use super::super::names::{icmp_type, protocol};
use super::{Scope, only};

/// How a value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compared {
    Is,
    IsNot,
    /// Any of these bits.
    Any,
    /// None of these bits.
    None,
}

/// Conditions of which one must be fulfilled.
pub fn alternatives(value: &Value, scope: &Scope<'_>) -> Read<Vec<Conditions>> {
    let (left, right) = (&value["left"], &value["right"]);
    let compared = match value["op"].as_str() {
        Some("==") => Compared::Is,
        Some("!=") => Compared::IsNot,
        Some("in") => Compared::Any,
        Some("!") => Compared::None,
        _ => return unfit("a comparison that our language has not"),
    };
    let Some((kind, what)) = only(left) else {
        return unfit("a condition that is not known here");
    };
    let one = |conditions| Ok(vec![conditions]);
    match kind {
        "payload" => {
            let (Some(header), Some(field)) = (what["protocol"].as_str(), what["field"].as_str()) else {
                return unfit("bytes at a place of their own");
            };
            payload((header, field), compared, right, scope)
        }
        "meta" => meta(what["key"].as_str().unwrap_or_default(), compared, right, scope),
        "&" => masked(what, compared, right),
        "ct" => unfit("connections are not tracked here: each packet is judged by itself"),
        "exthdr" => unfit("extension headers are not in our language"),
        "concat" => unfit("values that are looked for together are not in our language"),
        other => unfit(format!("`{other}` is not in our language")),
    }
    .and_then(|found| {
        if found.is_empty() {
            one(Conditions::default())
        } else {
            Ok(found)
        }
    })
}

fn payload(
    (header, field): (&str, &str),
    compared: Compared,
    right: &Value,
    scope: &Scope<'_>,
) -> Read<Vec<Conditions>> {
    let layer = match header {
        "ip" => Some(Layer::V4),
        "ip6" => Some(Layer::V6),
        _ => None,
    };
    let number = match header {
        "tcp" => Some(6),
        "udp" => Some(17),
        "sctp" => Some(132),
        _ => None,
    };
    let mut when = Conditions {
        layer,
        ..number.map_or_else(Conditions::default, Conditions::of_protocol)
    };
    match (header, field) {
        ("ip" | "ip6", "saddr" | "daddr") => {
            let found = addresses(compared, right, scope)?;
            if found
                .of
                .iter()
                .any(|prefix| Some(prefix.is_v6()) != layer.map(|layer| layer == Layer::V6))
            {
                return unfit("addresses of another family");
            }
            let of = if field == "saddr" {
                &mut when.source
            } else {
                &mut when.destination
            };
            *of = Some(found);
            if of.as_ref().is_some_and(|choice| choice.of.is_empty()) {
                // Everything is out of an empty set.
                *of = None;
            }
        }
        ("tcp" | "udp" | "sctp" | "th", "sport" | "dport") => {
            let found = ports(compared, right, scope)?;
            let of = if field == "sport" {
                &mut when.source_port
            } else {
                &mut when.destination_port
            };
            *of = Some(found);
            if header == "th" {
                // Conditions that name the protocol stand before it: whether they do is seen when both are joined.
                when.protocols = Some([6, 17, 132].into());
                return unfit_unless_named(when, scope);
            }
        }
        ("ip", "protocol") => when.protocols = Some(protocols(compared, right, scope)?),
        ("ip6", "nexthdr") => {
            return unfit("`ip6 nexthdr` looks at the first header only; `meta l4proto` can be taken over");
        }
        ("tcp", "flags") => return flags(compared, right),
        ("icmp" | "icmpv6", "type") => {
            let is_v6 = header == "icmpv6";
            let number = if is_v6 { 58 } else { 1 };
            when = Conditions {
                layer: Some(if is_v6 { Layer::V6 } else { Layer::V4 }),
                types: Some(types(compared, right, is_v6, scope)?),
                ..Conditions::of_protocol(number)
            };
        }
        (header, field) => return unfit(format!("`{header} {field}` is not in our language")),
    }
    Ok(vec![when])
}

/// `th dport` is for any protocol: the rule must name those it means.
fn unfit_unless_named(when: Conditions, scope: &Scope<'_>) -> Read<Vec<Conditions>> {
    if scope.names_ports.get() {
        Ok(vec![when])
    } else {
        unfit(
            "`th` is for protocols, too, that have no ports for us; name them by `meta l4proto { tcp, udp }` before it",
        )
    }
}

fn meta(key: &str, compared: Compared, right: &Value, scope: &Scope<'_>) -> Read<Vec<Conditions>> {
    match key {
        "l4proto" => {
            let found = protocols(compared, right, scope)?;
            let with_ports = [6, 17, 132];
            scope
                .names_ports
                .set(found.iter().all(|one| with_ports.contains(one)));
            Ok(vec![Conditions {
                protocols: Some(found),
                ..Conditions::default()
            }])
        }
        "nfproto" | "protocol" => {
            let layer = match (right.as_str(), compared) {
                (Some("ipv4" | "ip"), Compared::Is) | (Some("ipv6" | "ip6"), Compared::IsNot) => Layer::V4,
                (Some("ipv6" | "ip6"), Compared::Is) | (Some("ipv4" | "ip"), Compared::IsNot) => Layer::V6,
                _ => return unfit(format!("this value of `meta {key}`")),
            };
            if scope.layer.is_some_and(|only| only != layer) {
                return Err(Unfit::Never);
            }
            Ok(vec![Conditions::of_layer(layer)])
        }
        "iifname" | "iif" => {
            let Some(name) = right
                .as_str()
                .filter(|_| matches!(compared, Compared::Is | Compared::IsNot))
            else {
                return unfit("several interfaces");
            };
            device(name, compared == Compared::Is, scope.device)?;
            Ok(vec![Conditions::default()])
        }
        other => unfit(format!("`meta {other}` is not in our language")),
    }
}

/// Whether packets of the interface that the rules are for are meant.
pub fn device(name: &str, is_wanted: bool, device: Option<&str>) -> Read<()> {
    let is_it = match device {
        // Nobody filters packets on their way to the machine itself.
        None if name == "lo" => false,
        None => return unfit("it is for one interface; say by --dev for which one the rules are"),
        Some(device) => match name.strip_suffix(['*', '+']) {
            Some(start) => device.starts_with(start),
            None => device == name,
        },
    };
    if is_it == is_wanted {
        Ok(())
    } else {
        Err(Unfit::Never)
    }
}

/// `ip frag-off & 0x1fff` and `tcp flags & (..)`.
fn masked(what: &Value, compared: Compared, right: &Value) -> Read<Vec<Conditions>> {
    let Some([left, mask]) = what.as_array().map(Vec::as_slice) else {
        return unfit("a mask that is not known here");
    };
    let place = |name: &str| left["payload"][name].as_str().unwrap_or_default();
    match (place("protocol"), place("field")) {
        ("ip", "frag-off") if mask.as_u64() == Some(0x1FFF) && right.as_u64() == Some(0) => {
            let of = |part| Conditions {
                fragment: Some(part),
                ..Conditions::of_layer(Layer::V4)
            };
            match compared {
                Compared::IsNot => Ok(vec![of(Fragment::Later)]),
                Compared::Is => Ok(super::super::flat::NOT_LATER.map(of).into()),
                _ => unfit("a mask that is not known here"),
            }
        }
        ("tcp", "flags") => {
            let (mask, value) = (bits(mask)?, bits(right)?);
            match compared {
                Compared::Is if value & !mask == 0 => Ok(vec![of_flags(mask, value)]),
                Compared::Is => Err(Unfit::Never),
                Compared::IsNot if value == 0 => Ok(any(mask)),
                _ => unfit("flags that must not be so"),
            }
        }
        _ => unfit("a mask that our language has not"),
    }
}

fn of_flags(mask: u8, value: u8) -> Conditions {
    Conditions {
        flags: Some(Flags { mask, value }),
        ..Conditions::of_protocol(6)
    }
}

/// A condition for each flag: one of them must be set.
fn any(mask: u8) -> Vec<Conditions> {
    let each = (0..8).map(|bit| 1 << bit).filter(|bit| mask & bit != 0);
    each.map(|bit| of_flags(bit, bit)).collect()
}

fn flags(compared: Compared, right: &Value) -> Read<Vec<Conditions>> {
    let bits = bits(right)?;
    match compared {
        Compared::Is => Ok(vec![of_flags(0xFF, bits)]),
        Compared::Any if bits != 0 => Ok(any(bits)),
        Compared::None if bits != 0 => Ok(vec![of_flags(bits, 0)]),
        _ => unfit("flags that must not be so"),
    }
}

/// A flag, several in a list or joined by `|`, or a number.
fn bits(value: &Value) -> Read<u8> {
    let all = |list: &[Value]| {
        let mut bits = 0;
        for value in list {
            bits |= match value {
                Value::String(name) => flag(name).ok_or_else(|| Unfit::Why(format!("the flag {name}")))?,
                _ => return unfit("flags that are not known here"),
            };
        }
        Ok(bits)
    };
    match value {
        Value::String(_) => all(std::slice::from_ref(value)),
        Value::Array(list) => all(list),
        Value::Number(number) => match number.as_u64().map(u8::try_from) {
            Some(Ok(bits)) => Ok(bits),
            _ => unfit("flags that are not known here"),
        },
        _ => match only(value) {
            Some(("|", list)) => all(list.as_array().map_or(&[][..], Vec::as_slice)),
            _ => unfit("flags that are not known here"),
        },
    }
}

/// The members of a set or a single value, and the set's name if it has one.
fn members<'v>(right: &'v Value, scope: &Scope<'v>) -> Read<(Vec<&'v Value>, Option<String>)> {
    let named = right.as_str().filter(|text| text.starts_with('@'));
    let list = match (named, right.get("set")) {
        (Some(name), _) => scope.sets.set(&scope.table, name)?,
        (None, Some(Value::Array(list))) => list,
        (None, Some(_)) => return unfit("a set that is not known here"),
        (None, None) => std::slice::from_ref(right),
    };
    let mut all = Vec::new();
    for member in list {
        // What has a comment, a counter or the like.
        all.push(match only(member) {
            Some(("elem", about)) if about.get("timeout").is_some() || about.get("expires").is_some() => {
                return unfit("elements of a set that come and go");
            }
            Some(("elem", about)) => &about["val"],
            _ => member,
        });
    }
    Ok((all, named.map(|name| name.trim_start_matches('@').to_owned())))
}

fn is_not(compared: Compared) -> Read<bool> {
    match compared {
        Compared::Is => Ok(false),
        Compared::IsNot => Ok(true),
        Compared::Any | Compared::None => unfit("a comparison of bits"),
    }
}

fn addresses(compared: Compared, right: &Value, scope: &Scope<'_>) -> Read<Choice<Prefix>> {
    let not = is_not(compared)?;
    let (values, name) = members(right, scope)?;
    let mut of = Vec::new();
    for value in values {
        match (value, only(value)) {
            (Value::String(text), _) => of.extend(address(text).and_then(|at| prefixes(at, at))?),
            (_, Some(("prefix", about))) => of.push(prefix(about)?),
            (_, Some(("range", ends))) => match ends.as_array().map(Vec::as_slice) {
                Some([Value::String(first), Value::String(last)]) => {
                    of.extend(prefixes(address(first)?, address(last)?)?);
                }
                _ => return unfit("a range that is not known here"),
            },
            _ => return unfit("an address that is not known here"),
        }
    }
    if of.is_empty() && !not {
        return Err(Unfit::Never);
    }
    Ok(Choice { of, not, name })
}

fn prefix(about: &Value) -> Read<Prefix> {
    let found = about["addr"].as_str().map(address).transpose()?;
    let len = about["len"].as_u64().and_then(|len| u8::try_from(len).ok());
    match found.zip(len).and_then(|(found, len)| Prefix::new(found, len)) {
        Some(prefix) => Ok(prefix),
        None => unfit("a prefix that cannot be"),
    }
}

/// Names would have to be looked up.
fn address(text: &str) -> Read<IpAddr> {
    text.parse().or_else(|_| unfit(format!("the address {text}")))
}

/// Numbers, single or as ranges.
fn numbers<T: TryFrom<u64> + Copy + PartialOrd>(
    values: &[&Value],
    named: impl Fn(&str) -> Option<T>,
) -> Read<Vec<RangeInclusive<T>>> {
    let one = |value: &Value| match value {
        Value::String(name) => named(name),
        value => value.as_u64().and_then(|value| T::try_from(value).ok()),
    };
    let mut all = Vec::new();
    for value in values {
        let range = match only(value) {
            Some(("range", ends)) => match ends.as_array().map(Vec::as_slice) {
                Some([first, last]) => one(first).zip(one(last)),
                _ => None,
            },
            _ => one(value).map(|value| (value, value)),
        };
        match range {
            Some((first, last)) if first <= last => all.push(first..=last),
            _ => return unfit("a value that is not known here"),
        }
    }
    Ok(all)
}

fn ports(compared: Compared, right: &Value, scope: &Scope<'_>) -> Read<Choice<RangeInclusive<u16>>> {
    let not = is_not(compared)?;
    let of = numbers(&members(right, scope)?.0, |_| None)?;
    match (of.is_empty(), not) {
        (true, false) => Err(Unfit::Never),
        // Any port, but there must be one.
        (true, true) => Ok(Choice {
            of: vec![0..=65535],
            not: false,
            name: None,
        }),
        _ => Ok(Choice { of, not, name: None }),
    }
}

fn protocols(compared: Compared, right: &Value, scope: &Scope<'_>) -> Read<BTreeSet<u8>> {
    if is_not(compared)? {
        return unfit("our language has no protocols that must not be");
    }
    let found: BTreeSet<u8> = numbers(&members(right, scope)?.0, protocol)?
        .into_iter()
        .flatten()
        .collect();
    if found.is_empty() {
        Err(Unfit::Never)
    } else {
        Ok(found)
    }
}

fn types(compared: Compared, right: &Value, is_v6: bool, scope: &Scope<'_>) -> Read<Vec<RangeInclusive<u8>>> {
    let not = is_not(compared)?;
    let found = numbers(&members(right, scope)?.0, |name| icmp_type(name, is_v6))?;
    let wanted = |kind: &u8| found.iter().any(|range| range.contains(kind)) != not;
    let all: Vec<_> = (0..=255).filter(wanted).map(|kind| kind..=kind).collect();
    if all.is_empty() {
        return Err(Unfit::Never);
    }
    Ok(if not { all } else { found })
}

/// A rate for each source or destination: `add @set { ip saddr limit rate over ... }` or a `meter`.
pub fn rate(kind: &str, value: &Value, scope: &Scope<'_>) -> Read<(Conditions, Rate)> {
    let set = value["set"].as_str().unwrap_or_default();
    if kind == "set" && !scope.sets.is_for_one_rate(&scope.table, set) {
        return unfit("a rate whose set forgets by time, or that several rules share");
    }
    let (key, limit) = if kind == "meter" {
        (&value["key"], &value["stmt"]["limit"])
    } else {
        (&value["elem"], &value["stmt"][0]["limit"])
    };
    if key.get("elem").is_some() || value["stmt"].as_array().is_some_and(|all| all.len() != 1) {
        return unfit("a set whose elements come and go, with more than a rate");
    }
    let (payload, mask) = match only(key) {
        Some(("payload", payload)) => (payload, None),
        Some(("&", pair)) => (&pair[0]["payload"], pair[1].as_str()),
        _ => return unfit("a rate for each of something that our language has not"),
    };
    let layer = match payload["protocol"].as_str() {
        Some("ip") => Layer::V4,
        Some("ip6") => Layer::V6,
        _ => return unfit("a rate for each of something that our language has not"),
    };
    let of = match payload["field"].as_str() {
        Some("saddr") => End::Source,
        Some("daddr") => End::Destination,
        _ => return unfit("a rate for each of something that our language has not"),
    };
    let whole = if layer == Layer::V4 { 32 } else { 128 };
    let len = match (mask, key.get("&").is_some()) {
        (None, false) => whole,
        (Some(mask), _) => mask_len(mask)?,
        (None, true) => return unfit("a mask that is not known here"),
    };
    let (v4_len, v6_len) = if layer == Layer::V4 { (len, 64) } else { (32, len) };
    let is_known = |key: &String| matches!(key.as_str(), "rate" | "burst" | "per" | "inv");
    let is_over = limit["inv"] == true;
    if !is_over || !limit.as_object().is_some_and(|limit| limit.keys().all(is_known)) {
        return unfit("a rate in bytes, or one that is not `over`");
    }
    let seconds = match limit["per"].as_str() {
        Some("second") => 1,
        Some("minute") => 60,
        Some("hour") => 3600,
        _ => 86400,
    };
    let number = limit["rate"].as_u64().unwrap_or_default();
    let burst = limit["burst"].as_u64().and_then(NonZeroU64::new);
    let per_second = NonZeroU64::new(number / seconds).filter(|_| number % seconds == 0);
    match per_second.zip(burst) {
        Some((per_second, burst)) if per_second.get() <= 1_000_000_000 && burst.get() <= 1_000_000_000 => {
            Ok((
                Conditions::of_layer(layer),
                Rate {
                    per_second,
                    burst,
                    of,
                    v4_len,
                    v6_len,
                },
            ))
        }
        _ => unfit("a rate that is no whole number of packets a second"),
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
