//! What a `match` of nftables asks.

use rules::{Flags, Fragment, Layer};
use serde_json::Value;

use super::super::common::NOT_LATER;
use super::super::conditions::{Conditions, Read, Unfit, unfit};
use super::values::{Compared, addresses, bits, interfaces, ports, protocols, types};
use super::{Scope, only};

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
            let (number, usual) = if is_v6 { (58, Layer::V6) } else { (1, Layer::V4) };
            when = Conditions {
                // Behind conditions of a family nft asks for this protocol number in that family, though nobody sends it.
                layer: scope.family.get().or(Some(usual)),
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
            interfaces(compared, right, scope)?;
            Ok(vec![Conditions::default()])
        }
        other => unfit(format!("`meta {other}` is not in our language")),
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
                Compared::Is => Ok(NOT_LATER.map(of).into()),
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
