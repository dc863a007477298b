//! A rule: what it does with the packets that fulfil all its conditions.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::facts::{Detail, Facts, Layer, Part};
use crate::{Malformed, Prefix};

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// It passes.
    Allow,
    /// It is dropped.
    Deny,
}

impl Verdict {
    /// As the language says it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The packet's fate is decided.
    Decide(Verdict),
    /// Drops what is above a rate; what is within it goes on to the next rule.
    Limit(Rate),
}

/// So many packets a second from each group of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    /// Packets a second.
    pub per_second: NonZeroU64,
    /// Packets that may come at once.
    pub burst: NonZeroU64,
    /// Whose address makes the group.
    pub of: End,
    /// Bits of an IPv4 address that make the group.
    pub v4_len: u8,
    /// Bits of an IPv6 address that make the group.
    pub v6_len: u8,
}

/// One of a packet's two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// Where it comes from.
    Source,
    /// Where it goes.
    Destination,
}

/// A set that a value must be in, or must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice<T> {
    /// The set, in order.
    pub of: Arc<Vec<T>>,
    /// The value must not be in it.
    pub not: bool,
}

impl<T: PartialOrd> Choice<RangeInclusive<T>> {
    /// Whether this value fulfils it.
    pub fn holds(&self, value: &T) -> bool {
        self.of.iter().any(|range| range.contains(value)) != self.not
    }
}

impl Choice<Prefix> {
    /// Whether this address fulfils it: of IPv6, or of IPv4 in the upper 32 bits.
    pub fn holds_address(&self, address: u128, is_v6: bool) -> bool {
        self.of.iter().any(|prefix| prefix.contains(address, is_v6)) != self.not
    }
}

/// A network layer that a rule asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// IPv4 or IPv6.
    Ip,
    /// One of them.
    Version(Layer),
    /// None of them; any other, or one of these ether types.
    NotIp(Option<Vec<RangeInclusive<u16>>>),
}

/// TCP flags: of those in `mask`, exactly these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    /// Which are looked at.
    pub mask: u8,
    /// How they must be.
    pub value: u8,
}

/// A VLAN that a rule asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vlan {
    /// No tag at all.
    Untagged,
    /// One of these, as the outermost tag.
    Tagged(Vec<RangeInclusive<u16>>),
}

/// Which part of a packet a rule asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragment {
    /// Any fragment.
    Any,
    /// The first one.
    First,
    /// Any but the first.
    Later,
    /// What is no fragment.
    Not,
}

impl Fragment {
    /// Whether this part is one.
    pub const fn holds(self, part: Part) -> bool {
        match self {
            Self::Any => !matches!(part, Part::Whole),
            Self::First => matches!(part, Part::First),
            Self::Later => matches!(part, Part::Later),
            Self::Not => matches!(part, Part::Whole),
        }
    }
}

/// Conditions, all of which a packet must fulfil; `None` asks for nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct When {
    /// A set of [`Malformed`] reasons. A malformed packet fulfils no other condition.
    pub malformed: Option<u16>,
    /// Outermost VLAN.
    pub vlan: Option<Vlan>,
    /// Network layer.
    pub network: Option<Network>,
    /// IP protocols.
    pub protocols: Option<Vec<u8>>,
    /// Fragments.
    pub fragment: Option<Fragment>,
    /// Source address.
    pub source: Option<Choice<Prefix>>,
    /// Destination address.
    pub destination: Option<Choice<Prefix>>,
    /// Source port of TCP, UDP or SCTP.
    pub source_port: Option<Choice<RangeInclusive<u16>>>,
    /// Destination port of TCP, UDP or SCTP.
    pub destination_port: Option<Choice<RangeInclusive<u16>>>,
    /// TCP flags.
    pub flags: Option<Flags>,
    /// Types of ICMP or `ICMPv6`.
    pub types: Option<Vec<RangeInclusive<u8>>>,
}

/// What of a rule's conditions a packet does not fulfil.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmet {
    /// It is not malformed in this way, or is malformed and the rule asks for something else.
    Malformed,
    /// Its VLAN.
    Vlan,
    /// Its network layer.
    Network,
    /// Its protocol.
    Protocol,
    /// Whole, or a fragment.
    Fragment,
    /// Its source address.
    Source,
    /// Its destination address.
    Destination,
    /// Its source port, or it has none.
    SourcePort,
    /// Its destination port, or it has none.
    DestinationPort,
    /// Its TCP flags, or it has none.
    Flags,
    /// Its ICMP type, or it has none.
    Type,
}

impl When {
    /// Checks one condition after the other: the first that this packet does not fulfil.
    pub fn check(&self, packet: &Result<Facts, Malformed>) -> Result<(), Unmet> {
        let facts = match packet {
            Ok(facts) => facts,
            Err(reason) => return self.check_malformed(*reason),
        };
        let asked = |holds: bool, unmet| if holds { Ok(()) } else { Err(unmet) };
        let is_v6 = facts.layer == Layer::V6;
        let is_ip = facts.layer != Layer::Other;
        asked(self.malformed.is_none(), Unmet::Malformed)?;
        asked(
            self.vlan.as_ref().is_none_or(|vlan| vlan.holds(facts.vlan)),
            Unmet::Vlan,
        )?;
        asked(
            self.network.as_ref().is_none_or(|network| network.holds(facts)),
            Unmet::Network,
        )?;
        let one_of = |protocols: &Vec<u8>| is_ip && protocols.contains(&facts.protocol);
        asked(self.protocols.as_ref().is_none_or(one_of), Unmet::Protocol)?;
        let part = |fragment: Fragment| is_ip && fragment.holds(facts.part);
        asked(self.fragment.is_none_or(part), Unmet::Fragment)?;
        let address = |choice: &Option<Choice<Prefix>>, address| {
            choice
                .as_ref()
                .is_none_or(|choice| is_ip && choice.holds_address(address, is_v6))
        };
        asked(address(&self.source, facts.source), Unmet::Source)?;
        asked(address(&self.destination, facts.destination), Unmet::Destination)?;
        let has_port = |choice: &Option<Choice<RangeInclusive<u16>>>, port: Option<u16>| {
            choice
                .as_ref()
                .is_none_or(|choice| port.is_some_and(|port| choice.holds(&port)))
        };
        asked(
            has_port(&self.source_port, facts.ports.map(|ports| ports.0)),
            Unmet::SourcePort,
        )?;
        asked(
            has_port(&self.destination_port, facts.ports.map(|ports| ports.1)),
            Unmet::DestinationPort,
        )?;
        let flags =
            |flags: Flags| matches!(facts.detail, Detail::Flags(set) if set & flags.mask == flags.value);
        asked(self.flags.is_none_or(flags), Unmet::Flags)?;
        let types = |types: &Vec<RangeInclusive<u8>>| matches!(facts.detail, Detail::Type(kind) if types.iter().any(|range| range.contains(&kind)));
        asked(self.types.as_ref().is_none_or(types), Unmet::Type)
    }

    /// Nothing that a malformed packet says of itself is believed.
    fn check_malformed(&self, reason: Malformed) -> Result<(), Unmet> {
        let is_asked = self.malformed.is_some_and(|reasons| reasons & reason.bit() != 0);
        if is_asked || *self == Self::default() {
            Ok(())
        } else {
            Err(Unmet::Malformed)
        }
    }
}

impl Vlan {
    /// Whether a packet with this outermost VLAN fulfils it.
    pub fn holds(&self, vlan: Option<u16>) -> bool {
        match self {
            Self::Untagged => vlan.is_none(),
            Self::Tagged(ranges) => vlan.is_some_and(|id| ranges.iter().any(|range| range.contains(&id))),
        }
    }
}

impl Network {
    fn holds(&self, facts: &Facts) -> bool {
        match self {
            Self::Ip => facts.layer != Layer::Other,
            Self::Version(layer) => facts.layer == *layer,
            Self::NotIp(types) => {
                let one_of = |types: &Vec<RangeInclusive<u16>>| {
                    types.iter().any(|range| range.contains(&facts.ether_type))
                };
                facts.layer == Layer::Other && types.as_ref().is_none_or(one_of)
            }
        }
    }
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Where it stands: the file, as its number among those that were read, and the line from 1.
    pub place: (usize, u32),
    /// The rule in its one spelling: what its counters go by, from one rule set to the next.
    pub text: String,
    /// What it does.
    pub action: Action,
    /// With which packets.
    pub when: When,
}

/// Rules in their order: the first one that decides counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSet {
    /// The files that were read, the first one named by the user.
    pub files: Vec<String>,
    /// The rules.
    pub rules: Vec<Rule>,
    /// What becomes of packets that no rule decides.
    pub default: Verdict,
}

/// Where a rule stands: `edge.rules:7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'s> {
    /// The file.
    pub file: &'s str,
    /// The line, from 1.
    pub line: u32,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.file, self.line)
    }
}

impl RuleSet {
    /// Where one of its rules stands.
    pub fn place(&self, rule: &Rule) -> Place<'_> {
        let (file, line) = rule.place;
        Place {
            file: &self.files[file],
            line,
        }
    }

    /// All reasons that some rule asks for.
    pub fn reasons(&self) -> u16 {
        let asked = self.rules.iter().filter_map(|rule| rule.when.malformed);
        asked.fold(0, |all, reasons| all | reasons)
    }

    /// The rules of all these sets, one after the other, with the last one's default.
    #[must_use]
    pub fn joined(sets: &[&Self]) -> Self {
        let mut all = Self {
            files: Vec::new(),
            rules: Vec::new(),
            default: sets.last().map_or(Verdict::Allow, |set| set.default),
        };
        for set in sets {
            let files = all.files.len();
            all.files.extend(set.files.iter().cloned());
            all.rules.extend(set.rules.iter().cloned().map(|mut rule| {
                rule.place.0 += files;
                rule
            }));
        }
        all
    }
}
