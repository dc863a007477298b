//! What any result that was read back must have and cannot be; what contradicts itself is for each kind to say.

use serde::Serialize;
use serde_json::Value;

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

/// Whether the stalls of the `value` of a run cost no more than was missed in all of them.
pub fn stalls(value: &Value) -> Result<(), String> {
    let explanation = &value["explanation"];
    let causes = explanation["causes"].as_array().into_iter().flatten();
    let lost = causes.filter_map(|cause| cause["lost"].as_u64());
    let lost = lost.fold(0, u64::saturating_add);
    let explained = explanation["explained"].as_u64().unwrap_or(0);
    if lost > explained {
        return Err(format!(
            "its causes of stalls have {lost} packets missed, of {explained} in all stalls"
        ));
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
