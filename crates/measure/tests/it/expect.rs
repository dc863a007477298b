//! Every metric, operator and unit of `--expect`, and every way to write it wrong.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test helper shows the error it met"
)]

use measure::ledger::NOT_AWAITED;
use measure::metric::{Measured, metric_names};
use measure::result::Percentiles;
use measure::{
    Balance, CaptureSummary, ConsumerSummary, Expectation, ForwardSummary, Ledger, Place, ReplaySummary,
    Summary,
};

/// A result in which every metric has a value of its own.
fn summary() -> Summary {
    Summary {
        sent: 1_000_000,
        received: 999_990,
        lost: 10,
        duplicate: 2,
        reordered: 3,
        corrupt: 4,
        late: 5,
        unexplained: 6,
        rate_asked_pps: Some(3.5e6),
        rate_tx_pps: 3.5e6,
        rate_rx_pps: 3.4e6,
        latency_ns: Percentiles {
            min: Some(1_000),
            p50: Some(5_000),
            p90: Some(9_000),
            p99: Some(99_000),
            p999: Some(999_000),
            max: Some(2_000_000),
            mean: Some(5_500.5),
        },
        latency_scheduled_ns: Percentiles {
            p50: Some(6_000),
            p90: Some(10_000),
            p99: Some(200_000),
            p999: Some(2_500_000),
            max: Some(5_000_000),
            ..Percentiles::default()
        },
        jitter_ns: Some(123.0),
        pdv_ns: Some(998_000),
        ledger: Ledger {
            unsent: 7,
            ..Ledger::default()
        },
        ..Summary::default()
    }
}

fn met(text: &str) -> bool {
    text.parse::<Expectation>()
        .unwrap_or_else(|error| panic!("{error}"))
        .evaluate(&summary())
        .met
}

/// A metric: a condition that holds, one that does not, and its value and unit.
type Row = (&'static str, &'static str, &'static str, f64, &'static str);

/// Those of a run that sends.
const METRICS: &[Row] = &[
    ("loss", "loss<0.0011%", "loss<0.001%", 1e-5, "ratio"),
    ("lost", "lost<=10", "lost<10", 10.0, "packets"),
    ("sent", "sent==1M", "sent>1M", 1e6, "packets"),
    (
        "received",
        "received>=999_990",
        "received==sent",
        999_990.0,
        "packets",
    ),
    ("unsent", "unsent<10", "unsent==0", 7.0, "packets"),
    ("duplicate", "duplicate<5", "duplicate==0", 2.0, "packets"),
    ("reordered", "reordered!=0", "reordered<3", 3.0, "packets"),
    ("corrupt", "corrupt==4", "corrupt!=4", 4.0, "packets"),
    ("late", "late<1k", "late==0", 5.0, "packets"),
    ("unexplained", "unexplained<=6", "unexplained==0", 6.0, "packets"),
    (
        "latency_min",
        "latency_min<=1us",
        "latency_min<1us",
        1_000.0,
        "ns",
    ),
    (
        "latency_mean",
        "latency_mean<5.6us",
        "latency_mean<5.5us",
        5_500.5,
        "ns",
    ),
    (
        "latency_p50",
        "latency_p50==5us",
        "latency_p50>5us",
        5_000.0,
        "ns",
    ),
    (
        "latency_p90",
        "latency_p90<10us",
        "latency_p90<9000ns",
        9_000.0,
        "ns",
    ),
    (
        "latency_p99",
        "latency_p99<100us",
        "latency_p99<99us",
        99_000.0,
        "ns",
    ),
    (
        "latency_p999",
        "latency_p999<1ms",
        "latency_p999<0.9ms",
        999_000.0,
        "ns",
    ),
    ("latency_max", "latency_max<1s", "latency_max<2ms", 2e6, "ns"),
    (
        "latency_scheduled_p50",
        "latency_scheduled_p50<7us",
        "latency_scheduled_p50<=latency_p50",
        6_000.0,
        "ns",
    ),
    (
        "latency_scheduled_p90",
        "latency_scheduled_p90<20us",
        "latency_scheduled_p90<10us",
        10_000.0,
        "ns",
    ),
    (
        "latency_scheduled_p99",
        "latency_scheduled_p99<1ms",
        "latency_scheduled_p99<100us",
        200_000.0,
        "ns",
    ),
    (
        "latency_scheduled_p999",
        "latency_scheduled_p999<3ms",
        "latency_scheduled_p999<1ms",
        2.5e6,
        "ns",
    ),
    (
        "latency_scheduled_max",
        "latency_scheduled_max<1s",
        "latency_scheduled_max<=latency_max",
        5e6,
        "ns",
    ),
    ("jitter", "jitter<124ns", "jitter<123ns", 123.0, "ns"),
    ("pdv", "pdv<latency_p999", "pdv<latency_p99", 998_000.0, "ns"),
    ("rate_tx", "rate_tx>=3.5Mpps", "rate_tx>3500kpps", 3.5e6, "pps"),
    ("rate_rx", "rate_rx>=1Mpps", "rate_rx>=rate_tx", 3.4e6, "pps"),
];

/// Nobody waits for what a run sends that only sends: that none was lost is nothing that was measured.
#[test]
fn what_only_sends_has_no_figure_of_what_comes_back() {
    let mut summary = summary();
    summary
        .ledger
        .lost_at
        .insert(NOT_AWAITED.to_owned(), summary.sent);
    (summary.lost, summary.duplicate) = (0, 0);
    for text in [
        "loss==0",
        "lost==0",
        "duplicate==0",
        "late<10",
        "received<=sent",
        "rate_rx<1Gpps",
    ] {
        let result = text.parse::<Expectation>().unwrap().evaluate(&summary);
        assert_eq!((result.met, result.actual), (false, None), "{text}");
    }
    assert!("sent==1M".parse::<Expectation>().unwrap().evaluate(&summary).met);
}

/// Each metric of the result has its own row, whose value no other has.
fn compare<S: Measured>(summary: &S, metrics: &[Row]) {
    for &(name, holds, fails, value, unit) in metrics {
        let judge = |text: &str| text.parse::<Expectation<S>>().unwrap().evaluate(summary);
        let result = judge(holds);
        assert!(result.met, "{holds}: {result:?}");
        assert_eq!(
            (result.actual, result.unit.as_str(), result.text.as_str()),
            (Some(value), unit, holds)
        );
        assert!(!judge(fails).met, "{fails}");
        for text in [holds, fails] {
            let of = text.split(['<', '>', '=', '!']).next();
            assert_eq!(of, Some(name), "{text}");
        }
        let same = metrics.iter().filter(|other| (other.3, other.4) == (value, unit));
        assert_eq!(same.count(), 1, "{name} has the value of another metric");
    }
    let mut tested: Vec<&str> = metrics.iter().map(|metric| metric.0).collect();
    let mut there: Vec<&str> = metric_names::<S>().collect();
    tested.sort_unstable();
    there.sort_unstable();
    assert_eq!(tested, there, "a metric has no test");
}

#[test]
fn every_metric_is_compared() {
    compare(&summary(), METRICS);
    compare(&capture(), CAPTURE);
    compare(&replay(), REPLAY);
    compare(&forward(), FORWARD);
}

/// A ledger of places that were charged with all that they counted, but `unexplained`.
fn ledger(left: u64, places: &[(&'static str, u64)], unexplained: u64) -> Balance {
    let charged: u64 = places.iter().map(|(_, count)| count).sum();
    let counted = places.iter().map(|(name, count)| (Place::named(name), *count));
    Balance::of(left + charged + unexplained, left, counted)
}

/// Of 1,000 that came 430 were not wanted, and 70 and one that a consumer did not get are lost.
fn capture() -> CaptureSummary {
    let places = [
        ("filtered", 300),
        ("sampled_out", 130),
        ("ring_full", 50),
        ("rx_missed", 15),
    ];
    CaptureSummary {
        received: 985,
        captured: 500,
        late: 7,
        ledger: ledger(500, &places, 5),
        consumers: vec![ConsumerSummary {
            lost: 1,
            ..ConsumerSummary::default()
        }],
        rate_rx_pps: 492.5,
        ..CaptureSummary::default()
    }
}

const CAPTURE: &[Row] = &[
    ("loss", "loss<7.2%", "loss<7%", 0.071, "ratio"),
    ("lost", "lost==71", "lost<71", 71.0, "packets"),
    ("came", "came==1k", "came>1k", 1000.0, "packets"),
    ("received", "received==985", "received==came", 985.0, "packets"),
    ("captured", "captured==500", "captured>500", 500.0, "packets"),
    ("late", "late<8", "late==0", 7.0, "packets"),
    (
        "rx_missed",
        "rx_missed==15",
        "rx_missed==ring_full",
        15.0,
        "packets",
    ),
    ("ring_full", "ring_full==50", "ring_full<50", 50.0, "packets"),
    ("filtered", "filtered>200", "filtered>300", 300.0, "packets"),
    (
        "sampled_out",
        "sampled_out<filtered",
        "sampled_out==0",
        130.0,
        "packets",
    ),
    ("unexplained", "unexplained==5", "unexplained==0", 5.0, "packets"),
    ("rate_rx", "rate_rx<1kpps", "rate_rx>1kpps", 492.5, "pps"),
];

fn percentiles(scale: u64) -> Percentiles {
    Percentiles {
        p50: Some(scale),
        p99: Some(10 * scale),
        p999: Some(100 * scale),
        max: Some(1000 * scale),
        ..Percentiles::default()
    }
}

/// The port sent 960 of 980 that its driver took.
fn replay() -> ReplaySummary {
    ReplaySummary {
        read: 1000,
        sent: 980,
        ledger: ledger(960, &[("cut_off", 8), ("too_long", 12), ("tx_error", 17)], 3),
        rate_tx_pps: 96.5,
        gap_error_ns: percentiles(7),
        late_ns: percentiles(9),
        ..ReplaySummary::default()
    }
}

const REPLAY: &[Row] = &[
    ("loss", "loss<3.3%", "loss<3.1%", 0.032, "ratio"),
    ("lost", "lost<=32", "lost<32", 32.0, "packets"),
    ("sent", "sent==960", "sent==980", 960.0, "packets"),
    ("unexplained", "unexplained<=3", "unexplained==0", 3.0, "packets"),
    ("rate_tx", "rate_tx>=96pps", "rate_tx>=1kpps", 96.5, "pps"),
    (
        "gap_error_p50",
        "gap_error_p50==7ns",
        "gap_error_p50<7ns",
        7.0,
        "ns",
    ),
    (
        "gap_error_p99",
        "gap_error_p99<lateness_p99",
        "gap_error_p99<70ns",
        70.0,
        "ns",
    ),
    (
        "gap_error_p999",
        "gap_error_p999==700ns",
        "gap_error_p999<0.7us",
        700.0,
        "ns",
    ),
    (
        "gap_error_max",
        "gap_error_max==7us",
        "gap_error_max<7us",
        7000.0,
        "ns",
    ),
    ("lateness_p50", "lateness_p50==9ns", "lateness_p50<9ns", 9.0, "ns"),
    (
        "lateness_p99",
        "lateness_p99==90ns",
        "lateness_p99<90ns",
        90.0,
        "ns",
    ),
    (
        "lateness_p999",
        "lateness_p999==900ns",
        "lateness_p999<0.9us",
        900.0,
        "ns",
    ),
    (
        "lateness_max",
        "lateness_max==9us",
        "lateness_max<9us",
        9000.0,
        "ns",
    ),
];

/// Of 1,000 that came 100 were denied; the other port sent 850 of 870 that its driver took.
fn forward() -> ForwardSummary {
    let places = [
        ("denied", 100),
        ("tx_full", 11),
        ("rx_missed", 13),
        ("tx_dropped", 20),
    ];
    ForwardSummary {
        received: 987,
        forwarded: 870,
        ledger: ledger(850, &places, 6),
        rate_rx_pps: 98.7,
        rate_tx_pps: 85.5,
        ..ForwardSummary::default()
    }
}

const FORWARD: &[Row] = &[
    ("loss", "loss<=5%", "loss<5%", 0.05, "ratio"),
    ("lost", "lost==50", "lost<50", 50.0, "packets"),
    ("came", "came==1k", "came>1k", 1000.0, "packets"),
    ("received", "received<came", "received==came", 987.0, "packets"),
    ("forwarded", "forwarded==850", "forwarded==870", 850.0, "packets"),
    ("denied", "denied<=100", "denied==0", 100.0, "packets"),
    ("tx_full", "tx_full==11", "tx_full==0", 11.0, "packets"),
    (
        "rx_missed",
        "rx_missed==13",
        "rx_missed==tx_full",
        13.0,
        "packets",
    ),
    ("unexplained", "unexplained<=6", "unexplained==0", 6.0, "packets"),
    ("rate_rx", "rate_rx<99pps", "rate_rx>=1kpps", 98.7, "pps"),
    ("rate_tx", "rate_tx<rate_rx", "rate_tx>=rate_rx", 85.5, "pps"),
];

#[test]
fn every_unit_is_read() {
    for text in [
        "loss<0.0011%",
        "loss<10.1ppm",
        "lost<0.01k",
        "latency_p50<5001ns",
        "latency_p50<5.001us",
        "latency_p50<5.001µs",
        "latency_p50<0.005001ms",
        "latency_p50<0.000005001s",
        "rate_rx<3400001pps",
        "rate_rx<3401kpps",
        "rate_rx<3.5mpps",
        "rate_rx<0.1Gpps",
        " rate_rx  <  3.5 Mpps ",
    ] {
        // Lost is 10 itself: 0.01 k is not more.
        assert_eq!(met(text), text != "lost<0.01k", "{text}");
    }
}

#[test]
fn nothing_received_meets_no_latency() {
    let nothing = Summary {
        latency_ns: Percentiles::default(),
        sent: 0,
        lost: 0,
        ..summary()
    };
    for text in [
        "latency_p99<100s",
        "latency_p99>=0ns",
        "latency_p99!=5us",
        "loss<100%",
        "loss==0",
        "pdv<latency_min",
    ] {
        let result = text.parse::<Expectation>().unwrap().evaluate(&nothing);
        assert!(!result.met, "{text}");
    }
    assert_eq!(
        "loss<1%"
            .parse::<Expectation>()
            .unwrap()
            .evaluate(&nothing)
            .actual,
        None
    );
}

#[test]
fn wrong_expectations_say_what_is_right() {
    let says = |text: &str, part: &str| {
        let error = text.parse::<Expectation>().unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
        assert!(!error.contains('\n'));
    };
    says("loss", "has no comparison");
    says("loss=1%", "has no comparison");
    says("", "has no comparison");
    says("los<1%", "there is no metric \"los\"; there are loss, lost, sent");
    says("<1%", "there is no metric \"\"");
    for text in [
        "loss<",
        "loss<5us",
        "loss<abc",
        "loss<-1%",
        "loss<1e-5",
        "loss<0.1",
        "loss<sent",
        "loss<<1%",
    ] {
        says(text, "write a number in % or ppm");
    }
    for text in [
        "latency_p99<100",
        "latency_p99<1h",
        "latency_p99<1%",
        "latency_p99<received",
    ] {
        says(text, "write a number in ns, us, ms or s");
    }
    says("rate_rx>=10Gbps", "pps, kpps, Mpps or Gpps");
    says("lost<1%", "a whole number, k or M");
}

/// A capture has metrics of its own; those of a sender it has not. Nothing that came meets no loss.
#[test]
fn a_capture_is_asked_about_its_own_figures() {
    let nothing = "loss<1%".parse::<Expectation<CaptureSummary>>().unwrap();
    assert!(!nothing.evaluate(&CaptureSummary::default()).met);
    let error = "latency_p99<1ms"
        .parse::<Expectation<CaptureSummary>>()
        .unwrap_err();
    assert!(error.to_string().contains("sampled_out"), "{error}");
}

#[test]
fn a_bound_is_the_number_that_was_written() {
    let result = |sent, lost| Summary {
        sent,
        lost,
        ..Summary::default()
    };
    let met = |text: &str, result: &Summary| text.parse::<Expectation>().unwrap().evaluate(result).met;
    // Each tenth of a percent up to 10 %: what reaches the bound is not below it, and not above it.
    for lost in 1..=100_u64 {
        let result = result(1000, lost);
        let percent = format!("{}%", lost as f64 / 10.0);
        for bound in [percent, format!("{}ppm", lost * 1000)] {
            assert!(!met(&format!("loss<{bound}"), &result), "{bound}");
            assert!(met(&format!("loss<={bound}"), &result), "{bound}");
        }
    }
    for sent in (100..=100_000_u64).step_by(100) {
        let bound = format!("sent=={}k", sent as f64 / 1000.0);
        assert!(met(&bound, &result(sent, 0)), "{bound}");
    }
}
