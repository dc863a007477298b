//! What packets of a flood have in common, as conditions of a rule.

use std::fmt::Write as _;

use rules::{Detail, Facts, Flags, ICMP, ICMPV6, Layer, Part, SCTP, TCP, UDP};

const ALL_FLAGS: u8 = 0xFF;
/// That a TCP packet opens a connection.
const OPENS: Flags = Flags {
    mask: 0x12,
    value: 0x02,
};

/// Conditions beside addresses; `None` asks for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape {
    pub protocol: Option<u8>,
    /// A fragment, of either kind.
    pub is_fragment: bool,
    /// TCP flags, as mask and value.
    pub flags: Option<(u8, u8)>,
    /// Type of ICMP.
    pub kind: Option<u8>,
    pub source_port: Option<u16>,
    pub destination_port: Option<u16>,
}

impl Shape {
    /// All shapes that a packet has, of those that are considered: always with its protocol.
    pub fn of(facts: &Facts, mut take: impl FnMut(Self)) {
        let base = Self {
            protocol: Some(facts.protocol),
            is_fragment: facts.part != Part::Whole,
            ..Self::default()
        };
        let (mut flags, mut kinds) = (vec![None], vec![None]);
        match facts.detail {
            Detail::Flags(set) => {
                if set & OPENS.mask == OPENS.value {
                    flags.push(Some((OPENS.mask, OPENS.value)));
                }
                flags.push(Some((ALL_FLAGS, set)));
            }
            Detail::Type(kind) => kinds.push(Some(kind)),
            Detail::None => {}
        }
        let has_ports = [TCP, UDP, SCTP].contains(&facts.protocol);
        let ports = facts.ports.filter(|_| has_ports);
        let either = |port: Option<u16>| [None, port].into_iter().take(1 + usize::from(port.is_some()));
        for flags in &flags {
            for kind in &kinds {
                for source_port in either(ports.map(|ports| ports.0)) {
                    for destination_port in either(ports.map(|ports| ports.1)) {
                        take(Self {
                            flags: *flags,
                            kind: *kind,
                            source_port,
                            destination_port,
                            ..base
                        });
                    }
                }
            }
        }
    }

    /// How many conditions it has.
    pub fn conditions(&self) -> u32 {
        let exact = self.flags.map_or(0, |(mask, _)| 1 + u32::from(mask == ALL_FLAGS));
        u32::from(self.protocol.is_some())
            + u32::from(self.is_fragment)
            + exact
            + u32::from(self.kind.is_some())
            + u32::from(self.source_port.is_some())
            + u32::from(self.destination_port.is_some())
    }

    /// Whether a packet has it.
    pub fn holds(&self, facts: &Facts) -> bool {
        facts.layer != Layer::Other
            && self.protocol.is_none_or(|protocol| protocol == facts.protocol)
            && (!self.is_fragment || facts.part != Part::Whole)
            && self
                .flags
                .is_none_or(|(mask, value)| matches!(facts.detail, Detail::Flags(set) if set & mask == value))
            && self.kind.is_none_or(|kind| facts.detail == Detail::Type(kind))
            && self
                .source_port
                .is_none_or(|port| facts.ports.is_some_and(|ports| ports.0 == port))
            && self
                .destination_port
                .is_none_or(|port| facts.ports.is_some_and(|ports| ports.1 == port))
    }

    /// Whether every packet of `other` has it, as far as conditions tell.
    pub fn covers(&self, other: &Self) -> bool {
        fn asks<T: PartialEq + Copy>(one: Option<T>, other: Option<T>) -> bool {
            one.is_none() || one == other
        }
        asks(self.protocol, other.protocol)
            && (!self.is_fragment || other.is_fragment)
            && asks(self.kind, other.kind)
            && asks(self.source_port, other.source_port)
            && asks(self.destination_port, other.destination_port)
            && self.flags.is_none_or(|(mask, value)| {
                other
                    .flags
                    .is_some_and(|(others, set)| mask & others == mask && set & mask == value)
            })
    }

    /// As the language says it, with a blank before each word; addresses come from elsewhere.
    pub fn text(&self) -> String {
        let mut text = String::new();
        match self.protocol {
            Some(ICMP) => text += " icmp",
            Some(TCP) => text += " tcp",
            Some(UDP) => text += " udp",
            Some(ICMPV6) => text += " icmp6",
            Some(number) => drop(write!(text, " protocol {number}")),
            None => {}
        }
        if self.is_fragment {
            text += " fragment";
        }
        match self.flags {
            Some((mask, value)) if mask == OPENS.mask && value == OPENS.value => text += " flags syn/syn,ack",
            Some((mask, value)) => drop(write!(text, " flags {}/{}", names(value), names(mask))),
            None => {}
        }
        if let Some(kind) = self.kind {
            let _ = write!(text, " type {kind}");
        }
        if let Some(port) = self.source_port {
            let _ = write!(text, " sport {port}");
        }
        if let Some(port) = self.destination_port {
            let _ = write!(text, " dport {port}");
        }
        text
    }
}

fn names(bits: u8) -> String {
    const NAMES: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];
    let set: Vec<_> = (0..8)
        .filter(|bit| bits >> bit & 1 == 1)
        .map(|bit| NAMES[bit])
        .collect();
    if set.is_empty() {
        "none".into()
    } else {
        set.join(",")
    }
}

impl Shape {
    /// Some order, so that the same flood is always explained in the same way.
    pub fn order(&self) -> impl Ord + use<> {
        (
            self.protocol,
            self.is_fragment,
            self.flags,
            self.kind,
            self.source_port,
            self.destination_port,
        )
    }
}
