//! The flows of a forwarding run: the largest in the result, all of them in a file.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use dataplane::flows::{Flow, FlowReader};
use measure::{Clock, FlowSummary, FlowsSummary, Imbalance, Ticks};
use report::rundir::file;

use super::active::ActiveForward;
use super::queues::ForwardSide;
use crate::run::close::Ending;
use crate::run::queues::QueuePlace;

/// How many of the largest are told.
const TOLD: usize = 20;
/// And while it goes on.
const TOLD_LIVE: usize = 10;
/// The columns of `flows.csv`.
const HEADER: &str =
    "port,queue,source,destination,protocol,source_port,destination_port,vlan,packets,bytes,first_s,last_s\n";

/// A look costs one part in so many of the time until the next, at most: large tables are walked rarely.
const LOOK_PART: u32 = 20;
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The flows of a run that goes on, looked at now and then.
#[derive(Default)]
pub struct FlowWatch {
    told: Option<FlowsSummary>,
    due: Option<Instant>,
}

impl FlowWatch {
    /// Looks, if it is time for that.
    pub fn look(&mut self, tables: &Tables<'_>) {
        let begun = Instant::now();
        if tables.room.is_none() || self.due.is_some_and(|due| begun < due) {
            return;
        }
        self.told = tables.summary(TOLD_LIVE);
        self.due = Some(begun + LOOK_EVERY.max(begun.elapsed() * LOOK_PART));
    }

    /// What was seen last.
    pub fn told(&self) -> Option<FlowsSummary> {
        self.told.clone()
    }
}

/// The tables of a run.
pub struct Tables<'t> {
    pub room: Option<NonZeroU32>,
    pub sides: &'t [ForwardSide],
    pub clock: &'t Clock,
    /// When the run began.
    pub begun: Ticks,
}

impl Tables<'_> {
    /// What they count, with `most` of the largest flows; nothing where flows were not asked for.
    pub fn summary(&self, most: usize) -> Option<FlowsSummary> {
        let mut all = FlowsSummary {
            room: u64::from(self.room?.get()),
            ..FlowsSummary::default()
        };
        for (reader, place) in self.each() {
            let sums = reader.sums();
            all.packets += sums.seen.packets;
            all.evictions += sums.evictions;
            all.evicted_packets += sums.evicted.packets;
            all.evicted_bytes += sums.evicted.bytes;
            all.other_packets += sums.other.packets;
            all.other_bytes += sums.other.bytes;
            let told = |flow: &Flow| self.told(flow, place);
            let talkers = reader.talkers(most);
            all.flows += talkers.flows as u64;
            all.by_bytes.extend(talkers.by_bytes.iter().map(told));
            all.by_packets.extend(talkers.by_packets.iter().map(told));
        }
        // Each table's are in order; equal ones stay in that of their queues.
        all.by_bytes
            .sort_by_key(|flow| Reverse((flow.bytes, flow.packets)));
        all.by_packets
            .sort_by_key(|flow| Reverse((flow.packets, flow.bytes)));
        all.by_bytes.truncate(most);
        all.by_packets.truncate(most);
        Some(all)
    }

    fn each(&self) -> impl Iterator<Item = (&FlowReader, QueuePlace)> {
        let sides = self.sides.iter();
        sides.filter_map(|side| Some((side.flows.as_ref()?, side.side.place)))
    }

    /// All flows, as a table.
    fn csv(&self) -> String {
        let mut text = HEADER.to_owned();
        for (reader, place) in self.each() {
            for flow in reader.flows() {
                row(&mut text, &self.told(&flow, place));
            }
        }
        text
    }

    fn told(&self, flow: &Flow, place: QueuePlace) -> FlowSummary {
        let seconds = |at: Ticks| self.clock.ns_from_ticks(at.since(self.begun)) as f64 / 1e9;
        let key = &flow.key;
        FlowSummary {
            port: place.port as u16,
            queue: place.queue as u16,
            source: key.source,
            destination: key.destination,
            protocol: key.protocol,
            protocol_name: dissect::protocol_name(key.protocol).map(ToOwned::to_owned),
            ports: key.ports,
            vlan: key.vlan,
            packets: flow.count.packets,
            bytes: flow.count.bytes,
            first_s: seconds(flow.first),
            last_s: seconds(flow.last),
        }
    }
}

/// What the tables counted, which is written into the run directory as well; nothing where flows were not asked for.
pub fn summary<J>(job: &ActiveForward<J>, ending: &Ending<'_>) -> Option<FlowsSummary> {
    let tables = Tables {
        room: job.plan.flows,
        sides: &job.sides,
        clock: &ending.clock,
        begun: job.course.begun,
    };
    let all = tables.summary(TOLD)?;
    // Kept for the directory's note.
    let _ = ending.dir.write_text(file::FLOWS, &tables.csv());
    Some(all)
}

/// Flows, what was forgotten and what is no flow are every frame.
pub fn uncounted<'t>(tables: impl IntoIterator<Item = &'t FlowReader>, frames: u64) -> Option<Imbalance> {
    let of_table = |reader: &FlowReader| {
        let sums = reader.sums();
        let flows: u64 = reader.flows().map(|flow| flow.count.packets).sum();
        flows + sums.evicted.packets + sums.other.packets
    };
    let counted: u64 = tables.into_iter().map(of_table).sum();
    (counted != frames).then_some(Imbalance::Flows { frames, counted })
}

fn row(text: &mut String, flow: &FlowSummary) {
    let number = |number: Option<u16>| number.map_or_else(String::new, |number| number.to_string());
    let (from, to) = flow.ports.unzip();
    let protocol = flow.protocol_name.clone();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{},{},{},{},{},{},{},{},{},{},{:.6},{:.6}",
        flow.port,
        flow.queue,
        flow.source,
        flow.destination,
        protocol.unwrap_or_else(|| flow.protocol.to_string()),
        number(from),
        number(to),
        number(flow.vlan),
        flow.packets,
        flow.bytes,
        flow.first_s,
        flow.last_s
    );
}
