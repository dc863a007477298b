//! What the guard did, and why.

use serde::{Deserialize, Serialize};

use crate::Class;

/// Something for the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    /// A rule was made.
    Blocked(Blocked),
    /// A flood was seen, and no rule made.
    Refused(Refused),
    /// A rule was taken back.
    Expired(Expired),
}

/// Why a rule was made, and what it is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blocked {
    /// When it was made.
    pub time_ns: u64,
    /// When the flood was above the limit for the first time.
    pub since_ns: u64,
    /// Its first packet, or, where that is not known any more, a time before it; none of malformed ones.
    pub first_ns: Option<u64>,
    /// The rule.
    pub rule: String,
    /// Where the flood goes; none for malformed packets.
    pub destination: Option<String>,
    /// What it is made of.
    pub class: Class,
    /// Packets a second of this class for this destination.
    pub rate_pps: u64,
    /// Bits a second.
    pub rate_bps: u64,
    /// What was too much, in packets a second.
    pub limit_pps: Option<u64>,
    /// What was too much, in bits a second.
    pub limit_bps: Option<u64>,
    /// What is usual, where that is known; packets a second.
    pub usual_pps: Option<u64>,
    /// Of the flood's packets, the share that the rule meets.
    pub explained: f64,
    /// Of the legitimate packets that are known for the destination, the share that the rule meets.
    pub cost: f64,
    /// How many legitimate packets that was estimated by.
    pub cost_by: u64,
}

/// Why none was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    /// When.
    pub time_ns: u64,
    /// The rule, if one was found.
    pub rule: Option<String>,
    /// Where the flood goes.
    pub destination: Option<String>,
    /// What it is made of.
    pub class: Class,
    /// Packets a second.
    pub rate_pps: u64,
    /// Why.
    pub why: String,
}

/// What a rule did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expired {
    /// When it was taken back.
    pub time_ns: u64,
    /// The rule.
    pub rule: String,
    /// How long it was there; ns.
    pub lasted_ns: u64,
    /// Packets that it met, by what samples stand for.
    pub packets: u64,
    /// Of them, those of sources that spoke with the destination before the flood.
    pub known_packets: u64,
    /// Why it was taken back.
    pub why: Over,
}

/// Why a rule was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Over {
    /// What it met became little.
    Quiet,
    /// A wider one stands in its place.
    Wider,
}
