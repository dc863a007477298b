//! Who talked to whom, of a run that counted flows.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// A flow: packets of one port with the same addresses, ports, IP protocol and outermost VLAN.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowSummary {
    /// Index of the port that it came in by.
    pub port: u16,
    /// The queue.
    pub queue: u16,
    /// Where it comes from.
    pub source: IpAddr,
    /// Where it goes.
    pub destination: IpAddr,
    /// The protocol over IP (IANA).
    pub protocol: u8,
    /// Its name, where it has one here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_name: Option<String>,
    /// Source and destination port, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<(u16, u16)>,
    /// The outermost VLAN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Packets.
    pub packets: u64,
    /// Their bytes, without FCS.
    pub bytes: u64,
    /// When it was seen first, seconds from the start of the run.
    pub first_s: f64,
    /// And last.
    pub last_s: f64,
}

/// All flows of a run, of which the largest are named: `packets = those of flows + evicted_packets + other_packets`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowsSummary {
    /// Room for flows, of each queue.
    pub room: u64,
    /// Flows that were in the tables at the end.
    pub flows: u64,
    /// Every packet that was received.
    pub packets: u64,
    /// How often a flow was forgotten for want of room; one that came again counts again.
    pub evictions: u64,
    /// Packets of those.
    pub evicted_packets: u64,
    /// Their bytes, without FCS.
    pub evicted_bytes: u64,
    /// Packets that are no flow: not IP, or malformed.
    pub other_packets: u64,
    /// Their bytes, without FCS.
    pub other_bytes: u64,
    /// The flows with most bytes.
    pub by_bytes: Vec<FlowSummary>,
    /// The flows with most packets.
    pub by_packets: Vec<FlowSummary>,
}
