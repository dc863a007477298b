//! Our `MLRsearch` beside its reference implementation (a Python package), over the same paths on paper.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Need, oracle, require};
use measure::search::{Ceiling, Goal, GoalResult, Mlr, ModelPath, Range, Search, Step};
use serde_json::{Value, json};

const CASES: u64 = 120;
const SECOND_NS: f64 = 1e9;

/// Numbers from 0 to 1 that look random and are always the same: `of` names the purpose, `seed` the case.
fn spread(seed: u64, of: u64) -> f64 {
    let mut x = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ of.wrapping_mul(0xD1B5_4A32_D192_ED03);
    x = (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 32)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((x ^ (x >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

fn pick<T: Copy>(from: &[T], seed: u64, of: u64) -> T {
    from[(spread(seed, of) * from.len() as f64) as usize]
}

struct Case {
    range: Range,
    path: ModelPath,
    goals: Vec<Goal>,
}

impl Case {
    fn of(seed: u64) -> Self {
        let range = Range {
            min_pps: 9001.0,
            max_pps: 1e5 * 1000_f64.powf(spread(seed, 1)),
            ceiling: Ceiling::Asked,
        };
        let final_s = pick(&[1.0, 5.0], seed, 2);
        let mut goals = vec![Goal::ndr(), Goal::pdr()];
        for goal in &mut goals {
            goal.exceed_ratio = pick(&[0.5, 0.3, 0.0], seed, 3);
            goal.relative_width = pick(&[0.005, 0.02, 0.05], seed, 4);
            goal.final_duration_ns = (final_s * SECOND_NS) as u64;
            goal.duration_sum_ns = (pick(&[21.0, 5.0], seed, 5) * SECOND_NS) as u64;
        }
        // Below, within and above the range.
        let limit_pps = 5000.0 * (1.3 * range.max_pps / 5000.0).powf(spread(seed, 6));
        let path = ModelPath {
            buffer: pick(&[0.0, 0.1], seed, 7) * limit_pps.min(range.max_pps),
            ..ModelPath::limited(limit_pps)
        };
        Self { range, path, goals }
    }

    fn json(&self) -> Value {
        let seconds = |ns: u64| ns as f64 / SECOND_NS;
        let goal = |goal: &Goal| {
            json!({
                "loss": goal.loss_ratio, "exceed": goal.exceed_ratio, "width": goal.relative_width,
                "initial": seconds(goal.initial_duration_ns), "final": seconds(goal.final_duration_ns),
                "sum": seconds(goal.duration_sum_ns),
            })
        };
        json!({
            "min": self.range.min_pps, "max": self.range.max_pps,
            "limit": self.path.limit_pps, "buffer": self.path.buffer,
            "goals": self.goals.iter().map(goal).collect::<Vec<_>>(),
        })
    }

    /// Our answers, and the seconds that our trials took.
    fn ours(&self) -> (Vec<GoalResult>, f64) {
        let mut search = Search::Mlr(Mlr::new(self.goals.clone(), self.range));
        while let Step::Trial(ask, _) = search.next() {
            search.record(&self.path.run(ask, &mut || 0.5));
        }
        let result = search.result();
        assert!(result.complete);
        (result.goals, result.seconds)
    }
}

fn ask_oracle(cases: &[Case]) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/mlrsearch.py");
    let mut child = Command::new("python3")
        .arg(script)
        .env("PYTHONPATH", oracle())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starting python3");
    let text = Value::from(cases.iter().map(Case::json).collect::<Vec<_>>()).to_string();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .expect("asking the oracle");
    let output = child.wait_with_output().expect("the oracle's answer");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("the oracle answers in JSON")
}

/// Both ends agree within the goal's width: two intervals of that width around one truth overlap.
fn assert_agree(seed: u64, case: &Case, ours: &GoalResult, theirs: &Value, goal: &Goal) {
    let told = || {
        format!(
            "case {seed}, {}: ours {ours:?}, theirs {theirs}, {:?}",
            goal.name, case.path
        )
    };
    let their = |name: &str| theirs[name].as_f64();
    let rate = |bound: Option<measure::search::Bound>| bound.map(|bound| bound.rate_pps);
    // A hair for the rates' rounding to whole packets, here and there.
    let width = goal.relative_width * 1.05 + 2.0 / case.range.min_pps;
    for (mine, other) in [
        (rate(ours.lower), their("lower")),
        (rate(ours.upper), their("upper")),
        (ours.conditional_throughput_pps, their("conditional")),
    ] {
        match (mine, other) {
            (Some(mine), Some(other)) => {
                assert!(
                    (mine - other).abs() / mine.max(other) <= width,
                    "{mine} and {other}: {}",
                    told()
                );
            }
            (None, None) => {}
            // One of them ends at the edge of the range, the other less than a width from it.
            (Some(one), None) | (None, Some(one)) => {
                let edge = [case.range.min_pps, case.range.max_pps];
                assert!(
                    edge.iter().any(|edge| (one - edge).abs() / edge <= width),
                    "{one}: {}",
                    told()
                );
            }
        }
    }
    let (lower, upper) = (
        rate(ours.lower).unwrap_or(0.0),
        rate(ours.upper).unwrap_or(f64::INFINITY),
    );
    let (their_lower, their_upper) = (
        their("lower").unwrap_or(0.0),
        their("upper").unwrap_or(f64::INFINITY),
    );
    assert!(
        lower < their_upper && their_lower < upper,
        "no overlap: {}",
        told()
    );
}

#[test]
fn we_agree_with_the_reference_implementation() {
    let Some(_lab) = require(&[Need::Oracle]) else {
        return;
    };
    let cases: Vec<Case> = (0..CASES).map(Case::of).collect();
    let answers = ask_oracle(&cases);
    assert_eq!(answers.len(), cases.len());
    let (mut our_seconds, mut their_seconds, mut found) = (0.0, 0.0, 0);
    for ((seed, case), theirs) in (0..).zip(&cases).zip(&answers) {
        let (ours, seconds) = case.ours();
        our_seconds += seconds;
        their_seconds += theirs["seconds"].as_f64().unwrap();
        for ((mine, other), goal) in ours
            .iter()
            .zip(theirs["goals"].as_array().unwrap())
            .zip(&case.goals)
        {
            assert_agree(seed, case, mine, other, goal);
            found += u64::from(mine.lower.is_some() && mine.upper.is_some());
        }
    }
    // Most cases have both bounds: it is not the edges that agree.
    assert!(found > CASES, "only {found} of {} have both bounds", 2 * CASES);
    // Time on paper, not on a clock: we take about as long to an answer as the reference does.
    eprintln!("seconds of trials: ours {our_seconds:.0}, reference {their_seconds:.0}");
    assert!(
        our_seconds <= their_seconds * 1.1,
        "ours {our_seconds}, theirs {their_seconds}"
    );
}
