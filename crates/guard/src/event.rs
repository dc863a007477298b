//! What the guard did, and why.

use measure::{RuleMade, RuleRefused};
use serde::{Deserialize, Serialize};

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

/// A rule that was made, and what it is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blocked {
    /// When it was made.
    pub time_ns: u64,
    /// When the flood was above the limit for the first time.
    pub since_ns: u64,
    /// Its first packet, or, where that is not known any more, a time before it; none of malformed ones.
    pub first_ns: Option<u64>,
    /// The rule, and why.
    #[serde(flatten)]
    pub made: RuleMade,
}

/// Why none was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    /// When.
    pub time_ns: u64,
    /// What, and why not.
    #[serde(flatten)]
    pub refused: RuleRefused,
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
    /// Packets that it met.
    pub packets: u64,
    /// They were counted one by one; otherwise it is what samples stand for.
    pub counted: bool,
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
