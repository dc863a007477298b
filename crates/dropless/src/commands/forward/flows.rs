//! The flows of a forwarding run: the largest in the result, all of them in a file.

use std::fmt::Write as _;

use dataplane::flows::Flow;
use measure::{Clock, FlowSummary, FlowsSummary, Imbalance, Ticks};
use report::rundir::file;

use super::active::ActiveForward;
use crate::run::close::Ending;
use crate::run::queues::QueuePlace;

/// How many of the largest are told.
const TOLD: usize = 20;
/// The columns of `flows.csv`.
const HEADER: &str =
    "port,queue,source,destination,protocol,source_port,destination_port,vlan,packets,bytes,first_s,last_s\n";

/// What the tables counted, which is written into the run directory as well; nothing where flows were not asked for.
pub fn summary(job: &ActiveForward, ending: &Ending<'_>) -> Option<FlowsSummary> {
    let room = u64::from(job.plan.flows?.get());
    let mut all = FlowsSummary {
        room,
        ..FlowsSummary::default()
    };
    let mut text = HEADER.to_owned();
    let begun = job.course.begun;
    for side in &job.sides {
        let (Some(reader), place) = (&side.flows, side.side.place) else {
            continue;
        };
        let sums = reader.sums();
        all.packets += sums.seen.packets;
        all.evictions += sums.evictions;
        all.evicted_packets += sums.evicted.packets;
        all.evicted_bytes += sums.evicted.bytes;
        all.other_packets += sums.other.packets;
        all.other_bytes += sums.other.bytes;
        let told = |flow: &Flow| told(flow, place, &ending.clock, begun);
        let talkers = reader.talkers(TOLD);
        all.flows += talkers.flows as u64;
        all.by_bytes.extend(talkers.by_bytes.iter().map(told));
        all.by_packets.extend(talkers.by_packets.iter().map(told));
        for flow in reader.flows() {
            row(&mut text, &told(&flow));
        }
    }
    // Each table's are in order; equal ones stay in that of their queues.
    all.by_bytes
        .sort_by_key(|flow| std::cmp::Reverse((flow.bytes, flow.packets)));
    all.by_packets
        .sort_by_key(|flow| std::cmp::Reverse((flow.packets, flow.bytes)));
    all.by_bytes.truncate(TOLD);
    all.by_packets.truncate(TOLD);
    let written = ending.dir.write_text(file::FLOWS, &text);
    let _ = ending.dir.keep(written);
    Some(all)
}

/// Flows, what was forgotten and what is no flow are every frame.
pub fn uncounted(job: &ActiveForward, frames: u64) -> Option<Imbalance> {
    let of_table = |side: &crate::run::forwarding::ForwardSide| {
        let reader = side.flows.as_ref()?;
        let sums = reader.sums();
        let flows: u64 = reader.flows().map(|flow| flow.count.packets).sum();
        Some(flows + sums.evicted.packets + sums.other.packets)
    };
    let counted: u64 = job.sides.iter().filter_map(of_table).sum();
    (counted != frames).then_some(Imbalance::Flows { frames, counted })
}

fn told(flow: &Flow, place: QueuePlace, clock: &Clock, begun: Ticks) -> FlowSummary {
    let seconds = |at: Ticks| clock.ns_from_ticks(at.since(begun)) as f64 / 1e9;
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
