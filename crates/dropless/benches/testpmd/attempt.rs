//! A measurement that panics is one that failed, for the reason that it told.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::support::{Lab, Need, require};

/// Measures once, in a lab of its own; what fails it is its reason, in a line.
pub fn attempt<T>(needs: &[Need], measure: impl FnOnce(Lab) -> T) -> Result<T, String> {
    let lab = require(needs).ok_or("skipped: something it needs is missing")?;
    // The whole of it was on stderr already.
    caught(|| measure(lab)).map_err(|words| line_of(&words))
}

/// What it comes to, or the words of its panic.
pub fn caught<T>(measure: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(measure)).map_err(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
        words.unwrap_or("failed").to_owned()
    })
}

/// As much of the words of a panic as a table has room for.
pub fn line_of(words: &str) -> String {
    words
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(300)
        .collect()
}
