//! Somebody else's rules, as chains.

use std::collections::HashSet;

use clap::ValueEnum;
use rules::{Layer, Rate, Verdict};

use super::conditions::{Conditions, Read};

/// Which chain is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Hook {
    /// Packets for this machine
    Input,
    /// Packets that it passes on
    Forward,
}

impl Hook {
    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Forward => "forward",
        }
    }
}

/// Which family a text of iptables is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Family {
    /// IPv4: of iptables-save
    Ip,
    /// IPv6: of ip6tables-save
    Ip6,
}

impl Family {
    pub fn layer(self) -> Layer {
        match self {
            Self::Ip => Layer::V4,
            Self::Ip6 => Layer::V6,
        }
    }
}

/// A rule of theirs.
#[derive(Debug)]
pub struct Rule {
    /// Its line or handle.
    pub place: String,
    /// What it says there.
    pub text: String,
    /// What it does with which packets: the first that fits. None does nothing.
    pub parts: Read<Vec<Part>>,
    /// What it does, where it was not understood.
    pub meant: Meant,
}

/// Packets, and what becomes of them.
#[derive(Clone, Debug)]
pub struct Part {
    pub when: Conditions,
    pub then: Target,
}

/// What becomes of packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Decide(Verdict),
    Limit(Rate),
    Return,
    Jump(String),
    Goto(String),
}

/// What a rule that was not understood does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meant {
    Decide(Verdict),
    /// It leads to another chain, or back.
    Elsewhere,
    Other,
}

/// Where packets are judged, or a part of that.
#[derive(Debug)]
pub struct Chain {
    /// `inet filter`, of iptables `ip filter`.
    pub table: String,
    pub name: String,
    /// It sees only these packets.
    pub layer: Option<Layer>,
    /// The kernel asks it for this hook; what becomes of the rest.
    pub base: Option<(String, Verdict)>,
    pub rules: Vec<Rule>,
}

impl Chain {
    /// It lets everything through.
    pub fn does_nothing(&self) -> bool {
        self.rules.is_empty() && !matches!(self.base, Some((_, Verdict::Deny)))
    }
}

/// What is not rules of filter chains, and why it is left out.
#[derive(Debug)]
pub struct Beside {
    pub place: String,
    pub text: String,
    pub why: String,
    /// For chains of other hooks it does not matter.
    pub only: Option<Hook>,
}

/// Whose address is translated, of a connection's first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translated {
    Source,
    Destination,
}

impl Translated {
    /// What a target of iptables translates at this hook before filter chains are asked; a chain without a hook may be
    /// asked from any.
    pub fn by(target: &str, hook: Option<&str>) -> Option<Self> {
        let (of, earlier) = match target {
            "SNAT" | "MASQUERADE" => (Self::Source, "postrouting"),
            "NETMAP" if hook == Some("postrouting") => (Self::Source, "postrouting"),
            "DNAT" | "REDIRECT" | "NETMAP" => (Self::Destination, "prerouting"),
            _ => return None,
        };
        // At the other hooks it is for what the machine itself sends, or comes behind the filter chain.
        hook.is_none_or(|hook| hook == earlier).then_some(of)
    }
}

impl Beside {
    pub fn new(place: String, text: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            place,
            text: text.into(),
            why: why.into(),
            only: None,
        }
    }

    /// A translation that packets meet earlier than the filter chains.
    pub fn translation(place: String, text: impl Into<String>, of: Translated) -> Self {
        match of {
            Translated::Destination => Self::new(
                place,
                text,
                "it changes addresses before the chain that is imported is asked, and here packets have those of the wire",
            ),
            // Sources are changed behind the chains; the answers' destinations are changed back before them.
            Translated::Source => Self {
                only: Some(Hook::Forward),
                ..Self::new(
                    place,
                    text,
                    "it changes addresses of answers before the chain that is imported is asked, and here packets have those of the wire",
                )
            },
        }
    }
}

/// All of them, and what is said beside them.
#[derive(Debug, Default)]
pub struct Ruleset {
    pub chains: Vec<Chain>,
    pub beside: Vec<Beside>,
    /// Families of which the kernel follows connections, and for that puts fragments together before any chain.
    pub defragments: HashSet<Layer>,
}
