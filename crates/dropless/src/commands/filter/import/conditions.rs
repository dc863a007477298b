//! Conditions of somebody else's rule, and what several of them ask together.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

use rules::{Flags, Fragment, Layer, Prefix};

/// Why conditions cannot be taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// No packet fulfils them: the rule is not missed.
    Never,
    /// Our language cannot say it.
    Why(String),
}

/// What was read, or why it cannot be taken over.
pub type Read<T> = Result<T, Unfit>;

/// That our language cannot say it, for this reason.
pub fn unfit<T>(why: impl Into<String>) -> Read<T> {
    Err(Unfit::Why(why.into()))
}

/// A set that a value must be in, or must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice<T> {
    pub of: Vec<T>,
    pub not: bool,
    /// The set's name, where it has one.
    pub name: Option<String>,
}

pub type Addresses = Choice<Prefix>;
pub type Ports = Choice<RangeInclusive<u16>>;

/// What a packet must be; `None` asks for nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    pub layer: Option<Layer>,
    pub protocols: Option<BTreeSet<u8>>,
    pub fragment: Option<Fragment>,
    pub source: Option<Addresses>,
    pub destination: Option<Addresses>,
    pub source_port: Option<Ports>,
    pub destination_port: Option<Ports>,
    pub flags: Option<Flags>,
    pub types: Option<Vec<RangeInclusive<u8>>>,
    /// It looks at the transport header, and never meets a later fragment, be nothing asked of that header.
    pub has_header: bool,
}

impl Conditions {
    pub fn of_layer(layer: Layer) -> Self {
        Self {
            layer: Some(layer),
            ..Self::default()
        }
    }

    pub fn of_protocol(protocol: u8) -> Self {
        Self {
            protocols: Some([protocol].into()),
            ..Self::default()
        }
    }

    /// Both of them.
    pub fn and(&self, other: &Self) -> Read<Self> {
        let both = Self {
            layer: both(self.layer.as_ref(), other.layer.as_ref(), same)?,
            protocols: both(self.protocols.as_ref(), other.protocols.as_ref(), |one, two| {
                filled(one & two, BTreeSet::is_empty)
            })?,
            // None of theirs asks for `Fragment::Any`.
            fragment: both(self.fragment.as_ref(), other.fragment.as_ref(), same)?,
            source: both(self.source.as_ref(), other.source.as_ref(), addresses)?,
            destination: both(self.destination.as_ref(), other.destination.as_ref(), addresses)?,
            source_port: both(self.source_port.as_ref(), other.source_port.as_ref(), ports)?,
            destination_port: both(
                self.destination_port.as_ref(),
                other.destination_port.as_ref(),
                ports,
            )?,
            flags: both(self.flags.as_ref(), other.flags.as_ref(), |one, two| {
                if (one.value ^ two.value) & one.mask & two.mask != 0 {
                    return Err(Unfit::Never);
                }
                Ok(Flags {
                    mask: one.mask | two.mask,
                    value: one.value | two.value,
                })
            })?,
            types: both(self.types.as_ref(), other.types.as_ref(), |one, two| {
                let all = one.iter().flat_map(|one| two.iter().map(move |two| (one, two)));
                let common = all.filter_map(|(one, two)| overlap(one, two)).collect();
                filled(common, Vec::is_empty)
            })?,
            has_header: self.has_header || other.has_header,
        };
        both.check()
    }

    /// The families that the layer and addresses name.
    fn families(&self) -> impl Iterator<Item = Layer> {
        let of = |choice: &Option<Addresses>| {
            let choice = choice.as_ref().filter(|choice| !choice.not)?;
            let is_v6 = choice.of.first()?.is_v6();
            Some(if is_v6 { Layer::V6 } else { Layer::V4 })
        };
        [of(&self.source), of(&self.destination), self.layer]
            .into_iter()
            .flatten()
    }

    /// The family of all packets that they hold for, where it is one.
    pub fn family(&self) -> Option<Layer> {
        self.families().next()
    }

    /// Our language refuses what no packet can be; so do we, before it.
    fn check(self) -> Read<Self> {
        if self.families().any(|family| Some(family) != self.family()) {
            return Err(Unfit::Never);
        }
        let is = |wanted: &[u8]| {
            let one_of = |all: &BTreeSet<u8>| all.iter().any(|protocol| wanted.contains(protocol));
            self.protocols.as_ref().is_none_or(one_of)
        };
        let asks_ports = self.asks_ports();
        if asks_ports && self.protocols.is_some() && is(&[33, 136]) {
            return unfit("our language has no ports of DCCP and UDP-Lite");
        }
        let is_later = self.fragment == Some(Fragment::Later);
        if asks_ports && !is(&[6, 17, 132])
            || self.flags.is_some() && !is(&[6])
            || self.has_header && is_later
        {
            return Err(Unfit::Never);
        }
        if self.asks_header() && is_later {
            return unfit(
                "nft takes bytes of later fragments for a header, and here these have no ports, flags or types",
            );
        }
        Ok(self)
    }

    fn asks_ports(&self) -> bool {
        self.source_port.is_some() || self.destination_port.is_some()
    }

    /// Whether ports, flags or types are asked.
    pub fn asks_header(&self) -> bool {
        self.asks_ports() || self.flags.is_some() || self.types.is_some()
    }

    /// As our language says it; with a blank before each word.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let positive = |choice: &Option<Addresses>| choice.as_ref().is_some_and(|choice| !choice.not);
        let is_told = positive(&self.source) || positive(&self.destination);
        match self.layer {
            Some(Layer::V4) if !is_told => text += " ip4",
            Some(Layer::V6) if !is_told => text += " ip6",
            _ => {}
        }
        if let Some(protocols) = &self.protocols {
            match protocols.iter().collect::<Vec<_>>()[..] {
                [6] => text += " tcp",
                [17] => text += " udp",
                [1] => text += " icmp",
                [58] => text += " icmp6",
                [132] => text += " sctp",
                _ => put(&mut text, "protocol", protocols.iter().map(u8::to_string)),
            }
        }
        match self.fragment {
            Some(Fragment::Any) => text += " fragment",
            Some(Fragment::First) => text += " fragment first",
            Some(Fragment::Later) => text += " fragment later",
            Some(Fragment::Not) => text += " whole",
            None => {}
        }
        for (word, choice) in [("from", &self.source), ("to", &self.destination)] {
            if let Some(choice) = choice {
                let word = choice.word(word);
                match &choice.name {
                    Some(name) => put(&mut text, &word, [format!("@{name}")].into_iter()),
                    None => put(&mut text, &word, choice.of.iter().map(Prefix::to_string)),
                }
            }
        }
        for (word, choice) in [("sport", &self.source_port), ("dport", &self.destination_port)] {
            if let Some(choice) = choice {
                put(&mut text, &choice.word(word), choice.of.iter().map(range));
            }
        }
        if let Some(Flags { mask, value }) = self.flags {
            let _ = write!(text, " flags {}/{}", flag_names(value), flag_names(mask));
        }
        if let Some(types) = &self.types {
            put(&mut text, "type", types.iter().map(range));
        }
        text
    }
}

impl<T> Choice<T> {
    fn word(&self, word: &str) -> String {
        if self.not {
            format!("{word} not")
        } else {
            word.to_owned()
        }
    }
}

const FLAG_NAMES: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];

/// The bit of a TCP flag.
pub fn flag(name: &str) -> Option<u8> {
    let at = FLAG_NAMES
        .iter()
        .position(|known| name.eq_ignore_ascii_case(known))?;
    Some(1 << at)
}

fn flag_names(bits: u8) -> String {
    let names = (0..8)
        .filter(|bit| bits >> bit & 1 == 1)
        .map(|bit| FLAG_NAMES[bit]);
    let names: Vec<_> = names.collect();
    if names.is_empty() {
        "none".into()
    } else {
        names.join(",")
    }
}

fn put(text: &mut String, word: &str, values: impl Iterator<Item = String>) {
    let _ = write!(text, " {word} {}", values.collect::<Vec<_>>().join(","));
}

fn range<T: std::fmt::Display + PartialEq>(range: &RangeInclusive<T>) -> String {
    let (first, last) = (range.start(), range.end());
    if first == last {
        first.to_string()
    } else {
        format!("{first}-{last}")
    }
}

fn both<T: Clone>(one: Option<&T>, two: Option<&T>, join: impl Fn(&T, &T) -> Read<T>) -> Read<Option<T>> {
    match (one, two) {
        (Some(one), Some(two)) => join(one, two).map(Some),
        (one, two) => Ok(one.or(two).cloned()),
    }
}

fn same<T: Copy + PartialEq>(one: &T, two: &T) -> Read<T> {
    if one == two { Ok(*one) } else { Err(Unfit::Never) }
}

fn filled<T>(value: T, is_empty: impl Fn(&T) -> bool) -> Read<T> {
    if is_empty(&value) {
        Err(Unfit::Never)
    } else {
        Ok(value)
    }
}

fn overlap<T: Copy + Ord>(one: &RangeInclusive<T>, two: &RangeInclusive<T>) -> Option<RangeInclusive<T>> {
    let (first, last) = (*one.start().max(two.start()), *one.end().min(two.end()));
    (first <= last).then_some(first..=last)
}

/// Members of both; or the values that are in neither of two sets.
fn join<T: Clone + PartialEq>(
    one: &Choice<T>,
    two: &Choice<T>,
    common: impl Fn(&T, &T) -> Option<T>,
    what: &str,
) -> Read<Choice<T>> {
    if one == two {
        return Ok(one.clone());
    }
    let of: Vec<T> = match (one.not, two.not) {
        (true, true) => one.of.iter().chain(&two.of).cloned().collect(),
        (false, false) => {
            let all = one
                .of
                .iter()
                .flat_map(|one| two.of.iter().map(move |two| (one, two)));
            all.filter_map(|(one, two)| common(one, two)).collect()
        }
        _ => {
            return unfit(format!(
                "it asks for {what} that are in one set and not in another"
            ));
        }
    };
    let name = None;
    let not = one.not;
    filled(Choice { of, not, name }, |choice| choice.of.is_empty())
}

fn addresses(one: &Addresses, two: &Addresses) -> Read<Addresses> {
    let narrower = |one: &Prefix, two: &Prefix| match (one.covers(two), two.covers(one)) {
        (true, _) => Some(*two),
        (_, true) => Some(*one),
        _ => None,
    };
    join(one, two, narrower, "addresses")
}

fn ports(one: &Ports, two: &Ports) -> Read<Ports> {
    join(one, two, overlap, "ports")
}

/// The prefixes that hold exactly the addresses from `first` to `last`, IPv4 in the upper 32 bits.
pub fn prefixes(first: std::net::IpAddr, last: std::net::IpAddr) -> Read<Vec<Prefix>> {
    let (Some(one), Some(two)) = (Prefix::new(first, 0), Prefix::new(last, 0)) else {
        return unfit("a range of addresses that cannot be");
    };
    let bits = |address: std::net::IpAddr| match address {
        std::net::IpAddr::V4(address) => u128::from(address.to_bits()),
        std::net::IpAddr::V6(address) => address.to_bits(),
    };
    let (mut at, last) = (bits(first), bits(last));
    if one.is_v6() != two.is_v6() || at > last {
        return unfit("a range of addresses that cannot be");
    }
    let whole: u8 = if one.is_v6() { 128 } else { 32 };
    let address = |bits: u128| -> std::net::IpAddr {
        if one.is_v6() {
            std::net::Ipv6Addr::from_bits(bits).into()
        } else {
            std::net::Ipv4Addr::from_bits(bits as u32).into()
        }
    };
    let mut all = Vec::new();
    loop {
        // The largest block that begins here and does not reach beyond the end.
        let mut free = at.trailing_zeros().min(u32::from(whole)) as u8;
        let end = |free: u8| at | 1_u128.checked_shl(free.into()).map_or(u128::MAX, |size| size - 1);
        while end(free) > last {
            free -= 1;
        }
        all.extend(Prefix::new(address(at), whole - free));
        match end(free).checked_add(1) {
            Some(next) if next <= last => at = next,
            _ => return Ok(all),
        }
    }
}
