//! Tables of values that are small numbers.

use std::ops::RangeInclusive;

use super::rows::{Gather, set};
use super::{IndexTable, TooLarge};

/// What one rule asks of a value: ranges, and whether it must not be in them; `None` if it asks nothing.
pub(super) type Asked<'r> = Option<(Vec<RangeInclusive<u16>>, bool)>;

/// The table of all values up to `last`. A packet without a value fulfils only what asks nothing, except the rules for
/// which `takes_none`.
pub(super) fn table(
    asked: &[Asked<'_>],
    last: u16,
    takes_none: impl Fn(usize) -> bool,
) -> Result<Option<IndexTable>, TooLarge> {
    if asked.iter().all(Option::is_none) {
        return Ok(None);
    }
    let mut gather = Gather::new(asked.len());
    let mut bits = gather.blank();
    let mut none = gather.blank();
    // Where a rule begins or ends to hold.
    let mut turns: Vec<(u32, usize, bool)> = Vec::new();
    for (rule, asked) in asked.iter().enumerate() {
        set(&mut none, rule, asked.is_none() || takes_none(rule));
        let Some((ranges, not)) = asked else {
            set(&mut bits, rule, true);
            continue;
        };
        set(&mut bits, rule, *not);
        for range in merged(ranges) {
            turns.push((u32::from(*range.start()), rule, !not));
            turns.push((u32::from(*range.end()) + 1, rule, *not));
        }
    }
    turns.sort_unstable();
    let none = gather.add(&none)? as u16;
    let mut classes = Vec::with_capacity(usize::from(last) + 1);
    let mut turns = turns.into_iter().peekable();
    let mut class = None;
    for value in 0..=u32::from(last) {
        while let Some((_, rule, to)) = turns.next_if(|turn| turn.0 <= value) {
            set(&mut bits, rule, to);
            class = None;
        }
        let found = match class {
            Some(class) => class,
            None => u16::try_from(gather.add(&bits)?).map_err(|_| TooLarge)?,
        };
        class = Some(found);
        classes.push(found);
    }
    Ok(Some(IndexTable {
        classes,
        none,
        rows: gather.finish(),
    }))
}

/// Ranges in order that neither overlap nor touch.
fn merged(ranges: &[RangeInclusive<u16>]) -> Vec<RangeInclusive<u16>> {
    let mut sorted = ranges.to_vec();
    sorted.sort_by_key(|range| *range.start());
    let mut merged: Vec<RangeInclusive<u16>> = Vec::new();
    for range in sorted {
        match merged.last_mut() {
            Some(last) if u32::from(*range.start()) <= u32::from(*last.end()) + 1 => {
                *last = *last.start()..=(*last.end()).max(*range.end());
            }
            _ => merged.push(range),
        }
    }
    merged
}
