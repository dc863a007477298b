//! The truth about a run, sans-I/O: what was due, sent, received, late or lost, and whether the numbers may be believed.
//!
//! Time is always an argument and nothing here makes a system call, so every result replays in a test.
//! The pieces that workers call ([`pacer`], [`schedule`], [`sequence`], [`histogram`], [`counter`], [`jitter`],
//! [`interval`]) allocate only when they are made; the rest ([`ledger`], [`verdict`], [`expect`], [`stalls`], [`summary`])
//! runs once, after the workers have stopped. [`search`] looks for a rate, one run after the
//! other, and [`comparison`] says by which way to send.
#![forbid(unsafe_code)]

pub mod balance;
pub mod bucket;
pub mod bunch;
pub mod capture;
pub mod collect;
pub mod comparison;
pub mod counter;
pub mod expect;
pub mod fields;
pub mod filter;
pub mod flows;
pub mod forward;
pub mod guard;
pub mod histogram;
mod histogram_set;
pub mod imbalance;
pub mod interval;
pub mod interval_writer;
pub mod jitter;
pub mod ledger;
pub mod metric;
pub mod noise;
pub mod note;
pub mod pacer;
pub mod place;
pub mod replay;
pub mod result;
pub mod run_result;
pub mod schedule;
pub mod search;
pub mod send_order;
pub mod sequence;
pub mod shared_histogram;
mod shortfall;
pub mod sizes;
mod stagger;
pub mod stalls;
pub mod summary;
pub mod time;
pub mod timetable;
pub mod union;
pub mod units;
pub mod verdict;

pub use balance::{Balance, Charge};
pub use capture::{CaptureSummary, ConsumerSummary, FileSummary};
pub use collect::{IntervalCollector, IntervalRow, IntervalTotals};
pub use counter::Counter;
pub use expect::{ExpectError, Expectation};
pub use filter::{FilterSummary, InterfaceCheck, Judged, RuleCount, RulePlace, SampleSummary};
pub use flows::{FlowSummary, FlowsSummary};
pub use forward::{ForwardSummary, RulesSummary, WaySummary};
pub use guard::{GuardRefusal, GuardRule, GuardSummary, RuleMade, RuleRefused};
pub use histogram::Histogram;
pub use histogram_set::{HistogramSet, Value};
pub use imbalance::Imbalance;
pub use interval::{IntervalError, IntervalRing};
pub use interval_writer::{IntervalWriter, Row};
pub use jitter::Jitter;
pub use ledger::{Arrived, Lane, Ledger, LedgerInput};
pub use noise::{CauseNoise, CoreNoise, InterruptLine, NoiseSummary};
pub use note::Note;
pub use pacer::{Allowance, Pacer, Rate};
pub use place::Place;
pub use replay::{ReplaySummary, StarvedSummary};
pub use result::{
    ClockSummary, ExpectationResult, Explanation, GapSummary, LinkState, Percentiles, PoolSummary,
    PortSummary, QueueSummary, Stall, StallCause, StreamSummary, WorkerSummary,
};
pub use run_result::RunResult;
pub use schedule::{Entry, Schedule, ScheduleError, StreamWeights};
pub use send_order::SendOrder;
pub use sequence::{Hole, Outcome, SequenceWindow};
pub use shared_histogram::{CompactHistogram, SharedHistogram};
pub use shortfall::{Hindrance, Shortfall};
pub use sizes::{FRAME_SIZE_MAX, SizeMix};
pub use summary::{ReflectSummary, Summary, VERSION};
pub use time::{Clock, Nanos, Ticks};
pub use timetable::{ReplayRate, TimesSummary, Timetable};
pub use union::LaneUnion;
pub use units::{RateSpec, UnitError};
pub use verdict::{Evidence, Reason, Validity, Verdict};
