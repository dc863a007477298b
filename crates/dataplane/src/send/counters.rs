//! What a sending task publishes, and what it leaves.

use std::sync::Arc;

use measure::bunch::BUNCH_SUB_BITS;
use measure::{Counter, SharedHistogram};

/// What a sending task publishes while it runs. One writer: its worker.
#[derive(Debug)]
pub struct SendCounters {
    /// Packets that the schedule (or, without one, the burst loop) wanted on the wire.
    pub intended: Counter,
    /// Packets that the driver took.
    pub accepted: Counter,
    /// Packets given up because the worker or the queue was later than the backlog bound.
    pub abandoned: Counter,
    /// Bytes of the frames that the driver took, without FCS; of a burst when it has all of them.
    pub bytes: Counter,
    /// Transmit calls that took less than was offered: the queue was full.
    pub queue_full: Counter,
    /// How long that kept packets waiting while there were more to send, ticks.
    pub full_ticks: Counter,
    /// Times that no buffer was free.
    pub no_buffer: Counter,
    /// When the driver first took a packet, ticks; 0 before.
    pub first_ticks: Counter,
    /// When it last took one.
    pub last_ticks: Counter,
    /// 1 once the schedule is served.
    pub done: Counter,
    /// ARP, NDP and echo replies sent for the receiving side.
    pub replies: Counter,
    /// Ticks from one accepted packet to the next, packets of one burst counting as 0.
    pub gap_ticks: SharedHistogram,
    /// How many packets were due at once where more than one was, each time that the schedule was behind anew.
    pub bunches: SharedHistogram,
    /// Those of them that left whole: hardly anything fell due meanwhile.
    pub whole_bunches: SharedHistogram,
}

impl SendCounters {
    /// Zeroed counters.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            intended: Counter::default(),
            accepted: Counter::default(),
            abandoned: Counter::default(),
            bytes: Counter::default(),
            queue_full: Counter::default(),
            full_ticks: Counter::default(),
            no_buffer: Counter::default(),
            first_ticks: Counter::default(),
            last_ticks: Counter::default(),
            done: Counter::default(),
            replies: Counter::default(),
            gap_ticks: SharedHistogram::new(7),
            bunches: SharedHistogram::new(BUNCH_SUB_BITS),
            whole_bunches: SharedHistogram::new(BUNCH_SUB_BITS),
        })
    }
}

/// What a sending task leaves when it has ended.
#[derive(Debug)]
pub struct SendResult {
    /// Accepted packets per stream of this queue; lane = `lane_base + stream`.
    pub accepted: Vec<u64>,
    /// The lane of stream 0.
    pub lane_base: u16,
    /// Flows that really went out, per stream.
    pub flows: Vec<u64>,
    /// Packets built but never taken by the driver.
    pub unsent: u64,
    /// Bytes of the accepted packets, without FCS.
    pub bytes: u64,
}
