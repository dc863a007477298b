//! A state as Prometheus metrics: base units, `_total` for what only rises, labels for port, queue, worker and place.

use measure::{FlowSummary, FlowsSummary, PortSummary, RuleCount};
use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{Encoder as _, TextEncoder};
use report::published::{ConsumerLevel, RulesInForce, State, Worker};

const NS_PER_S: f64 = 1e9;

/// What a metric is, by its name without `dropless_`.
fn help(name: &str) -> &'static str {
    match name {
        "build_info" => "The dropless that runs; always 1.",
        "run_info" => "The command and its run directory; always 1.",
        "healthy" => "1 while packets move, or by plan do not; else 0 (the reason is at /healthz).",
        "run_phase" => "What the run is doing; 1 for the phase that it is in.",
        "run_elapsed_seconds" => "Time since the first packet was due.",
        "run_trials_total" => "Trials of a search or a comparison that were begun.",
        "run_left_seconds" => "How much longer it will take; of a search or a comparison, an estimate.",
        "pool_buffers" => "Packet buffers in all.",
        "pool_free_buffers" => "Packet buffers that are in the pool.",
        "intended_packets_total" => "Packets that were scheduled.",
        "sent_packets_total" => {
            "Packets that the driver accepted, also where the port then failed to send them."
        }
        "received_packets_total" => "Distinct packets received in time.",
        "captured_packets_total" => "Of a capture, frames put into its ring.",
        "lost_packets_total" => {
            "Packets missing from the intervals old enough to be judged; of what has no intervals of its own, packets lost at any place that nobody asked for (of a capture before its ring; of a reflector all but what never was a probe)."
        }
        "unsent_packets_total" => "Packets that were scheduled and never sent.",
        "duplicate_packets_total" => "Further copies of packets already received.",
        "reordered_packets_total" => "Packets overtaken by a later one.",
        "corrupt_packets_total" => "Damaged packets received.",
        "late_packets_total" => "Packets that came later than the drain time.",
        "sent_bytes_total" => "Bytes sent, without FCS.",
        "received_bytes_total" => "Bytes received, without FCS.",
        "place_packets_total" => {
            "Packets by the place that says it dropped them; after the run, as the ledger charged them."
        }
        "port_up" => "1 while the port has a link.",
        "port_sent_packets_total" => "Packets that the port says it sent.",
        "port_received_packets_total" => "Packets that the port says it received.",
        "port_missed_packets_total" => "Packets that found no room in the port's receive ring.",
        "port_no_buffer_packets_total" => "Packets that found no buffer in the pool.",
        "port_receive_errors_total" => "Packets received in error.",
        "port_transmit_errors_total" => "Packets that the port failed to send.",
        "port_transmit_dropped_packets_total" => {
            "Packets that the interface below threw away after the port had sent them."
        }
        "queue_packets_total" => "Packets through a queue.",
        "consumer_taken_packets_total" => "Packets that a consumer of a capture took from the ring.",
        "consumer_lost_packets_total" => "Packets that a consumer of a capture did not get.",
        "consumer_behind_segments" => {
            "Segments of the ring that a consumer is behind, the one under way among them."
        }
        "consumer_behind_max_segments" => "The most segments that a consumer was behind.",
        "judged_packets_total" => "Packets by what became of them by rules.",
        "judged_bytes_total" => "Their bytes, without FCS.",
        "rule_packets_total" => {
            "Packets that a rule decided about; of a rate, those above it. The busiest rules alone."
        }
        "rule_bytes_total" => "Bytes of the packets that a rule decided about, without FCS.",
        "rules_malformed_packets_total" => "Malformed packets by reason; a rule decided about them, too.",
        "rules_groups_full_packets_total" => {
            "Packets dropped since a rate had no entry left for their group; counted at its rule, too."
        }
        "flows" => "Flows that are remembered, of all queues.",
        "flow_evictions_total" => "How often a flow was forgotten for want of room.",
        "flow_evicted_packets_total" => "Packets of flows that were forgotten.",
        "flow_packets_total" => "Packets of a flow; the largest flows alone, by bytes.",
        "flow_bytes_total" => "Bytes of a flow, without FCS; the largest flows alone.",
        "rules_generation" => "How many sets of rules were in force, this one among them.",
        "rules_asked_total" => "How often rules were to be read again, whatever came of it.",
        "rules_refused" => {
            "1 while the rules that were read last are not in force, but those before; else 0."
        }
        "worker_polls_total" => "Rounds of a worker over its queues; the worker is named by its core.",
        "worker_busy_polls_total" => "Rounds that moved a packet.",
        "worker_stalls_total" => "Stalls of a worker longer than --pause.",
        "worker_poll_gap_max_seconds" => "The longest time between two rounds of a worker.",
        "latency_seconds" => {
            "Time from the departure of a packet to its return, of the intervals old enough to be judged."
        }
        _ => "",
    }
}

/// The state in the text format, version 0.0.4, and whether the run is healthy by now.
pub fn exposition(state: &State, is_healthy: bool) -> String {
    let mut families = run(state, is_healthy);
    families.extend(packets(state));
    families.extend(ports(state));
    families.push(queues(state));
    families.extend(consumers(state));
    families.extend(state.rules.iter().flat_map(rules));
    families.extend(state.flows.iter().flat_map(flows));
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

fn family(kind: MetricType, name: &str, metrics: Vec<Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(format!("dropless_{name}"));
    family.set_help(help(name).to_owned());
    family.set_field_type(kind);
    family.set_metric(metrics);
    family
}

/// A family of one value without labels, or of none.
fn one(name: &str, value: impl Into<Option<f64>>) -> MetricFamily {
    let metrics = value.into().map(|value| gauge(&[], value));
    family(MetricType::GAUGE, name, metrics.into_iter().collect())
}

fn gauges(name: &str, metrics: Vec<Metric>) -> MetricFamily {
    family(MetricType::GAUGE, name, metrics)
}

fn counters(name: &str, metrics: Vec<Metric>) -> MetricFamily {
    family(MetricType::COUNTER, name, metrics)
}

fn run(state: &State, is_healthy: bool) -> Vec<MetricFamily> {
    let (process, pool) = (&state.process, &state.pool);
    let run = process.run.display().to_string();
    let trials = state
        .trials
        .iter()
        .map(|trials| counter(&[], trials.number as f64));
    let has_pool = pool.size > 0;
    vec![
        gauges("build_info", vec![gauge(&[("version", &process.version)], 1.0)]),
        gauges(
            "run_info",
            vec![gauge(&[("command", &process.command), ("run", &run)], 1.0)],
        ),
        one("healthy", f64::from(u8::from(is_healthy))),
        gauges("run_phase", vec![gauge(&[("phase", state.phase.name())], 1.0)]),
        one("run_elapsed_seconds", state.elapsed_s),
        counters("run_trials_total", trials.collect()),
        one("run_left_seconds", left_s(state)),
        one("pool_buffers", has_pool.then_some(pool.size as f64)),
        one("pool_free_buffers", has_pool.then_some(pool.free as f64)),
    ]
}

/// How much longer it will take, where that is known.
fn left_s(state: &State) -> Option<f64> {
    match &state.trials {
        _ if state.ended.is_some() => Some(0.0),
        Some(trials) => trials.left_s,
        None => Some((state.planned_s? - state.elapsed_s).max(0.0)),
    }
}

fn packets(state: &State) -> Vec<MetricFamily> {
    let total = &state.total;
    let totals = [
        ("intended_packets_total", total.intended),
        ("sent_packets_total", total.sent),
        ("received_packets_total", total.received),
        ("captured_packets_total", total.captured),
        ("lost_packets_total", total.lost),
        ("unsent_packets_total", total.unsent),
        ("duplicate_packets_total", total.duplicate),
        ("reordered_packets_total", total.reordered),
        ("corrupt_packets_total", total.corrupt),
        ("late_packets_total", total.late),
        ("received_bytes_total", total.received_bytes),
    ];
    // A rate of none would be told of bytes that nobody counts.
    let sent_bytes = total.sent_bytes.map(|bytes| ("sent_bytes_total", bytes));
    let totals = totals.into_iter().chain(sent_bytes);
    let totals = totals.map(|(name, count)| counters(name, vec![counter(&[], count as f64)]));
    let places = state.places.iter();
    let places = places.map(|(place, count)| counter(&[("place", place)], *count as f64));
    let places = counters("place_packets_total", places.collect());
    totals.chain([places]).collect()
}

fn ports(state: &State) -> Vec<MetricFamily> {
    let of = |pick: fn(&PortSummary) -> u64, make: fn(Labels<'_>, f64) -> Metric| {
        let ports = state.ports.iter();
        ports
            .map(|port| make(&[("port", &port.uri)], pick(port) as f64))
            .collect()
    };
    let count = |name, pick| counters(name, of(pick, counter));
    vec![
        gauges("port_up", of(|port| u64::from(port.link.up), gauge)),
        count("port_sent_packets_total", |port| port.tx_packets),
        count("port_received_packets_total", |port| port.rx_packets),
        count("port_missed_packets_total", |port| port.rx_missed),
        count("port_no_buffer_packets_total", |port| port.rx_nombuf),
        count("port_receive_errors_total", |port| port.rx_errors),
        count("port_transmit_errors_total", |port| port.tx_errors),
        count("port_transmit_dropped_packets_total", |port| port.tx_dropped),
    ]
}

fn queues(state: &State) -> MetricFamily {
    let metrics = state.queues.iter().map(|queue| {
        let (number, core) = (queue.queue.to_string(), queue.core.to_string());
        let port = state.ports.get(usize::from(queue.port));
        let labels = [
            ("port", port.map_or("", |port| &port.uri)),
            ("queue", &number),
            ("direction", &queue.direction),
            ("core", &core),
        ];
        counter(&labels, queue.packets as f64)
    });
    counters("queue_packets_total", metrics.collect())
}

fn consumers(state: &State) -> Vec<MetricFamily> {
    let of = |pick: fn(&ConsumerLevel) -> u64, make: fn(Labels<'_>, f64) -> Metric| {
        let metric = |consumer: &ConsumerLevel| {
            let kind = if consumer.lossless { "lossless" } else { "lossy" };
            make(
                &[("consumer", &consumer.name), ("kind", kind)],
                pick(consumer) as f64,
            )
        };
        state.consumers.iter().map(metric).collect()
    };
    vec![
        counters(
            "consumer_taken_packets_total",
            of(|consumer| consumer.taken, counter),
        ),
        counters(
            "consumer_lost_packets_total",
            of(|consumer| consumer.lost, counter),
        ),
        gauges("consumer_behind_segments", of(|consumer| consumer.behind, gauge)),
        gauges(
            "consumer_behind_max_segments",
            of(|consumer| consumer.behind_max, gauge),
        ),
    ]
}

/// The largest flows: as many series as there are told, whatever comes.
fn flows(flows: &FlowsSummary) -> Vec<MetricFamily> {
    let optional = |number: Option<u16>| number.map_or_else(String::new, |number| number.to_string());
    let of = |pick: fn(&FlowSummary) -> u64| {
        let metric = |flow: &FlowSummary| {
            let (from, to) = flow.ports.unzip();
            let labels = [
                ("port", flow.port.to_string()),
                ("queue", flow.queue.to_string()),
                ("source", flow.source.to_string()),
                ("destination", flow.destination.to_string()),
                ("protocol", flow.protocol.to_string()),
                ("source_port", optional(from)),
                ("destination_port", optional(to)),
                ("vlan", optional(flow.vlan)),
            ];
            let labels: Vec<(&str, &str)> = labels
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .collect();
            counter(&labels, pick(flow) as f64)
        };
        flows.by_bytes.iter().map(metric).collect()
    };
    vec![
        one("flows", flows.flows as f64),
        counters("flow_evictions_total", vec![counter(&[], flows.evictions as f64)]),
        counters(
            "flow_evicted_packets_total",
            vec![counter(&[], flows.evicted_packets as f64)],
        ),
        counters("flow_packets_total", of(|flow| flow.packets)),
        counters("flow_bytes_total", of(|flow| flow.bytes)),
    ]
}

fn rules(rules: &RulesInForce) -> Vec<MetricFamily> {
    let judged = &rules.judged;
    let verdicts = |[allowed, denied]: [u64; 2]| {
        let verdicts = [("allow", allowed), ("deny", denied)];
        let metric = |(verdict, count)| counter(&[("verdict", verdict)], count as f64);
        verdicts.map(metric).to_vec()
    };
    let of = |pick: fn(&RuleCount) -> u64| {
        // The same rule twice is one: it has one counter from set to set.
        let metric = |rule: &RuleCount| {
            let verdict = if rule.denies { "deny" } else { "allow" };
            counter(&[("rule", &rule.rule), ("verdict", verdict)], pick(rule) as f64)
        };
        judged
            .rules
            .iter()
            .filter(|rule| rule.packets > 0)
            .map(metric)
            .collect()
    };
    let malformed = judged.malformed.iter();
    let malformed = malformed.map(|(reason, count)| counter(&[("reason", reason)], *count as f64));
    vec![
        counters("judged_packets_total", verdicts([judged.allowed, judged.denied])),
        counters(
            "judged_bytes_total",
            verdicts([judged.allowed_bytes, judged.denied_bytes]),
        ),
        counters("rule_packets_total", of(|rule| rule.packets)),
        counters("rule_bytes_total", of(|rule| rule.bytes)),
        counters("rules_malformed_packets_total", malformed.collect()),
        counters(
            "rules_groups_full_packets_total",
            vec![counter(&[], judged.groups_full as f64)],
        ),
        one("rules_generation", rules.generation as f64),
        counters("rules_asked_total", vec![counter(&[], rules.asked as f64)]),
        one("rules_refused", f64::from(u8::from(rules.refused.is_some()))),
    ]
}

fn workers(state: &State) -> Vec<MetricFamily> {
    let of = |pick: fn(&Worker) -> f64, make: fn(Labels<'_>, f64) -> Metric| {
        let metric = |worker: &Worker| {
            let (core, roles) = (worker.summary.core.to_string(), worker.summary.roles.join("+"));
            make(&[("worker", &core), ("roles", &roles)], pick(worker))
        };
        state.workers.iter().map(metric).collect()
    };
    let gap_max = |worker: &Worker| worker.summary.poll_gap_ns_max as f64 / NS_PER_S;
    vec![
        counters(
            "worker_polls_total",
            of(|worker| worker.summary.polls as f64, counter),
        ),
        counters(
            "worker_busy_polls_total",
            of(|worker| worker.busy as f64, counter),
        ),
        counters("worker_stalls_total", of(|worker| worker.stalls as f64, counter)),
        gauges("worker_poll_gap_max_seconds", of(gap_max, gauge)),
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
        measured.then_some(one).into_iter().collect(),
    )
}
