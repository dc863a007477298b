//! The conditions of a rule, word by word.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::Told;
use super::lex::{Cursor, Item, Word};
use super::names::{ETHER_TYPES, FLAGS, PROTOCOLS, TYPES, nearest};
use super::sets::{Sets, in_order};
use crate::facts::Layer;
use crate::rule::{Choice, Flags, Fragment, Network, Vlan};
use crate::{Malformed, Prefix, When};

/// Words that begin a condition, for hints; names of protocols beside them.
const WORDS: [&str; 17] = [
    "from",
    "to",
    "sport",
    "dport",
    "flags",
    "type",
    "protocol",
    "vlan",
    "untagged",
    "fragment",
    "whole",
    "malformed",
    "ip",
    "ip4",
    "ip6",
    "non-ip",
    "ethertype",
];

const ICMP: u8 = 1;
const TCP: u8 = 6;
const ICMPV6: u8 = 58;
/// Protocols that have ports where all of them have: TCP, UDP, SCTP.
const WITH_PORTS: [u8; 3] = [TCP, 17, 132];

/// A rule's conditions so far.
pub(super) struct Conditions<'s> {
    when: When,
    sets: &'s Sets,
    /// Types as they were written: their names go by the protocol.
    types: Option<(u32, Vec<String>)>,
    /// Where conditions that need a certain protocol stand.
    at: Places,
}

#[derive(Default)]
struct Places {
    first: Option<u32>,
    ports: Option<u32>,
    flags: Option<u32>,
    network: Option<u32>,
    malformed: Option<u32>,
}

impl<'s> Conditions<'s> {
    pub(super) fn new(sets: &'s Sets) -> Self {
        Self {
            when: When::default(),
            sets,
            types: None,
            at: Places::default(),
        }
    }

    /// Takes the condition that begins with `word`.
    pub(super) fn add(&mut self, word: Word<'_>, words: &mut Cursor<'_, '_>) -> Told<()> {
        let column = word.column;
        self.at.first.get_or_insert(column);
        match word.text {
            "from" => {
                let found = addresses(words, self.sets)?;
                once(&mut self.when.source, found, word)
            }
            "to" => {
                let found = addresses(words, self.sets)?;
                once(&mut self.when.destination, found, word)
            }
            "sport" => {
                self.at.ports = Some(column);
                let found = ports(words, self.sets)?;
                once(&mut self.when.source_port, found, word)
            }
            "dport" => {
                self.at.ports = Some(column);
                let found = ports(words, self.sets)?;
                once(&mut self.when.destination_port, found, word)
            }
            "flags" => {
                self.at.flags = Some(column);
                let found = flags(&words.list("a TCP flag")?)?;
                once(&mut self.when.flags, found, word)
            }
            "type" => {
                let list = words.list("an ICMP type")?;
                let list = list.iter().map(|item| item.to_string()).collect();
                once(&mut self.types, (column, list), word)
            }
            "protocol" => {
                let found = protocols(&words.list("a protocol")?)?;
                self.protocols(found, word)
            }
            "vlan" => {
                let list = words.list("a VLAN")?;
                let ids = ranges(&list, 4095, "VLAN").map(Vlan::Tagged)?;
                once(&mut self.when.vlan, ids, word)
            }
            "untagged" => once(&mut self.when.vlan, Vlan::Untagged, word),
            "fragment" => {
                let found = match words.peek() {
                    Some("first") => Fragment::First,
                    Some("later") => Fragment::Later,
                    _ => Fragment::Any,
                };
                if found != Fragment::Any {
                    words.next("first or later")?;
                }
                once(&mut self.when.fragment, found, word)
            }
            "whole" => once(&mut self.when.fragment, Fragment::Not, word),
            "malformed" => {
                self.at.malformed = Some(column);
                let found = if words.peek().is_some() {
                    reasons(&words.list("a reason")?)?
                } else {
                    Malformed::ALL.iter().fold(0, |all, reason| all | reason.bit())
                };
                once(&mut self.when.malformed, found, word)
            }
            "ip" => self.network(Network::Ip, word),
            "ip4" => self.network(Network::Version(Layer::V4), word),
            "ip6" => self.network(Network::Version(Layer::V6), word),
            "non-ip" => self.network(Network::NotIp(None), word),
            "ethertype" => {
                let list = words.list("an ether type")?;
                let types = ether_types(&list)?;
                self.network(Network::NotIp(Some(types)), word)
            }
            name => {
                if let Some((_, number)) = PROTOCOLS.iter().find(|(known, _)| *known == name) {
                    return self.protocols(vec![*number], word);
                }
                if let Some((_, number)) = ETHER_TYPES.iter().find(|(known, _)| *known == name) {
                    return self.network(Network::NotIp(Some(vec![*number..=*number])), word);
                }
                Err((column, unknown(name)))
            }
        }
    }

    fn protocols(&mut self, numbers: Vec<u8>, word: Word<'_>) -> Told<()> {
        once(&mut self.when.protocols, numbers, word)
    }

    fn network(&mut self, network: Network, word: Word<'_>) -> Told<()> {
        self.at.network = Some(word.column);
        once(&mut self.when.network, network, word)
    }

    /// Conditions that imply others get them; those that no packet can fulfil together are refused.
    pub(super) fn finish(mut self) -> Told<When> {
        if let Some(column) = self.at.flags {
            let found = self.when.protocols.get_or_insert_with(|| vec![TCP]);
            if *found != [TCP] {
                return Err((column, "only TCP has flags; write `tcp`".into()));
            }
        }
        if let Some((column, types)) = self.types.take() {
            self.when.types = Some(icmp_types(&types, column, self.when.protocols.as_deref())?);
        }
        let when = &self.when;
        let without_ports = |numbers: &Vec<u8>| !numbers.iter().any(|number| WITH_PORTS.contains(number));
        if let Some(column) = self.at.ports {
            if when.protocols.as_ref().is_some_and(without_ports) {
                return Err((
                    column,
                    "this protocol has no ports; tcp, udp and sctp have".into(),
                ));
            }
            if when.fragment == Some(Fragment::Later) {
                return Err((
                    column,
                    "only the first fragment has ports; leave one of both out".into(),
                ));
            }
        }
        let asks_ip = when.protocols.is_some()
            || when.fragment.is_some()
            || when.source.is_some()
            || when.destination.is_some()
            || when.source_port.is_some()
            || when.destination_port.is_some();
        if let (Some(column), Some(Network::NotIp(_)), true) = (self.at.network, &when.network, asks_ip) {
            return Err((
                column,
                "what is not IP has no addresses, protocol, ports or fragments; leave one of both out".into(),
            ));
        }
        if let Some(column) = self.at.malformed {
            let alone = When {
                malformed: when.malformed,
                ..When::default()
            };
            if *when != alone {
                let what = "nothing else that a malformed packet says can be believed: a rule for it has no other condition";
                return Err((column, what.into()));
            }
        }
        Ok(self.when)
    }
}

fn once<T>(place: &mut Option<T>, found: T, word: Word<'_>) -> Told<()> {
    if place.replace(found).is_some() {
        let what = format!(
            "`{}` is asked for twice; join the values with commas, or write two rules",
            word.text
        );
        return Err((word.column, what));
    }
    Ok(())
}

fn unknown(name: &str) -> String {
    let known = WORDS.into_iter().chain(PROTOCOLS.iter().map(|(name, _)| *name));
    let hint = match name {
        "port" => "write sport (source) or dport (destination)".to_owned(),
        "src" | "saddr" | "source" => "write from".to_owned(),
        "dst" | "daddr" | "destination" => "write to".to_owned(),
        "proto" => "write protocol".to_owned(),
        "ipv4" => "write ip4".to_owned(),
        "ipv6" => "write ip6".to_owned(),
        "icmpv6" | "ipv6-icmp" => "write icmp6".to_owned(),
        _ => nearest(name, known).map_or_else(
            || format!("a condition begins with one of: {}", WORDS.join(" ")),
            |near| format!("did you mean {near}?"),
        ),
    };
    format!("`{name}` is no condition; {hint}")
}

/// `not`, if it is there.
fn negated(words: &mut Cursor<'_, '_>) -> Told<bool> {
    let not = words.peek() == Some("not");
    if not {
        words.take("not")?;
    }
    Ok(not)
}

fn addresses(words: &mut Cursor<'_, '_>, sets: &Sets) -> Told<Choice<Prefix>> {
    let not = negated(words)?;
    let list = words.list("an address")?;
    if let [only] = list.as_slice()
        && let Some(name) = only.strip_prefix('@')
    {
        let of = sets.get(name).and_then(super::sets::Set::prefixes);
        return of
            .map(|of| Choice { of, not })
            .map_err(|what| (only.0.column, what));
    }
    let mut all = Vec::new();
    for item in &list {
        let told = |what| (item.0.column, what);
        match item.strip_prefix('@') {
            Some(name) => all.extend(
                sets.get(name)
                    .and_then(super::sets::Set::prefixes)
                    .map_err(told)?
                    .iter(),
            ),
            None => all.push(item.parse().map_err(told)?),
        }
    }
    Ok(Choice {
        of: Arc::new(in_order(all)),
        not,
    })
}

fn ports(words: &mut Cursor<'_, '_>, sets: &Sets) -> Told<Choice<RangeInclusive<u16>>> {
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

fn ranges<T: TryFrom<u32> + PartialOrd + Copy>(
    list: &[Item<'_>],
    most: u32,
    what: &str,
) -> Told<Vec<RangeInclusive<T>>> {
    let each = |item: &Item<'_>| range(item, most, what).map_err(|what| (item.0.column, what));
    list.iter().map(each).collect()
}

fn protocols(list: &[Item<'_>]) -> Told<Vec<u8>> {
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

fn ether_types(list: &[Item<'_>]) -> Told<Vec<RangeInclusive<u16>>> {
    let each = |item: &Item<'_>| match ETHER_TYPES.iter().find(|(name, _)| **name == **item) {
        Some((_, number)) => Ok(*number..=*number),
        None => range(item, 65535, "ether type").map_err(|what| (item.0.column, what)),
    };
    list.iter().map(each).collect()
}

fn reasons(list: &[Item<'_>]) -> Told<u16> {
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
fn flags(list: &[Item<'_>]) -> Told<Flags> {
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

fn icmp_types(list: &[String], column: u32, protocols: Option<&[u8]>) -> Told<Vec<RangeInclusive<u8>>> {
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
