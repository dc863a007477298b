//! The result format: its keys, its round trip, old files, and exit codes.

use measure::result::{ExpectationResult, Percentiles, StreamSummary};
use measure::summary::{EXIT_CLEAN, EXIT_INVALID, EXIT_LOSS};
use measure::{Histogram, ReflectSummary, Summary, VERSION, Validity};

fn valid() -> Summary {
    Summary {
        verdict: Validity::Valid,
        sent: 10,
        received: 10,
        ..Summary::default()
    }
}

#[test]
fn the_promised_keys_are_there() {
    let mut summary = valid();
    summary.ledger.lost_at.insert("rx_missed".into(), 1);
    summary.streams.push(StreamSummary {
        name: "a".into(),
        ..StreamSummary::default()
    });
    let json = serde_json::to_value(&summary).unwrap();
    for path in [
        "/version",
        "/verdict",
        "/reasons",
        "/sent",
        "/received",
        "/lost",
        "/duplicate",
        "/reordered",
        "/reorder_extent_max",
        "/corrupt",
        "/late",
        "/unexplained",
        "/rate_asked_pps",
        "/rate_tx_pps",
        "/rate_rx_pps",
        "/rate_tx_bps_l1",
        "/rate_tx_bps_l2",
        "/duration_s",
        "/latency_ns/min",
        "/latency_ns/p50",
        "/latency_ns/p90",
        "/latency_ns/p99",
        "/latency_ns/p999",
        "/latency_ns/max",
        "/latency_ns/mean",
        "/latency_scheduled_ns/p99",
        "/jitter_ns",
        "/pdv_ns",
        "/gap_ns/asked",
        "/gap_ns/p50",
        "/gap_ns/max",
        "/ledger/intended",
        "/ledger/accepted",
        "/ledger/unsent",
        "/ledger/lost_at/rx_missed",
        "/ledger/unexplained",
        "/ledger/arrived/frames",
        "/ledger/arrived/foreign",
        "/ledger/arrived/answered",
        "/ledger/raw",
        "/streams/0/name",
        "/streams/0/latency_ns/p99",
        "/streams/0/flows_sent",
        "/ports",
        "/queues",
        "/workers",
        "/pool/leaked",
        "/clock/source",
        "/expectations",
        "/notes",
        "/command",
        "/run",
    ] {
        assert!(json.pointer(path).is_some(), "{path} is missing");
    }
    assert_eq!(json["verdict"], "valid");
    assert_eq!(json["version"], VERSION);
    assert!(
        json["latency_ns"]["p50"].is_null(),
        "nothing received has no latency"
    );

    let json = serde_json::to_value(ReflectSummary::default()).unwrap();
    for path in [
        "/received",
        "/returned",
        "/answered",
        "/dropped",
        "/faults",
        "/verdict",
        "/pool",
        "/command",
        "/run",
    ] {
        assert!(json.pointer(path).is_some(), "{path} is missing");
    }
    assert_eq!(json["verdict"], "invalid");
}

#[test]
fn a_summary_reads_back_as_it_was() {
    let mut summary = valid();
    summary.latency_ns = Percentiles {
        min: Some(1),
        mean: Some(1.5),
        ..Percentiles::default()
    };
    let back: Summary = serde_json::from_str(&serde_json::to_string(&summary).unwrap()).unwrap();
    assert_eq!(back, summary);
    let reflect = ReflectSummary {
        received: 7,
        ..ReflectSummary::default()
    };
    let back: ReflectSummary = serde_json::from_str(&serde_json::to_string(&reflect).unwrap()).unwrap();
    assert_eq!(back, reflect);
}

#[test]
fn a_file_without_later_keys_still_loads() {
    let old: Summary =
        serde_json::from_str(r#"{"version":1,"verdict":"valid","sent":3,"later_key":{}}"#).unwrap();
    assert_eq!((old.sent, old.verdict), (3, Validity::Valid));
    let empty: Summary = serde_json::from_str("{}").unwrap();
    assert_eq!(
        empty.verdict,
        Validity::Invalid,
        "what does not say it is valid is not"
    );
}

#[test]
fn exit_codes() {
    assert_eq!(valid().exit_code(), EXIT_CLEAN);
    for dirty in [
        Summary { lost: 1, ..valid() },
        Summary {
            duplicate: 1,
            ..valid()
        },
        Summary {
            corrupt: 1,
            ..valid()
        },
    ] {
        assert_eq!(dirty.exit_code(), EXIT_LOSS);
    }
    assert_eq!(
        Summary {
            verdict: Validity::Invalid,
            ..valid()
        }
        .exit_code(),
        EXIT_INVALID
    );
    assert_eq!(Summary::default().exit_code(), EXIT_INVALID);
}

#[test]
fn expectations_decide_instead_of_plain_loss() {
    let expectation = |met| ExpectationResult {
        text: "loss<1%".into(),
        met,
        ..ExpectationResult::default()
    };
    let lossy = Summary { lost: 1, ..valid() };
    assert_eq!(
        Summary {
            expectations: vec![expectation(true)],
            ..lossy.clone()
        }
        .exit_code(),
        EXIT_CLEAN
    );
    let one_failed = vec![expectation(true), expectation(false)];
    assert_eq!(
        Summary {
            expectations: one_failed.clone(),
            ..valid()
        }
        .exit_code(),
        EXIT_LOSS
    );
    let invalid = Summary {
        verdict: Validity::Invalid,
        expectations: one_failed,
        ..valid()
    };
    assert_eq!(invalid.exit_code(), EXIT_INVALID);
}

#[test]
fn a_reflector_is_clean_or_invalid() {
    let mut reflect = ReflectSummary::default();
    assert_eq!(reflect.exit_code(), EXIT_INVALID);
    reflect.verdict = Validity::Valid;
    assert_eq!(reflect.exit_code(), EXIT_CLEAN);
}

#[test]
fn percentiles_of_nothing_are_null() {
    assert_eq!(Percentiles::from(&Histogram::new(10)), Percentiles::default());
}
