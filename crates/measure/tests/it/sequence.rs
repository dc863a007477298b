//! The sequence window against a model that remembers every number ever seen.
#![allow(clippy::cast_possible_wrap, reason = "test numbers are small")]

use std::collections::HashSet;

use measure::sequence::SEQUENCE_MASK;
use measure::{Outcome, SequenceWindow};
use proptest::prelude::*;

/// Remembers everything; numbers are unwrapped and may be negative (before the first).
struct Model {
    bits: i128,
    next: i128,
    seen: HashSet<i128>,
}

impl Model {
    fn new(bits: u64) -> Model {
        Model {
            bits: i128::from(bits),
            next: 0,
            seen: HashSet::new(),
        }
    }

    /// The unwrapped number closest to the next expected one.
    fn unwrap(&self, sequence: u64) -> i128 {
        let modulus = 1i128 << 48;
        let ahead = (i128::from(sequence) - self.next).rem_euclid(modulus);
        self.next
            + if ahead >= modulus / 2 {
                ahead - modulus
            } else {
                ahead
            }
    }

    fn record(&mut self, sequence: u64, n: u64) -> Outcome {
        let first = self.unwrap(sequence);
        let mut outcome = Outcome::default();
        for number in first..first + i128::from(n) {
            if number < 0 || number < self.next - self.bits {
                outcome.too_old += 1;
            } else if !self.seen.insert(number) {
                outcome.duplicate += 1;
            } else {
                outcome.fresh += 1;
                if number < self.next {
                    let extent = (self.next - number) as u64;
                    outcome.reordered += 1;
                    outcome.extent_max = outcome.extent_max.max(extent);
                } else {
                    self.next = number + 1;
                }
            }
        }
        outcome
    }
}

/// What happens to a lane next.
#[derive(Debug, Clone)]
enum Step {
    /// A run relative to the next expected number.
    Near(i64, u64),
    /// A jump of the order of the whole sequence space.
    Far(u64, u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1u64..200).prop_map(|n| Step::Near(0, n)),
        3 => (-300i64..300, 1u64..150).prop_map(|(offset, n)| Step::Near(offset, n)),
        1 => (-5_000i64..5_000, 0u64..1_500).prop_map(|(offset, n)| Step::Near(offset, n)),
        1 => (0u64..1 << 48, 1u64..100).prop_map(|(to, n)| Step::Far(to, n)),
        1 => ((1u64 << 47) - 300..1 << 47, 1u64..200).prop_map(|(offset, n)| Step::Near(offset as i64, n)),
    ]
}

/// Runs the steps on both and compares every outcome.
fn compare(bits: usize, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut window = SequenceWindow::new(bits);
    let mut model = Model::new(window.bits());
    for step in steps {
        let (sequence, n) = match step {
            Step::Near(offset, n) => (
                window.next_expected().wrapping_add_signed(offset) & SEQUENCE_MASK,
                n,
            ),
            Step::Far(to, n) => (to, n),
        };
        prop_assert_eq!(
            window.record(sequence, n),
            model.record(sequence, n),
            "{} + {}",
            sequence,
            n
        );
        prop_assert_eq!(i128::from(window.next_expected()), model.next.rem_euclid(1 << 48));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6_000))]

    #[test]
    fn equals_the_model(bits in prop::sample::select(vec![64usize, 128, 256, 1024]),
                        steps in prop::collection::vec(step(), 1..60)) {
        compare(bits, steps)?;
    }

    /// A shuffled, duplicated, thinned stream: what a network really does.
    #[test]
    fn equals_the_model_on_a_disturbed_stream(
        disturbances in prop::collection::vec((0u8..20, -40i64..40), 1..400),
    ) {
        let mut numbers = Vec::new();
        for (number, (kind, shift)) in disturbances.into_iter().enumerate() {
            let place = (number as i64 * 4 + if kind < 4 { shift } else { 0 }, number as u64);
            if kind != 5 { numbers.push(place); }
            if kind == 6 { numbers.push((place.0 + shift.abs(), place.1)); }
        }
        numbers.sort_unstable();
        let (mut window, mut model) = (SequenceWindow::new(64), Model::new(64));
        for (_, number) in numbers {
            prop_assert_eq!(window.record(number, 1), model.record(number, 1));
        }
    }
}

#[test]
fn the_numbers_wrap_at_48_bits() {
    let mut window = SequenceWindow::new(256);
    assert_eq!(window.record(0, 1).fresh, 1);
    // Less than half the space ahead, then the other half up to the edge.
    assert_eq!(window.record((1 << 47) - 1, 1).fresh, 1);
    assert_eq!(
        window.record((1 << 48) - 10, 5),
        Outcome {
            fresh: 5,
            ..Outcome::default()
        }
    );
    assert_eq!(
        window.record((1 << 48) - 5, 10),
        Outcome {
            fresh: 10,
            ..Outcome::default()
        }
    );
    assert_eq!(window.next_expected(), 5);
    assert_eq!(
        window.record((1 << 48) - 3, 6),
        Outcome {
            duplicate: 6,
            ..Outcome::default()
        }
    );
}

#[test]
fn numbers_before_the_first_are_too_old() {
    let mut window = SequenceWindow::new(64);
    assert_eq!(
        window.record(SEQUENCE_MASK - 1, 4),
        Outcome {
            too_old: 2,
            fresh: 2,
            ..Outcome::default()
        }
    );
    assert_eq!(
        window.record(SEQUENCE_MASK, 2),
        Outcome {
            too_old: 1,
            duplicate: 1,
            ..Outcome::default()
        }
    );
}

#[test]
fn the_extent_is_the_distance_behind_the_next_expected() {
    let mut window = SequenceWindow::new(1024);
    window.record(0, 10);
    window.record(20, 10);
    let outcome = window.record(12, 3);
    assert_eq!(
        outcome,
        Outcome {
            fresh: 3,
            reordered: 3,
            extent_max: 18,
            ..Outcome::default()
        }
    );
}

#[test]
fn odd_sizes_become_a_power_of_two() {
    assert_eq!(SequenceWindow::new(0).bits(), 64);
    assert_eq!(SequenceWindow::new(1000).bits(), 1024);
}

#[test]
fn outcomes_add_up() {
    let mut window = SequenceWindow::new(1024);
    let mut total = Outcome::default();
    for (sequence, n) in [(0, 10), (20, 10), (12, 3), (18, 1), (0, 2)] {
        total += window.record(sequence, n);
    }
    let sum = Outcome {
        fresh: 24,
        duplicate: 2,
        reordered: 4,
        extent_max: 18,
        too_old: 0,
    };
    assert_eq!(total, sum);
}
