//! A state as Prometheus metrics: base units, `_total` for what only rises, labels for port, queue, worker and place.

use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{Encoder as _, TextEncoder};
use report::published::State;

const NS_PER_S: f64 = 1e9;

/// The state in the text format, version 0.0.4.
pub fn exposition(state: &State) -> String {
    let mut families = vec![build_info(state), run_info(state)];
    families.extend(run(state));
    families.extend(packets(state));
    families.push(places(state));
    families.extend(ports(state));
    families.push(queues(state));
    families.extend(workers(state));
    families.push(latency(state));
    families.retain(|family| !family.get_metric().is_empty());
    let mut text = Vec::new();
    // Into memory, and of families that are whole: there is nothing that could fail.
    let _ = TextEncoder::new().encode(&families, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

type Labels<'l> = &'l [(&'l str, &'l str)];

fn metric(labels: Labels<'_>) -> Metric {
    let pairs = labels.iter().map(|(name, value)| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value((*value).to_owned());
        pair
    });
    Metric::from_label(pairs.collect())
}

fn gauge(labels: Labels<'_>, value: f64) -> Metric {
    let (mut metric, mut gauge) = (metric(labels), Gauge::default());
    gauge.set_value(value);
    metric.set_gauge(gauge);
    metric
}

fn counter(labels: Labels<'_>, value: f64) -> Metric {
    let (mut metric, mut counter) = (metric(labels), Counter::default());
    counter.set_value(value);
    metric.set_counter(counter);
    metric
}

fn family(kind: MetricType, name: &str, help: &str, metrics: Vec<Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(format!("dropless_{name}"));
    family.set_help(help.to_owned());
    family.set_field_type(kind);
    family.set_metric(metrics);
    family
}

fn gauges(name: &str, help: &str, metrics: Vec<Metric>) -> MetricFamily {
    family(MetricType::GAUGE, name, help, metrics)
}

fn counters(name: &str, help: &str, metrics: Vec<Metric>) -> MetricFamily {
    family(MetricType::COUNTER, name, help, metrics)
}

fn build_info(state: &State) -> MetricFamily {
    let labels = [("version", &*state.process.version)];
    gauges(
        "build_info",
        "The dropless that runs; always 1.",
        vec![gauge(&labels, 1.0)],
    )
}

fn run_info(state: &State) -> MetricFamily {
    let run = state.process.run.display().to_string();
    let labels = [("command", &*state.process.command), ("run", &run)];
    gauges(
        "run_info",
        "The command and its run directory; always 1.",
        vec![gauge(&labels, 1.0)],
    )
}

fn run(state: &State) -> Vec<MetricFamily> {
    let one = |value: f64| vec![gauge(&[], value)];
    let phase = vec![gauge(&[("phase", state.phase.name())], 1.0)];
    let mut families = vec![
        gauges(
            "healthy",
            "1 while packets move, or by plan do not; else 0 (the reason is at /healthz).",
            one(f64::from(u8::from(state.health.healthy))),
        ),
        gauges(
            "run_phase",
            "What the run is doing; 1 for the phase that it is in.",
            phase,
        ),
        gauges(
            "run_elapsed_seconds",
            "Time since the first packet was due.",
            one(state.elapsed_s),
        ),
    ];
    if let Some(trials) = &state.trials {
        families.push(counters(
            "run_trials_total",
            "Trials of a search or a comparison that were begun.",
            vec![counter(&[], trials.number as f64)],
        ));
    }
    if let Some(left_s) = left_s(state) {
        families.push(gauges(
            "run_left_seconds",
            "How much longer it will take; of a search or a comparison, an estimate.",
            one(left_s),
        ));
    }
    if state.pool.size > 0 {
        families.push(gauges(
            "pool_buffers",
            "Packet buffers in all.",
            one(state.pool.size as f64),
        ));
        families.push(gauges(
            "pool_free_buffers",
            "Packet buffers that are in the pool.",
            one(state.pool.free as f64),
        ));
    }
    families
}

/// How much longer it will take, where that is known.
fn left_s(state: &State) -> Option<f64> {
    let planned = || {
        state
            .planned_s
            .map(|planned_s| (planned_s - state.elapsed_s).max(0.0))
    };
    match &state.trials {
        _ if state.ended.is_some() => Some(0.0),
        Some(trials) => trials.left_s,
        None => planned(),
    }
}

fn packets(state: &State) -> Vec<MetricFamily> {
    let total = &state.total;
    let rows = [
        ("intended_packets", "Packets that were due.", total.intended),
        ("sent_packets", "Packets that the driver accepted.", total.sent),
        (
            "received_packets",
            "Distinct packets received in time.",
            total.received,
        ),
        (
            "lost_packets",
            "Packets missing from the intervals old enough to be judged; of a reflector, frames not returned.",
            total.lost,
        ),
        (
            "unsent_packets",
            "Packets that were due and given up.",
            total.unsent,
        ),
        (
            "duplicate_packets",
            "Further copies of packets already received.",
            total.duplicate,
        ),
        (
            "reordered_packets",
            "Packets overtaken by a later one.",
            total.reordered,
        ),
        ("corrupt_packets", "Damaged packets received.", total.corrupt),
        (
            "late_packets",
            "Packets that came later than the drain time.",
            total.late,
        ),
        ("sent_bytes", "Bytes sent, without FCS.", total.sent_bytes),
        (
            "received_bytes",
            "Bytes received, without FCS.",
            total.received_bytes,
        ),
    ];
    rows.iter()
        .map(|(name, help, count)| {
            counters(&format!("{name}_total"), help, vec![counter(&[], *count as f64)])
        })
        .collect()
}

fn places(state: &State) -> MetricFamily {
    let metrics = state
        .places
        .iter()
        .map(|(place, count)| counter(&[("place", place)], *count as f64));
    let help = "Packets by the place that says it dropped them; after the run, as the ledger charged them.";
    counters("place_packets_total", help, metrics.collect())
}

fn ports(state: &State) -> Vec<MetricFamily> {
    let of = |pick: &dyn Fn(&measure::PortSummary) -> u64, make: fn(Labels<'_>, f64) -> Metric| {
        let ports = state.ports.iter();
        ports
            .map(|port| make(&[("port", &port.uri)], pick(port) as f64))
            .collect::<Vec<_>>()
    };
    vec![
        gauges(
            "port_up",
            "1 while the port has a link.",
            of(&|port| u64::from(port.link.up), gauge),
        ),
        counters(
            "port_sent_packets_total",
            "Packets that the port says it sent.",
            of(&|port| port.tx_packets, counter),
        ),
        counters(
            "port_received_packets_total",
            "Packets that the port says it received.",
            of(&|port| port.rx_packets, counter),
        ),
        counters(
            "port_missed_packets_total",
            "Packets that found no room in the port's receive ring.",
            of(&|port| port.rx_missed, counter),
        ),
        counters(
            "port_no_buffer_packets_total",
            "Packets that found no buffer in the pool.",
            of(&|port| port.rx_nombuf, counter),
        ),
        counters(
            "port_receive_errors_total",
            "Packets received in error.",
            of(&|port| port.rx_errors, counter),
        ),
        counters(
            "port_transmit_errors_total",
            "Packets that the port failed to send.",
            of(&|port| port.tx_errors, counter),
        ),
    ]
}

fn queues(state: &State) -> MetricFamily {
    let metrics = state.queues.iter().map(|queue| {
        let number = queue.queue.to_string();
        let core = queue.core.to_string();
        let port = state
            .ports
            .get(usize::from(queue.port))
            .map_or("", |port| &port.uri);
        let labels = [
            ("port", port),
            ("queue", &number),
            ("direction", &queue.direction),
            ("core", &core),
        ];
        counter(&labels, queue.packets as f64)
    });
    counters(
        "queue_packets_total",
        "Packets through a queue.",
        metrics.collect(),
    )
}

fn workers(state: &State) -> Vec<MetricFamily> {
    let of = |pick: &dyn Fn(&report::published::Worker) -> f64, make: fn(Labels<'_>, f64) -> Metric| {
        let workers = state.workers.iter();
        workers
            .map(|worker| {
                let (core, roles) = (worker.summary.core.to_string(), worker.summary.roles.join("+"));
                make(&[("worker", &core), ("roles", &roles)], pick(worker))
            })
            .collect::<Vec<_>>()
    };
    vec![
        counters(
            "worker_polls_total",
            "Rounds of a worker over its queues; the worker is named by its core.",
            of(&|worker| worker.summary.polls as f64, counter),
        ),
        counters(
            "worker_busy_polls_total",
            "Rounds that moved a packet.",
            of(&|worker| worker.busy as f64, counter),
        ),
        counters(
            "worker_stalls_total",
            "Stalls of a worker longer than --pause.",
            of(&|worker| worker.stalls as f64, counter),
        ),
        gauges(
            "worker_poll_gap_max_seconds",
            "The longest time between two rounds of a worker.",
            of(&|worker| worker.summary.poll_gap_ns_max as f64 / NS_PER_S, gauge),
        ),
    ]
}

fn latency(state: &State) -> MetricFamily {
    let buckets = state.latency_buckets.below.iter().map(|(end_ns, count)| {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(*end_ns as f64 / NS_PER_S);
        bucket.set_cumulative_count(*count);
        bucket
    });
    let mut histogram = Histogram::default();
    histogram.set_bucket(buckets.collect());
    histogram.set_sample_count(state.latency_buckets.count);
    histogram.set_sample_sum(state.latency_buckets.sum_s);
    let mut one = metric(&[]);
    one.set_histogram(histogram);
    let measured = !state.latency_buckets.below.is_empty();
    family(
        MetricType::HISTOGRAM,
        "latency_seconds",
        "Time from the departure of a packet to its return, of the intervals old enough to be judged.",
        measured.then_some(one).into_iter().collect(),
    )
}
