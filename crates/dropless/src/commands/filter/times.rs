//! When the packets of a file came, for rates.

use capture::input::Packet;
use report::number::counted;
use rules::{Action, RuleSet};

/// The earliest time that there is, 146 years before 1970: rates count from 0 on, and a burst has room above the latest.
const EARLIEST_NS: i64 = -(1 << 62);

/// The times of packets, one after another.
pub struct Times {
    pub has_rates: bool,
    last_ns: u64,
    timeless: u64,
}

impl Times {
    pub fn new(set: &RuleSet) -> Self {
        let is_rate = |rule: &rules::Rule| matches!(rule.action, Action::Limit(_));
        Self {
            has_rates: set.rules.iter().any(is_rate),
            last_ns: 0,
            timeless: 0,
        }
    }

    /// A packet's time on the clock of rates; without one, that of the packet before.
    pub fn of(&mut self, packet: &Packet<'_>) -> u64 {
        match packet.time_ns {
            Some(time_ns) => self.last_ns = time_ns.max(EARLIEST_NS).abs_diff(EARLIEST_NS),
            None => self.timeless += 1,
        }
        self.last_ns
    }

    /// Packets whose time a rate missed.
    pub const fn missing(&self) -> u64 {
        if self.has_rates { self.timeless } else { 0 }
    }
}

/// What is said of packets whose time a rate missed.
pub fn told(missing: u64) -> String {
    match missing {
        0 => String::new(),
        1 => "; 1 packet has no time: rates go by that of the packet before".into(),
        more => format!(
            "; {} have no time: rates go by that of the packet before",
            counted(more, "packet")
        ),
    }
}
