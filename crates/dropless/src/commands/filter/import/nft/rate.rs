//! Rates of nftables.

use std::num::NonZeroU64;

use rules::{End, Layer, RATE_MAX, Rate};
use serde_json::Value;

use super::super::common::{lens, mask_len, whole_per_second};
use super::super::conditions::{Conditions, Read, unfit};
use super::{Scope, only};

/// A rate for each source or destination: `add @set { ip saddr limit rate over ... }` or a `meter`.
pub fn rate(kind: &str, value: &Value, scope: &Scope<'_>) -> Read<(Conditions, Rate)> {
    let set = value["set"].as_str().unwrap_or_default();
    if kind == "set" && !scope.sets.is_for_one_rate(&scope.table, set) {
        return unfit("a rate whose set forgets by time, or that several rules share");
    }
    let (key, limit) = if kind == "meter" {
        (&value["key"], &value["stmt"]["limit"])
    } else {
        (&value["elem"], &value["stmt"][0]["limit"])
    };
    if key.get("elem").is_some() || value["stmt"].as_array().is_some_and(|all| all.len() != 1) {
        return unfit("a set whose elements come and go, with more than a rate");
    }
    let (payload, mask) = match only(key) {
        Some(("payload", payload)) => (payload, None),
        Some(("&", pair)) => (&pair[0]["payload"], pair[1].as_str()),
        _ => return unfit("a rate for each of something that our language has not"),
    };
    let layer = match payload["protocol"].as_str() {
        Some("ip") => Layer::V4,
        Some("ip6") => Layer::V6,
        _ => return unfit("a rate for each of something that our language has not"),
    };
    let of = match payload["field"].as_str() {
        Some("saddr") => End::Source,
        Some("daddr") => End::Destination,
        _ => return unfit("a rate for each of something that our language has not"),
    };
    let whole = if layer == Layer::V4 { 32 } else { 128 };
    let len = match (mask, key.get("&").is_some()) {
        (None, false) => whole,
        (Some(mask), _) => mask_len(mask)?,
        (None, true) => return unfit("a mask that is not known here"),
    };
    let (v4_len, v6_len) = lens(layer, len);
    let is_known = |key: &String| matches!(key.as_str(), "rate" | "burst" | "per" | "inv");
    let is_over = limit["inv"] == true;
    if !is_over || !limit.as_object().is_some_and(|limit| limit.keys().all(is_known)) {
        return unfit("a rate in bytes, or one that is not `over`");
    }
    let seconds = match limit["per"].as_str() {
        Some("second") => 1,
        Some("minute") => 60,
        Some("hour") => 3600,
        Some("day") => 86400,
        Some("week") => 7 * 86400,
        _ => return unfit("a rate for a time that is not known here"),
    };
    let number = limit["rate"].as_u64().unwrap_or_default();
    let burst = limit["burst"].as_u64().and_then(NonZeroU64::new);
    match whole_per_second(number, seconds).zip(burst) {
        Some((per_second, burst)) if burst.get() <= RATE_MAX => Ok((
            Conditions::of_layer(layer),
            Rate {
                per_second,
                burst,
                of,
                v4_len,
                v6_len,
            },
        )),
        _ => unfit("a rate that is no whole number of packets a second"),
    }
}
