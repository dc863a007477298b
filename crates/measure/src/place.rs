//! The places where packets are lost: who owns each, and whether it saw the packets themselves.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Whose a place is: who has to change something so that it loses no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// The path between the ends.
    #[default]
    Path,
    /// The far end: a reflector, its kernel or its port.
    FarSide,
    /// Our own sending side.
    Sender,
    /// Our own receiving side.
    Receiver,
    /// Nobody's: asked for, by a fault, a rule or a run that only sends.
    Purpose,
}

/// How much a place knows of what it counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// It saw packets of this run.
    Exact,
    /// It counted frames: a stranger's may be among them, or what was no loss.
    #[default]
    AtMost,
}

/// A place where packets are lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its name, as in `ledger.json`.
    pub name: Cow<'static, str>,
    /// Whose it is.
    pub owner: Owner,
    /// How much it knows.
    pub precision: Precision,
    /// What it means, in a few words.
    pub meaning: &'static str,
    /// Shown even where it lost nothing.
    pub always: bool,
}

/// What came back after the drain time.
pub const LATE: &str = "late";
/// What came back older than the sequence window.
pub const TOO_OLD: &str = "too_old";
/// What came back damaged.
pub const CORRUPT: &str = "corrupt";
/// The place of packets nobody waits for (a run that only sends).
pub const NOT_AWAITED: &str = "not_awaited";
/// What the fault injector dropped.
pub const FAULT_DROP: &str = "fault_drop";
/// What found no place in the ring of a capture.
pub const RING_FULL: &str = "ring_full";
/// What the filter of a capture refused.
pub const FILTERED: &str = "filtered";
/// What belongs to flows that are not in the sample of a capture.
pub const SAMPLED_OUT: &str = "sampled_out";
/// What came after as many as were to be captured.
pub const UNWANTED: &str = "unwanted";
/// What of a capture is longer than the port carries.
pub const TOO_LONG: &str = "too_long";
/// What of it is shorter than the head of a frame.
pub const TOO_SHORT: &str = "too_short";
/// What of it is no frame of Ethernet.
pub const NOT_ETHERNET: &str = "not_ethernet";
/// What of it was left out because it was captured in part.
pub const SNAPPED: &str = "snapped";
/// What was read and not sent because the run was ended.
pub const CUT_OFF: &str = "cut_off";
/// What a tap on another run did not copy, since that run's worker had no time for it.
pub const TAP_BUDGET: &str = "tap_budget";
/// What a tap on another run did not copy, since its ring was full.
pub const TAP_FULL: &str = "tap_full";
/// What was still queued when the run ended.
pub const HELD: &str = "held";
/// What a driver still had in its transmit ring then.
pub const TX_HELD: &str = "tx_held";
/// What a port took and failed to send.
pub const TX_ERROR: &str = "tx_error";
/// What an interface threw away after the port had sent it.
pub const TX_DROPPED: &str = "tx_dropped";
/// What a port could not read: it was damaged on the way.
pub const RX_ERROR: &str = "rx_error";
/// What a port had no room for in its receive ring.
pub const RX_MISSED: &str = "rx_missed";
/// What a port had no buffer for.
pub const RX_NO_BUFFER: &str = "rx_nombuf";
/// What a rule denied.
pub const DENIED: &str = "denied";
/// What found the transmit queue full for too long.
pub const TX_FULL: &str = "tx_full";
/// How long frames wait for a place in a full transmit queue, before they are given up, ns.
pub const HOLD_NS: u64 = 100_000_000;
/// What came in several buffers, and the other port sends none such, or was cut by the receiving port.
pub const OVERSIZED: &str = "oversized";
/// What was addressed to the host, and went there.
pub const TO_KERNEL: &str = "to_kernel";
/// What was addressed to the host, whose tap did not take it, or for which the worker had no time.
pub const KERNEL_FULL: &str = "kernel_full";
/// What a reflector got that is neither IPv4 nor IPv6.
pub const NOT_IP: &str = "not_ip";
/// What it got that is IP, and no UDP.
pub const NOT_UDP: &str = "not_udp";
/// What it got that is UDP, and no probe (`--only-ours`).
pub const NOT_OURS: &str = "not_ours";
/// What begins the names of a reflector's places.
const REFLECTOR: &str = "reflector_";

/// The name of this place of a reflector.
pub fn of_reflector(name: &str) -> String {
    format!("{REFLECTOR}{name}")
}

const fn place(
    name: &'static str,
    owner: Owner,
    precision: Precision,
    meaning: &'static str,
    always: bool,
) -> Place {
    Place {
        name: Cow::Borrowed(name),
        owner,
        precision,
        meaning,
        always,
    }
}

use Owner::{FarSide, Path, Purpose, Receiver, Sender};
use Precision::{AtMost, Exact};

/// All places known by name, in the order in which they are shown. Those of a reflector come after `fault_drop`.
pub static PLACES: [Place; 31] = [
    place(LATE, Path, Exact, "returned after the drain time", true),
    place(TOO_OLD, Path, AtMost, "older than the sequence window", true),
    place(CORRUPT, Path, Exact, "returned damaged", true),
    place(FAULT_DROP, Purpose, Exact, "dropped on purpose (--fault)", false),
    place(
        RING_FULL,
        Receiver,
        Exact,
        "a consumer still needed what was in the ring",
        false,
    ),
    place(
        TAP_BUDGET,
        Receiver,
        Exact,
        "the tapped worker had no time to copy it",
        false,
    ),
    place(
        TAP_FULL,
        Receiver,
        Exact,
        "the tap was full: not read in time",
        false,
    ),
    place(
        FILTERED,
        Purpose,
        Exact,
        "refused by the filter (--filter)",
        false,
    ),
    place(
        SAMPLED_OUT,
        Purpose,
        Exact,
        "of a flow that is not in the sample (--sample)",
        false,
    ),
    place(
        UNWANTED,
        Purpose,
        Exact,
        "came after as many as were wanted",
        false,
    ),
    place(TOO_LONG, Sender, Exact, "longer than the port carries", false),
    place(
        TOO_SHORT,
        Sender,
        Exact,
        "shorter than the head of a frame",
        false,
    ),
    place(NOT_ETHERNET, Sender, Exact, "no frame of Ethernet", false),
    place(
        SNAPPED,
        Purpose,
        Exact,
        "captured in part (--snapped skip)",
        false,
    ),
    place(CUT_OFF, Purpose, Exact, "read when the run was ended", false),
    place(DENIED, Purpose, Exact, "denied by a rule (--rules)", false),
    // Neighbour discovery, ARP for others: whoever drops these has lost no probe.
    place(NOT_IP, Purpose, Exact, "neither IPv4 nor IPv6: no probe", false),
    place(NOT_UDP, Purpose, Exact, "no UDP: no probe", false),
    place(NOT_OURS, Purpose, Exact, "no probe (--only-ours)", false),
    place(
        TO_KERNEL,
        Purpose,
        Exact,
        "addressed to this host (--kernel)",
        false,
    ),
    place(
        KERNEL_FULL,
        Sender,
        Exact,
        "the tap to this host was full, or had no time left",
        false,
    ),
    place(
        OVERSIZED,
        Sender,
        Exact,
        "in several buffers or longer than the other port sends, or cut by a packet: port (switch offloads off: ethtool -K IF tso off gso off gro off)",
        false,
    ),
    place(
        TX_FULL,
        Sender,
        Exact,
        "the transmit queue stayed full for too long",
        false,
    ),
    place(HELD, Sender, Exact, "still queued when the run ended", false),
    place(
        TX_HELD,
        Sender,
        AtMost,
        "still in the driver's transmit ring at the end",
        false,
    ),
    place(TX_ERROR, Sender, AtMost, "transmit errors of the port", true),
    place(RX_NO_BUFFER, Receiver, AtMost, "no free buffer in our pool", true),
    place(RX_MISSED, Receiver, AtMost, "our receive ring was full", true),
    place(RX_ERROR, Path, AtMost, "receive errors of the port", true),
    place(
        TX_DROPPED,
        Path,
        AtMost,
        "thrown away by the interface: its other end has a full queue, or a smaller MTU",
        false,
    ),
    place(
        NOT_AWAITED,
        Purpose,
        Exact,
        "sent only: none expected back",
        false,
    ),
];

/// Of a reflector's own counters, those that count frames of its port and not packets that it handled.
const FAR_AT_MOST: [&str; 4] = [RX_MISSED, RX_NO_BUFFER, RX_ERROR, TX_ERROR];

impl Place {
    /// The place of this name. What is not known by name may have counted anything.
    pub fn named(name: &str) -> Self {
        if let Some(known) = PLACES.iter().find(|place| place.name == name) {
            return known.clone();
        }
        let far = name.strip_prefix(REFLECTOR);
        let counts_frames = far.is_none_or(|far| FAR_AT_MOST.contains(&far));
        Place {
            name: Cow::Owned(name.to_owned()),
            owner: if far.is_some() { FarSide } else { Path },
            precision: if counts_frames { AtMost } else { Exact },
            meaning: if far.is_some() {
                "counted by the reflector"
            } else {
                ""
            },
            always: false,
        }
    }

    /// The same, where a far side served others, too, if `shared`: it saw packets, but not only ours.
    #[must_use]
    pub fn shared(mut self, shared: bool) -> Self {
        if shared && (self.owner == FarSide || self.name == FAULT_DROP) {
            self.precision = AtMost;
        }
        self
    }

    /// A place of the job's own, which saw every packet that it counts: a rule, or what could not be returned.
    pub fn of_job(name: impl Into<Cow<'static, str>>) -> Self {
        Place {
            name: name.into(),
            owner: Purpose,
            precision: Exact,
            meaning: "",
            always: false,
        }
    }

    /// A place where a reflector drops frames: one that it must not return it drops on purpose, as its job says.
    pub fn of_reflecting(name: &str) -> Self {
        let known = PLACES.iter().find(|place| place.name == name);
        known.map_or_else(|| Self::of_job(name.to_owned()), Self::clone)
    }

    /// The order in which places are charged: what saw the packets themselves first, what only counted frames last.
    pub(crate) fn rank(&self) -> (Precision, usize) {
        let known = PLACES.iter().position(|place| place.name == self.name);
        // A reflector's places come after what the injector dropped, others at the end, in the order of their names.
        let after_faults = PLACES
            .iter()
            .position(|place| place.name == FAULT_DROP)
            .unwrap_or(0);
        let place = match known {
            Some(at) if at <= after_faults => at,
            Some(at) => at + 1,
            None if self.owner == FarSide => after_faults + 1,
            None => PLACES.len() + 1,
        };
        (self.precision, place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_its_own_name_and_a_meaning() {
        for (index, place) in PLACES.iter().enumerate() {
            assert_ne!(place.meaning, "");
            assert!(PLACES[..index].iter().all(|other| other.name != place.name));
            assert_eq!(Place::named(&place.name), *place);
        }
    }
}
