//! The schedule: shares exact to the packet, no prefix off by a whole packet, and what does not fit.
#![allow(clippy::cast_possible_wrap, reason = "test numbers are small")]

use measure::schedule::ENTRIES_MAX;
use measure::{Entry, Schedule, ScheduleError, SizeMix, StreamWeights};
use proptest::prelude::*;

fn weights(weight: u64, templates: &[u32]) -> StreamWeights {
    StreamWeights {
        weight,
        templates: templates.to_vec(),
    }
}

/// How often each stream and each (global) template stands in the cycle.
fn counts(schedule: &Schedule, streams: &[StreamWeights]) -> (Vec<u64>, Vec<u64>) {
    let templates = streams.iter().map(|stream| stream.templates.len()).sum();
    let (mut by_stream, mut by_template) = (vec![0; streams.len()], vec![0; templates]);
    for entry in schedule.entries() {
        by_stream[usize::from(entry.stream)] += 1;
        by_template[entry.template as usize] += 1;
    }
    (by_stream, by_template)
}

fn streams() -> impl Strategy<Value = Vec<StreamWeights>> {
    let templates = prop::collection::vec(0u32..8, 1..6).prop_filter("a share", |t| t.iter().any(|&w| w > 0));
    prop::collection::vec(
        (1u64..30, templates).prop_map(|(weight, t)| weights(weight, &t)),
        1..8,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn shares_are_exact_and_smooth(streams in streams()) {
        let schedule = Schedule::build(&streams).unwrap();
        prop_assume!(schedule.share_error() <= 0.0);
        let length = schedule.entries().len() as u64;
        let total: u64 = streams.iter().map(|stream| stream.weight).sum();
        let (by_stream, by_template) = counts(&schedule, &streams);
        let mut template = 0;
        for (stream, count) in streams.iter().zip(&by_stream) {
            prop_assert_eq!(count * total, length * stream.weight);
            let sum: u64 = stream.templates.iter().map(|&weight| u64::from(weight)).sum();
            for &weight in &stream.templates {
                prop_assert_eq!(by_template[template] * sum, count * u64::from(weight));
                template += 1;
            }
        }
        smooth(&schedule, &by_stream)?;
    }

    /// Turns change no share and no stream's own order; each is as long as it was asked to be.
    #[test]
    fn turns_keep_the_shares(streams in streams(), turn in 1usize..20) {
        let schedule = Schedule::build(&streams).unwrap();
        let turns = schedule.clone().in_turns(turn);
        let turn = turn.min(ENTRIES_MAX / schedule.entries().len());
        prop_assert_eq!(turns.entries().len(), schedule.entries().len() * turn);
        for (index, before) in schedule.entries().iter().enumerate() {
            let own = &turns.entries()[index * turn..][..turn];
            prop_assert!(own.iter().all(|entry| entry.stream == before.stream));
        }
        for stream in 0..streams.len() {
            let of = |schedule: &Schedule| {
                let own = |entry: &&Entry| usize::from(entry.stream) == stream;
                schedule.entries().iter().filter(own).copied().collect::<Vec<_>>()
            };
            prop_assert_eq!(of(&turns), of(&schedule).repeat(turn));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Rates without a common cycle are approximated, and the error is what the schedule says.
    #[test]
    fn crooked_rates_are_near_and_owned_up_to(rates in prop::collection::vec(1e3..1e8f64, 2..20)) {
        let streams: Vec<_> = rates.iter().map(|&rate| (rate, SizeMix::Imix(64))).collect();
        let streams = StreamWeights::of(&streams);
        let schedule = Schedule::build(&streams).unwrap();
        let length = schedule.entries().len();
        prop_assert!(length <= ENTRIES_MAX);
        let total: f64 = streams.iter().map(|stream| stream.weight as f64).sum();
        let (by_stream, _) = counts(&schedule, &streams);
        for (stream, count) in streams.iter().zip(&by_stream) {
            let wanted = stream.weight as f64 / total;
            let error = (*count as f64 / length as f64 / wanted - 1.0).abs();
            prop_assert!(error <= schedule.share_error() + 1e-9);
            // A stream whose share is worth many rounds is close to it.
            if wanted * ENTRIES_MAX as f64 > 2_400.0 { prop_assert!(error < 0.02, "{error}"); }
        }
        smooth(&schedule, &by_stream)?;
    }
}

/// In no prefix is any stream a whole packet off its share.
fn smooth(schedule: &Schedule, by_stream: &[u64]) -> Result<(), TestCaseError> {
    let length = schedule.entries().len() as i64;
    let mut seen = vec![0i64; by_stream.len()];
    for (place, entry) in schedule.entries().iter().enumerate() {
        seen[usize::from(entry.stream)] += 1;
        for (stream, &count) in by_stream.iter().enumerate() {
            let off = seen[stream] * length - (place as i64 + 1) * count as i64;
            prop_assert!(
                off.abs() < length,
                "stream {stream} is off by {off}/{length} at {place}"
            );
        }
    }
    Ok(())
}

#[test]
fn one_stream_of_one_size_is_one_entry() {
    let schedule = Schedule::build(&[weights(7, &[3])]).unwrap();
    assert_eq!(
        schedule.entries(),
        [Entry {
            stream: 0,
            template: 0
        }]
    );
    assert!(schedule.share_error() <= 0.0);
}

#[test]
fn imix_is_seven_to_four_to_one() {
    let streams = StreamWeights::of(&[(1e6, SizeMix::Imix(64))]);
    let schedule = Schedule::build(&streams).unwrap();
    assert_eq!(counts(&schedule, &streams).1, [7, 4, 1]);
}

#[test]
fn a_range_has_every_size_once() {
    let streams = StreamWeights::of(&[(3.5e6, SizeMix::Range(64, 1518))]);
    let schedule = Schedule::build(&streams).unwrap();
    assert_eq!(schedule.entries().len(), 1455);
    assert!(counts(&schedule, &streams).1.iter().all(|&count| count == 1));
}

#[test]
fn small_rates_have_their_shares_too() {
    for (rates, wanted) in [
        ([1e-5, 4e-5], vec![1, 4]),
        ([2e-4, 1.0], vec![1, 5000]),
        ([0.25, 1.5], vec![1, 6]),
    ] {
        let streams = StreamWeights::of(&rates.map(|pps| (pps, SizeMix::List(vec![64]))));
        let schedule = Schedule::build(&streams).unwrap();
        assert_eq!(counts(&schedule, &streams).0, wanted, "{rates:?}");
        assert!(schedule.share_error() <= 0.0);
    }
    let streams = StreamWeights::of(&[1e-5, 1e12].map(|pps| (pps, SizeMix::List(vec![64]))));
    assert!(
        Schedule::build(&streams).unwrap().share_error() > 1e3,
        "it is told"
    );
}

#[test]
fn two_to_one_alternates() {
    let schedule = Schedule::build(&[weights(2, &[1]), weights(1, &[1])]).unwrap();
    let order: Vec<u16> = schedule.entries().iter().map(|entry| entry.stream).collect();
    assert_eq!(order, [0, 1, 0]);
}

#[test]
fn templates_are_numbered_over_all_streams() {
    let schedule = Schedule::build(&[weights(1, &[1, 1]), weights(1, &[1, 1, 1])]).unwrap();
    for entry in schedule.entries() {
        assert_eq!(entry.stream == 0, entry.template < 2);
    }
}

#[test]
fn a_thousand_streams_fit() {
    let streams = StreamWeights::of(&vec![(1e3, SizeMix::Imix(64)); 1000]);
    let schedule = Schedule::build(&streams).unwrap();
    assert_eq!((schedule.entries().len(), schedule.share_error()), (12_000, 0.0));
}

#[test]
fn what_cannot_be_is_said() {
    assert_eq!(Schedule::build(&[]), Err(ScheduleError::NoStreams));
    assert_eq!(
        Schedule::build(&[weights(1, &[])]),
        Err(ScheduleError::Empty { stream: 0 })
    );
    assert_eq!(
        Schedule::build(&[weights(1, &[1]), weights(1, &[0])]),
        Err(ScheduleError::Empty { stream: 1 })
    );
    let many = StreamWeights::of(&vec![(1e3, SizeMix::Range(64, 1518)); 1000]);
    let error = Schedule::build(&many).unwrap_err();
    assert_eq!(error, ScheduleError::TooMany { needed: 1_455_000 });
    assert!(error.to_string().contains("fewer streams or fewer sizes"));
}
