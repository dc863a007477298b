//! Reads percentile distributions of `HdrHistogram` (`.hgrm`) back.

use std::path::Path;

use super::lines::Lines;
use crate::read::ReadError;
use crate::sane::NUMBER_MAX;

/// Rows at most: a real file has some hundred.
const ROWS_MAX: usize = 20_000;

/// A value in ns, and the share (0 to 1) of all values that are not above it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// The value in ns.
    pub value_ns: f64,
    /// The share.
    pub share: f64,
}

/// The distribution in the file `path`; it is empty where nothing was counted.
pub fn read(path: &Path) -> Result<Vec<Quantile>, ReadError> {
    let mut lines = Lines::open(path)?;
    let header = lines.next_line()?.unwrap_or_default().to_owned();
    if header.split_whitespace().take(2).ne(["Value", "Percentile"]) {
        return Err(lines.damaged("not the head of a percentile distribution"));
    }
    let (mut curve, mut total): (Vec<Quantile>, Option<f64>) = (Vec::new(), None);
    while let Some(line) = lines.next_line()? {
        if let Some(trailer) = line.strip_prefix('#') {
            total = total.or_else(|| total_count(trailer));
            continue;
        }
        if line.trim().is_empty() {
            continue;
        }
        let row = quantile(line).filter(|row| {
            let before = curve.last().copied().unwrap_or(Quantile {
                value_ns: 0.0,
                share: 0.0,
            });
            row.value_ns >= before.value_ns && row.share >= before.share && curve.len() < ROWS_MAX
        });
        match row {
            Some(row) => curve.push(row),
            None => return Err(lines.damaged("not a row of a percentile distribution")),
        }
    }
    match total {
        // An empty histogram has one row of zeros.
        Some(total) if total <= 0.0 => Ok(Vec::new()),
        Some(_) => Ok(curve),
        None => Err(lines.damaged("the file ends before its total count")),
    }
}

fn quantile(line: &str) -> Option<Quantile> {
    let mut fields = line.split_whitespace().map(str::parse::<f64>);
    let (value_ns, share) = (fields.next()?.ok()?, fields.next()?.ok()?);
    ((0.0..=NUMBER_MAX).contains(&value_ns) && (0.0..=1.0).contains(&share))
        .then_some(Quantile { value_ns, share })
}

fn total_count(trailer: &str) -> Option<f64> {
    let (_, rest) = trailer.split_once("Total count")?;
    rest.trim_matches(|c: char| !c.is_ascii_digit()).parse().ok()
}
