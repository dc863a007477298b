//! What conditions ask for: lists of addresses, ports, protocols, flags and the like.

use std::ops::RangeInclusive;
use std::sync::Arc;

use wire::checksum::{ICMP, ICMPV6};
use wire::headers::{TYPE_IPV4, TYPE_IPV6};

use super::Told;
use super::lex::{Cursor, Item};
use super::names::{ETHER_TYPES, FLAGS, PROTOCOLS, TYPES, nearest};
use super::sets::{Set, Sets, in_order};
use crate::rule::{Choice, Flags};
use crate::{Malformed, Prefix};

/// `not`, if it is there.
pub(super) fn negated(words: &mut Cursor<'_, '_>) -> Told<bool> {
    let not = words.peek() == Some("not");
    if not {
        words.take("not")?;
    }
    Ok(not)
}

pub(super) fn addresses(words: &mut Cursor<'_, '_>, sets: &Sets) -> Told<Choice<Prefix>> {
    let not = negated(words)?;
    let list = words.list("an address")?;
    let single = match list.as_slice() {
        [only] => only.strip_prefix('@').map(|name| (only, name)),
        _ => None,
    };
    if let Some((only, name)) = single {
        let of = sets.get(name).and_then(Set::prefixes);
        return of
            .map(|of| Choice { of, not })
            .map_err(|what| (only.0.column, what));
    }
    let mut all = Vec::new();
    for item in &list {
        let told = |what| (item.0.column, what);
        match item.strip_prefix('@') {
            Some(name) => all.extend(sets.get(name).and_then(Set::prefixes).map_err(told)?.iter()),
            None => all.push(item.parse().map_err(told)?),
        }
    }
    Ok(Choice {
        of: Arc::new(in_order(all)),
        not,
    })
}

pub(super) fn ports(words: &mut Cursor<'_, '_>, sets: &Sets) -> Told<Choice<RangeInclusive<u16>>> {
    let not = negated(words)?;
    let mut all = Vec::new();
    for item in words.list("a port")? {
        let told = |what| (item.0.column, what);
        match item.strip_prefix('@') {
            Some(name) => {
                let found = sets
                    .get(name)
                    .and_then(|set| set.each(|value| range(value, 65535, "port")));
                all.extend(found.map_err(told)?);
            }
            None => all.push(range(&item, 65535, "port").map_err(told)?),
        }
    }
    all.sort_by_key(|range| (*range.start(), *range.end()));
    Ok(Choice {
        of: Arc::new(all),
        not,
    })
}

/// A number up to `most`, decimal or hexadecimal.
pub(super) fn number(text: &str, most: u32) -> Option<u32> {
    let value = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => text.parse().ok()?,
    };
    (value <= most).then_some(value)
}

/// `80` or `8000-8100`.
fn range<T: TryFrom<u32> + PartialOrd + Copy>(
    text: &str,
    most: u32,
    what: &str,
) -> Result<RangeInclusive<T>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let bound = |text| number(text, most).and_then(|value| T::try_from(value).ok());
    let bad = || format!("`{text}` is no {what}: a number up to {most}, or two with a `-` between them");
    let (first, last) = bound(first).zip(bound(last)).ok_or_else(bad)?;
    if first > last {
        return Err(format!("`{text}` holds nothing: the smaller {what} comes first"));
    }
    Ok(first..=last)
}

pub(super) fn ranges<T: TryFrom<u32> + PartialOrd + Copy>(
    list: &[Item<'_>],
    most: u32,
    what: &str,
) -> Told<Vec<RangeInclusive<T>>> {
    let each = |item: &Item<'_>| range(item, most, what).map_err(|what| (item.0.column, what));
    list.iter().map(each).collect()
}

pub(super) fn protocols(list: &[Item<'_>]) -> Told<Vec<u8>> {
    let each = |item: &Item<'_>| {
        let named = PROTOCOLS
            .iter()
            .find(|(name, _)| **name == **item)
            .map(|(_, number)| *number);
        named
            .or_else(|| number(item, 255).map(|number| number as u8))
            .ok_or_else(|| {
                let hint = nearest(item, PROTOCOLS.iter().map(|(name, _)| *name)).map_or_else(
                    || "a number up to 255 is one".to_owned(),
                    |near| format!("did you mean {near}?"),
                );
                (item.0.column, format!("`{}` is no protocol; {hint}", &**item))
            })
    };
    let mut numbers = list.iter().map(each).collect::<Told<Vec<u8>>>()?;
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

pub(super) fn ether_types(list: &[Item<'_>]) -> Told<Vec<RangeInclusive<u16>>> {
    let each = |item: &Item<'_>| {
        if let Some((_, number)) = ETHER_TYPES.iter().find(|(name, _)| **name == **item) {
            return Ok(*number..=*number);
        }
        let told = |what| (item.0.column, what);
        let found = range(item, 65535, "ether type").map_err(told)?;
        // A packet of these is one of IP, or malformed: nothing would be met.
        for (ip, name, word) in [(TYPE_IPV4, "IPv4", "ip4"), (TYPE_IPV6, "IPv6", "ip6")] {
            if found == (ip..=ip) {
                return Err(told(format!(
                    "`{}` is {name}, and an ether type is asked only of what is not IP: write {word}",
                    &**item
                )));
            }
        }
        Ok(found)
    };
    list.iter().map(each).collect()
}

pub(super) fn reasons(list: &[Item<'_>]) -> Told<u16> {
    list.iter().try_fold(0, |all, item| {
        let found = Malformed::ALL.iter().find(|reason| reason.name() == &**item);
        found.map(|reason| all | reason.bit()).ok_or_else(|| {
            let names = || Malformed::ALL.iter().map(|reason| reason.name());
            let hint = nearest(item, names()).map_or_else(
                || format!("these are: {}", names().collect::<Vec<_>>().join(" ")),
                |near| format!("did you mean {near}?"),
            );
            (item.0.column, format!("`{}` is no reason; {hint}", &**item))
        })
    })
}

/// `syn`: it is set; `syn/syn,ack`: of these two, only it.
pub(super) fn flags(list: &[Item<'_>]) -> Told<Flags> {
    let (mut value, mut mask, mut behind) = (0, 0, false);
    for item in list {
        for (place, name) in item.split('/').enumerate() {
            if place > 0 && std::mem::replace(&mut behind, true) {
                return Err((
                    item.0.column,
                    "one `/` only: the flags that are set, then those that are looked at".into(),
                ));
            }
            let bit = FLAGS
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, bit)| *bit);
            let bit = bit.or((name == "none").then_some(0)).ok_or_else(|| {
                let names = FLAGS.map(|(name, _)| name).join(" ");
                (
                    item.0.column,
                    format!("`{name}` is no TCP flag; these are: {names} none"),
                )
            })?;
            if behind {
                mask |= bit;
            } else {
                value |= bit;
            }
        }
    }
    if !behind {
        mask = if value == 0 { 0xFF } else { value };
    }
    if value & !mask != 0 {
        return Err((
            list[0].0.column,
            "a flag that is asked for must be among those that are looked at, behind the `/`".into(),
        ));
    }
    Ok(Flags { mask, value })
}

pub(super) fn icmp_types(
    list: &[String],
    column: u32,
    protocols: Option<&[u8]>,
) -> Told<Vec<RangeInclusive<u8>>> {
    let is_v6 = match protocols {
        Some([ICMP]) => false,
        Some([ICMPV6]) => true,
        _ => {
            return Err((
                column,
                "types are those of ICMP; write `icmp type ...` or `icmp6 type ...`".into(),
            ));
        }
    };
    let each = |text: &String| {
        let named = TYPES.iter().find(|(name, _, _)| name == text);
        match named.map(|(_, v4, v6)| if is_v6 { *v6 } else { *v4 }) {
            Some(Some(number)) => Ok(number..=number),
            Some(None) => Err((column, format!("`{text}` is a type of icmp6"))),
            None => range(text, 255, "ICMP type").map_err(|what| (column, what)),
        }
    };
    list.iter().map(each).collect()
}
