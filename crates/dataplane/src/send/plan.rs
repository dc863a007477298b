//! What a sending task needs to know, besides its queue.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use measure::{Clock, Entry, IntervalRing, Pacer, Ticks};
use wire::Template;

use super::SendCounters;
use crate::reply::ReplyQueue;

/// What a sending task needs to know, besides its queue.
pub struct SendPlan {
    /// One template per (stream, frame size), as the schedule's entries index them.
    pub templates: Vec<Template>,
    /// The repeating order of streams and templates.
    pub schedule: Vec<Entry>,
    /// Flows of each stream.
    pub flows: Vec<u32>,
    /// The flow that each stream starts with, and the step to its next: queues share the flows evenly.
    pub flow_start: u32,
    /// See `flow_start`.
    pub flow_step: u32,
    /// The lane of stream 0.
    pub lane_base: u16,
    /// When each packet is due.
    pub pacer: Pacer,
    /// When sending ends.
    pub end: Ticks,
    /// Packets a burst, at most [`BURST_MAX`](crate::BURST_MAX).
    pub burst: usize,
    /// How many due packets a late worker may still send before it gives the rest up.
    pub backlog: u64,
    /// Converts ticks into the probe's time.
    pub clock: Clock,
    /// Where this queue's per-interval counts go.
    pub intervals: Arc<IntervalRing>,
    /// When control ended the run before its time, ticks; what is due later is nobody's debt.
    pub cut: Arc<AtomicU64>,
    /// What it publishes.
    pub counters: Arc<SendCounters>,
    /// Replies that the receiving tasks of the same port ask to be sent.
    pub replies: Arc<ReplyQueue>,
    /// The templates leave the UDP checksum to the NIC.
    pub checksum_offload: bool,
}
