//! Results invented for the tests: a run over two ports that lost a few packets, and a reflector's.
#![allow(dead_code)] // Each test file uses its part.

pub mod files;

use std::collections::BTreeMap;

use measure::result::{
    ClockSummary, ExpectationResult, GapSummary, LinkState, Percentiles, PoolSummary, PortSummary,
    QueueSummary, StreamSummary, WorkerSummary,
};
use measure::{Arrived, Histogram, IntervalRow, IntervalTotals, Ledger, ReflectSummary, Summary, Validity};

pub const SENT: u64 = 35_000_000;
pub const LOST: u64 = 1_234;

fn latency(scale: u64) -> Percentiles {
    Percentiles {
        min: Some(812 * scale),
        p50: Some(1_234 * scale),
        p90: Some(2_345 * scale),
        p99: Some(8_765 * scale),
        p999: Some(45_678 * scale),
        max: Some(1_234_567 * scale),
        mean: Some(1_456.75 * scale as f64),
    }
}

fn named(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
    counts
        .iter()
        .map(|&(name, count)| (name.to_owned(), count))
        .collect()
}

fn stream(name: &str, sent: u64, lost: u64, scale: u64) -> StreamSummary {
    StreamSummary {
        name: name.to_owned(),
        sent,
        received: sent - lost,
        lost,
        duplicate: 0,
        reordered: if lost > 0 { 12 } else { 0 },
        reorder_extent_max: if lost > 0 { 3 } else { 0 },
        corrupt: None,
        late: lost.min(4),
        latency_ns: latency(scale),
        jitter_ns: Some(120.5),
        rate_tx_pps: sent as f64 / 10.0,
        rate_rx_pps: (sent - lost) as f64 / 10.0,
        flows_asked: 1000,
        flows_sent: 1000,
    }
}

fn port(
    uri: &str,
    driver: &str,
    speed_mbps: u32,
    tx_packets: u64,
    rx_packets: u64,
    rx_missed: u64,
) -> PortSummary {
    PortSummary {
        uri: uri.to_owned(),
        driver: driver.to_owned(),
        name: format!("{driver}0"),
        link: LinkState {
            up: true,
            speed_mbps: Some(speed_mbps),
        },
        tx_packets,
        rx_packets,
        rx_missed,
        ..PortSummary::default()
    }
}

fn queue(port: u16, direction: &str, queue: u16, core: u32, packets: u64, share: f64) -> QueueSummary {
    QueueSummary {
        port,
        queue,
        direction: direction.to_owned(),
        core,
        packets,
        share,
        ..QueueSummary::default()
    }
}

fn worker(core: u32, roles: &[&str], busy_share: f64, poll_gap_ns_max: u64) -> WorkerSummary {
    WorkerSummary {
        core,
        roles: roles.iter().map(|&role| role.to_owned()).collect(),
        polls: 123_456_789,
        busy_share,
        poll_gap_ns_max,
        poll_gap_ns_p999: 2_100,
        ..WorkerSummary::default()
    }
}

fn pool() -> PoolSummary {
    PoolSummary {
        name: "mbufs".to_owned(),
        size: 32_767,
        in_use_at_start: 0,
        in_use_at_end: 0,
        leaked: 0,
    }
}

fn clock() -> ClockSummary {
    ClockSummary {
        source: "tsc".to_owned(),
        hz: 2_445_404_321.5,
        uncertainty_ppm: 0.812,
        checked: true,
    }
}

/// 35,000,000 packets, of which 1,234 are missing at two named places.
pub fn lossy() -> Summary {
    let received = SENT - LOST;
    Summary {
        version: 2,
        command: "send".to_owned(),
        run: "runs/2025-11-20T23-30-45Z-send".to_owned(),
        verdict: Validity::Valid,
        sent: SENT,
        received,
        lost: LOST,
        reordered: 12,
        reorder_extent_max: 3,
        late: 4,
        rate_asked_pps: Some(3.5e6),
        rate_tx_pps: 3_499_998.25,
        rate_rx_pps: 3_499_874.85,
        rate_tx_bps_l1: 2.351_998_824e9,
        rate_tx_bps_l2: 1.791_999_104e9,
        duration_s: 10.000_005,
        latency_ns: latency(1),
        latency_scheduled_ns: latency(2),
        jitter_ns: Some(120.5),
        pdv_ns: Some(44_866),
        gap_ns: GapSummary {
            asked: Some(285.714),
            p50: Some(286),
            p90: Some(301),
            p99: Some(412),
            p999: Some(3_120),
            max: Some(98_765),
        },
        ledger: ledger(received),
        streams: vec![
            stream("voice", 1_000_000, 0, 1),
            stream("bulk, 1518 bytes", 34_000_000, LOST, 3),
        ],
        ports: vec![
            port("xdp:eth1,queues=2", "net_af_xdp", 25_000, SENT, 0, 0),
            port("pci:0000:3b:00.0", "mlx5_pci", 100_000, 0, received + 46, 1_230),
        ],
        queues: vec![
            queue(0, "tx", 0, 2, 17_500_000, 0.5),
            queue(0, "tx", 1, 3, 17_500_000, 0.5),
            queue(1, "rx", 0, 4, 31_498_890, 0.9),
            queue(1, "rx", 1, 5, 3_499_922, 0.1),
        ],
        workers: vec![
            worker(2, &["send"], 0.731, 45_120),
            worker(3, &["send"], 0.729, 43_900),
            worker(4, &["receive"], 0.514, 812_000),
            worker(5, &["receive"], 0.071, 39_000),
        ],
        pool: pool(),
        clock: clock(),
        expectations: vec![
            ExpectationResult {
                text: "loss<0.001%".to_owned(),
                actual: Some(LOST as f64 / SENT as f64),
                unit: "ratio".to_owned(),
                met: false,
            },
            ExpectationResult {
                text: "latency_p99<100us".to_owned(),
                actual: Some(8765.0),
                unit: "ns".to_owned(),
                met: true,
            },
        ],
        notes: vec![measure::Note::new(
            "",
            "transparent hugepages are on: page faults may show as latency",
        )],
        ..Summary::default()
    }
}

fn ledger(received: u64) -> Ledger {
    Ledger {
        intended: SENT,
        accepted: SENT,
        unsent: 0,
        received,
        lost_at: named(&[("late", 4), ("rx_missed", 1_230)]),
        places: Vec::new(),
        unexplained: 0,
        arrived: Arrived {
            frames: received + 46,
            received,
            duplicate: 0,
            corrupt: 0,
            late: 4,
            too_old: 0,
            foreign: named(&[("arp", 40), ("other_udp", 2)]),
            answered: 40,
        },
        raw: named(&[("rx_missed", 1_230), ("rx_nombuf", 0)]),
    }
}

/// The quiet case: one stream over the embedded ring, and nothing missing.
pub fn clean() -> Summary {
    let mut summary = lossy();
    summary.received = SENT;
    summary.lost = 0;
    summary.late = 0;
    summary.reordered = 0;
    summary.reorder_extent_max = 0;
    summary.rate_rx_pps = summary.rate_tx_pps;
    summary.ledger = Ledger {
        lost_at: BTreeMap::new(),
        arrived: Arrived {
            frames: SENT,
            received: SENT,
            ..Arrived::default()
        },
        raw: BTreeMap::new(),
        ..ledger(SENT)
    };
    summary.streams = vec![stream("default", SENT, 0, 1)];
    summary.ports = vec![port("ring", "net_ring", 10_000, SENT, SENT, 0)];
    summary.queues = vec![queue(0, "tx", 0, 1, SENT, 1.0), queue(0, "rx", 0, 1, SENT, 1.0)];
    summary.workers = vec![worker(1, &["send", "receive", "reflect"], 0.93, 61_000)];
    summary.expectations.clear();
    summary.notes.clear();
    summary
}

/// A reflector that answered a ping and dropped what it must not return.
pub fn reflected() -> ReflectSummary {
    ReflectSummary {
        version: 2,
        command: "reflect".to_owned(),
        run: "runs/2025-11-20T23-30-45Z-reflect".to_owned(),
        verdict: Validity::Valid,
        received: SENT + 57,
        returned: SENT,
        answered: 44,
        dropped: named(&[("fragment", 5), ("multicast", 8), ("truncated", 0)]),
        rate_rx_pps: 3.5e6,
        rate_tx_pps: 3.5e6,
        duration_s: 12.5,
        ports: vec![port(
            "memif:/run/dropless.sock,server",
            "net_memif",
            100_000,
            SENT + 44,
            SENT + 57,
            0,
        )],
        queues: vec![
            queue(0, "rx", 0, 1, SENT + 57, 1.0),
            queue(0, "tx", 0, 1, SENT + 44, 1.0),
        ],
        workers: vec![worker(1, &["reflect"], 0.61, 33_000)],
        pool: pool(),
        clock: clock(),
        ..ReflectSummary::default()
    }
}

/// An interval of one second with `sent` packets, of which `received` came back, each after `latency_ns`.
pub fn interval(index: u64, sent: u64, received: u64, latency_ns: u64) -> IntervalRow {
    let mut latency = Histogram::new(5);
    latency.record(latency_ns, received);
    let part = |sent: u64, received: u64| IntervalTotals {
        sent,
        received,
        duplicate: 0,
        reordered: 0,
        latency_sum_ns: received * latency_ns,
        latency_min_ns: (received > 0).then_some(latency_ns),
        latency_max_ns: (received > 0).then_some(latency_ns),
    };
    IntervalRow {
        index,
        start_ns: index * 1_000_000_000,
        end_ns: (index + 1) * 1_000_000_000,
        streams: vec![
            part(sent - sent / 4, received - received / 4),
            part(sent / 4, received / 4),
        ],
        corrupt: index,
        unsent: 0,
        latency,
    }
}
