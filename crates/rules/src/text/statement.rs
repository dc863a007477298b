//! What a rule does, and with which packets.

use std::num::NonZeroU64;

use super::conditions::Conditions;
use super::lex::{Cursor, Word};
use super::names::nearest;
use super::sets::Sets;
use super::{RATE_MAX, Told, values};
use crate::{Action, End, Rate, Verdict, When};

const STATEMENTS: [&str; 6] = ["allow", "deny", "rate", "default", "define", "include"];

pub(super) fn verdict(word: Word<'_>) -> Told<Verdict> {
    match word.text {
        "allow" => Ok(Verdict::Allow),
        "deny" => Ok(Verdict::Deny),
        other => Err((
            word.column,
            format!("`{other}` is no verdict; write allow or deny"),
        )),
    }
}

/// A rule whose first word has been taken.
pub(super) fn rule(first: Word<'_>, words: &mut Cursor<'_, '_>, sets: &Sets) -> Told<(Action, When)> {
    let action = match first.text {
        "allow" => Action::Decide(Verdict::Allow),
        "deny" => Action::Decide(Verdict::Deny),
        "rate" => Action::Limit(rate(words)?),
        other => {
            let hint = match other {
                "drop" | "block" | "reject" => "deny",
                "accept" | "pass" => "allow",
                "limit" => "rate",
                _ => nearest(other, STATEMENTS.into_iter())
                    .unwrap_or("allow, deny, rate, default, define or include"),
            };
            return Err((first.column, format!("`{other}` begins no rule; write {hint}")));
        }
    };
    let mut conditions = Conditions::new(sets);
    while let Some(word) = words.try_next() {
        conditions.add(word, words)?;
    }
    let when = conditions.finish(&action)?;
    Ok((action, when))
}

/// `1000pps per source/24 burst 2000`, the first word of which is next.
fn rate(words: &mut Cursor<'_, '_>) -> Told<Rate> {
    let rate = words.next("a rate")?;
    let per_second = packets_per_second(rate.text).ok_or_else(|| {
        (
            rate.column,
            format!("`{}` is no rate, such as 500pps, 20kpps or 1Mpps", rate.text),
        )
    })?;
    words.take("per")?;
    let whose = words.next("source or destination")?;
    let (end, len) = whose
        .text
        .split_once('/')
        .map_or((whose.text, None), |(end, len)| (end, Some(len)));
    let of = match end {
        "source" => End::Source,
        "destination" => End::Destination,
        other => {
            return Err((
                whose.column,
                format!("`{other}` is no end of a packet; write source or destination"),
            ));
        }
    };
    let length = |text: &str, most: u8, column| {
        let len = text.parse().ok().filter(|len: &u8| (1..=most).contains(len));
        len.ok_or_else(|| {
            (
                column,
                format!("`{text}` is no length of a prefix from 1 to {most}"),
            )
        })
    };
    let v4_len = len.map_or(Ok(32), |len| length(len, 32, whose.column))?;
    let v6_len = if words.peek() == Some(",") {
        words.take(",")?;
        let len = words.next("the length of an IPv6 prefix")?;
        length(len.text, 128, len.column)?
    } else {
        64
    };
    // A tenth of a second's packets may come at once, unless somebody says otherwise.
    let mut burst = NonZeroU64::MIN.saturating_add(per_second.get() / 10);
    if words.peek() == Some("burst") {
        words.take("burst")?;
        let word = words.next("a number of packets")?;
        let value =
            values::number(word.text, RATE_MAX as u32).and_then(|value| NonZeroU64::new(value.into()));
        burst = value.ok_or_else(|| {
            (
                word.column,
                format!("`{}` is no number of packets from 1 to {RATE_MAX}", word.text),
            )
        })?;
    }
    Ok(Rate {
        per_second,
        burst,
        of,
        v4_len,
        v6_len,
    })
}

fn packets_per_second(text: &str) -> Option<NonZeroU64> {
    let number = text.strip_suffix("pps").or_else(|| text.strip_suffix("/s"))?;
    let (number, unit) = match number.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1_000),
        None => number
            .strip_suffix('M')
            .map_or((number, 1), |number| (number, 1_000_000)),
    };
    let value = number.parse::<u64>().ok()?.checked_mul(unit)?;
    NonZeroU64::new(value).filter(|value| value.get() <= RATE_MAX)
}
