//! Somebody else's rules, as chains.

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

/// All of them, and what is said beside them.
#[derive(Debug, Default)]
pub struct Ruleset {
    pub chains: Vec<Chain>,
    /// Places and texts of what is not rules of filter chains, and why it is left out.
    pub beside: Vec<(String, String, String)>,
    /// The kernel follows connections, and for that puts fragments together before any chain.
    pub defragments: bool,
}
