//! What stands on the right of a `match`: addresses, ports, flags, sets of them.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use rules::Prefix;
use serde_json::Value;

use super::super::common::{device, other_types};
use super::super::conditions::{Choice, Read, Unfit, flag, prefixes, unfit};
use super::super::names::{icmp_type, protocol};
use super::sets::does_nothing;
use super::{REST, Scope, only};

/// How a value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    Is,
    IsNot,
    /// Any of these bits.
    Any,
    /// None of these bits.
    None,
}

/// A flag, several in a list or joined by `|`, or a number.
pub fn bits(value: &Value) -> Read<u8> {
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
        all.push(match only(member) {
            Some(("elem", about)) if about.get("timeout").is_some() || about.get("expires").is_some() => {
                return unfit("elements of a set that come and go");
            }
            Some(("elem", about)) => {
                let mut keys = about.as_object().into_iter().flat_map(|about| about.keys());
                if let Some(key) = keys.find(|key| *key != "val" && !does_nothing(key)) {
                    return unfit(format!("elements of a set that have a `{key}`"));
                }
                &about["val"]
            }
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

/// Whether packets of the interface that the rules are for are meant.
pub fn interfaces(compared: Compared, right: &Value, scope: &Scope<'_>) -> Read<()> {
    let not = is_not(compared)?;
    let mut is_among = false;
    for value in members(right, scope)?.0 {
        let Some(name) = value.as_str() else {
            return unfit("an interface without a name");
        };
        match device((name, REST), true, scope.device) {
            Err(Unfit::Never) => {}
            found => {
                found?;
                is_among = true;
            }
        }
    }
    if is_among == not {
        Err(Unfit::Never)
    } else {
        Ok(())
    }
}

pub fn addresses(compared: Compared, right: &Value, scope: &Scope<'_>) -> Read<Choice<Prefix>> {
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

pub fn ports(compared: Compared, right: &Value, scope: &Scope<'_>) -> Read<Choice<RangeInclusive<u16>>> {
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

pub fn protocols(compared: Compared, right: &Value, scope: &Scope<'_>) -> Read<BTreeSet<u8>> {
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

pub fn types(
    compared: Compared,
    right: &Value,
    is_v6: bool,
    scope: &Scope<'_>,
) -> Read<Vec<RangeInclusive<u8>>> {
    let not = is_not(compared)?;
    let found = numbers(&members(right, scope)?.0, |name| icmp_type(name, is_v6))?;
    let wanted = if not { other_types(&found) } else { found };
    if wanted.is_empty() {
        return Err(Unfit::Never);
    }
    Ok(wanted)
}
