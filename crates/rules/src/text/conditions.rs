//! The conditions of a rule, word by word.

use wire::checksum::{SCTP, TCP, UDP};

use super::Told;
use super::lex::{Cursor, Word};
use super::names::{ETHER_TYPES, PROTOCOLS, nearest};
use super::sets::Sets;
use super::values::{addresses, ether_types, flags, icmp_types, ports, protocols, ranges, reasons};
use crate::facts::Layer;
use crate::rule::{Fragment, Network, Vlan};
use crate::{Action, Malformed, When};

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

/// Protocols that have ports where all of them have.
const WITH_PORTS: [u8; 3] = [TCP, UDP, SCTP];

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

    /// Conditions that imply others get them; those that no packet can fulfil together, or under which `action` does nothing,
    /// are refused.
    pub(super) fn finish(mut self, action: &Action) -> Told<When> {
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
        if matches!(action, Action::Limit(_)) {
            self.may_be_limited()?;
        }
        Ok(self.when)
    }

    /// Packets that no address is believed of are in no group of a rate, and so always within it: such a rule would look like
    /// a limit, and be none.
    fn may_be_limited(&self) -> Told<()> {
        let of_other = self
            .at
            .network
            .filter(|_| matches!(self.when.network, Some(Network::NotIp(_))));
        let (column, why) = match (self.at.malformed, of_other) {
            (Some(column), _) => (column, "the address of a malformed packet is not believed"),
            (None, Some(column)) => (column, "what is not IP has no address"),
            (None, None) => return Ok(()),
        };
        let what = format!(
            "a rate is for each address, and {why}: this one would limit nothing; write deny or allow"
        );
        Err((column, what))
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
