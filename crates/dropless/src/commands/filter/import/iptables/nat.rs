//! Table nat: which of its rules change addresses that the filter chains go by.

use super::super::common;
use super::super::conditions::Unfit;
use super::super::ruleset::Translated;
use super::REST;

/// What a rule of this chain translates before the filter chains are asked.
pub fn translates(chain: &str, words: &[&str], device: Option<&str>) -> Option<Translated> {
    let behind = |word: &str| {
        let at = words.iter().position(|each| *each == word)?;
        words.get(at + 1).map(|value| (at, *value))
    };
    let hook = match chain {
        "PREROUTING" => Some("prerouting"),
        "INPUT" => Some("input"),
        "OUTPUT" => Some("output"),
        "POSTROUTING" => Some("postrouting"),
        _ => None,
    };
    let of = Translated::by(behind("-j")?.1, hook);
    let is_for_another = behind("-i").is_some_and(|(at, name)| {
        let not = at > 0 && words[at - 1] == "!";
        common::device((name, REST), !not, device) == Err(Unfit::Never)
    });
    of.filter(|_| !is_for_another)
}
