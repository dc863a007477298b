//! What a result that was read back must have and cannot be: an empty shell, or one that contradicts itself, is damaged.

use measure::ledger::NOT_AWAITED;
use measure::search::SearchReport;
use measure::{Summary, Validity};
use serde::Serialize;
use serde_json::Value;

use crate::comparison::Comparison;

/// Keys that version 1 always wrote into `summary.json` of `send`. A key that came later must not be added here.
/// A `*` stands for each item of a list.
pub const SEND: [&str; 17] = [
    "verdict",
    "reasons",
    "sent",
    "received",
    "lost",
    "rate_tx_pps",
    "rate_rx_pps",
    "duration_s",
    "latency_ns",
    "ledger.accepted",
    "ledger.received",
    "ledger.lost_at",
    "streams.*.name",
    "ports.*.uri",
    "queues.*.packets",
    "workers.*.core",
    "notes",
];
/// Of `reflect`.
pub const REFLECT: [&str; 9] = [
    "verdict",
    "reasons",
    "received",
    "returned",
    "dropped",
    "duration_s",
    "ports.*.uri",
    "workers.*.core",
    "notes",
];
/// Of `search.json`.
pub const SEARCH: [&str; 6] = [
    "method",
    "complete",
    "reasons",
    "sizes.*.goals",
    "trials",
    "seconds",
];
/// Of `compare.json`.
pub const COMPARE: [&str; 7] = [
    "link",
    "size",
    "duration_s",
    "methods.*.name",
    "recommendation.sentences",
    "interrupted",
    "notes",
];

/// No count, time or rate of ours is larger, and up to here a fraction counts every whole number.
pub const NUMBER_MAX: f64 = 9_007_199_254_740_992.0;
/// Shares are sums of fractions: the last bits may be above 1.
const SHARE_MAX: f64 = 1.001;

/// The first of the `required` keys that `value` has not.
pub fn has_all(value: &Value, required: &[&str]) -> Result<(), String> {
    let absent = |key: &&&str| !has(value, &key.split('.').collect::<Vec<_>>());
    match required.iter().find(absent) {
        Some(key) => Err(format!("it has no `{}`", key.replace(".*.", "[]."))),
        None => Ok(()),
    }
}

fn has(value: &Value, path: &[&str]) -> bool {
    match path {
        [] => true,
        ["*", rest @ ..] => value
            .as_array()
            .is_some_and(|items| items.iter().all(|item| has(item, rest))),
        [key, rest @ ..] => value.get(key).is_some_and(|value| has(value, rest)),
    }
}

/// The first number in `result` that cannot be. What a later dropless added to the file is not looked at.
pub fn numbers<T: Serialize>(result: &T) -> Result<(), String> {
    let value = serde_json::to_value(result).map_err(|error| error.to_string())?;
    sound(&value, "")
}

fn sound(value: &Value, name: &str) -> Result<(), String> {
    match value {
        Value::Number(number) => {
            let is = |kinds: &[&str]| kinds.iter().any(|kind| name.ends_with(kind));
            // A difference may be below 0, such as what firewall rules cost.
            let sane = match name {
                _ if is(&["share", "ratio"]) => 0.0..=SHARE_MAX,
                _ if is(&["_pps", "_bps", "_l1", "_l2", "_s", "_ns", "seconds"]) => 0.0..=NUMBER_MAX,
                _ => -NUMBER_MAX..=NUMBER_MAX,
            };
            if number.as_f64().is_some_and(|number| sane.contains(&number)) {
                Ok(())
            } else {
                Err(format!("`{name}` is {number}, which cannot be"))
            }
        }
        Value::Array(items) => items.iter().try_for_each(|item| sound(item, name)),
        Value::Object(map) => map.iter().try_for_each(|(key, value)| sound(value, key)),
        _ => Ok(()),
    }
}

/// The sums of a `send` run.
pub fn of_send(summary: &Summary) -> Result<(), String> {
    let Summary {
        sent, received, lost, ..
    } = summary;
    if lost > sent {
        return Err(format!("it has {lost} packets lost of {sent} sent"));
    }
    let not_awaited = summary.ledger.lost_at.get(NOT_AWAITED).unwrap_or(&0);
    let is_even = lost.saturating_add(*received).saturating_add(*not_awaited) == *sent;
    match summary.verdict {
        Validity::Valid if !is_even => Err(format!(
            "it says VALID, and its {received} packets received and {lost} lost are not the {sent} sent"
        )),
        Validity::Valid if !summary.reasons.is_empty() => {
            Err("it says VALID, and has reasons against it".to_owned())
        }
        Validity::Invalid if summary.reasons.is_empty() => {
            Err("it says INVALID, and has no reason for it".to_owned())
        }
        _ => Ok(()),
    }
}

/// A search that came to its end has answers.
pub fn of_search(report: &SearchReport) -> Result<(), String> {
    match (report.complete, report.sizes.is_empty()) {
        (true, true) => Err("it says complete, and has no frame size".to_owned()),
        _ => Ok(()),
    }
}

/// A trial does not lose more than it sent.
pub fn of_compare(comparison: &Comparison) -> Result<(), String> {
    for method in &comparison.methods {
        let single = [&method.at_lossless, &method.flood, &method.latency];
        let all = single.into_iter().flatten();
        let mut all = all.chain(&method.at_rates).chain(&method.search);
        if let Some(trial) = all.find(|trial| trial.lost > trial.sent) {
            return Err(format!(
                "a trial of {} has {} packets lost of {} sent",
                method.name, trial.lost, trial.sent
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_looked_for_at_any_depth() {
        let value = json!({"a": {"b": 1}, "c": [{"d": null}, {}], "e": []});
        assert_eq!(has_all(&value, &["a.b", "e.*.x"]), Ok(()));
        assert_eq!(
            has_all(&value, &["a.b", "c.*.d"]),
            Err("it has no `c[].d`".to_owned())
        );
        assert_eq!(has_all(&value, &["a.b.c"]), Err("it has no `a.b.c`".to_owned()));
    }

    #[test]
    fn numbers_are_bounded_by_their_kind() {
        for (value, is_sound) in [
            (json!({"sent": 9e15, "busy_share": 1.0}), true),
            (json!({"sent": u64::MAX}), false),
            (json!([{"deep": [{"rate_pps": -1}]}]), false),
            (json!({"busy_share": 900}), false),
            (json!({"ns_per_packet": -12.5}), true),
        ] {
            assert_eq!(numbers(&value).is_ok(), is_sound, "{value}");
        }
    }
}
