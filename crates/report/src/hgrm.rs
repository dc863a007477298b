//! Latency as an `HdrHistogram` percentile distribution (`.hgrm`), the text that its plotters read.

use std::fmt::{self, Write};

use measure::Histogram;

/// Rows per halving of the distance to 100 %, as the `HdrHistogram` tools write by default.
const TICKS_PER_HALF_DISTANCE: u32 = 5;
/// Sub-buckets of an `HdrHistogram` with three significant digits.
const SUB_BUCKETS: u32 = 2048;

/// The text of the file, values in ns. An empty histogram has a header and zeros.
pub fn render(latency: &Histogram) -> String {
    render_scaled(latency, 1.0)
}

/// The same of a histogram that counts in something else, of which one is so many ns.
pub fn render_scaled(histogram: &Histogram, unit_ns: f64) -> String {
    let mut text = String::new();
    // A `String` takes everything, and a histogram without a counterpart leaves the header.
    let _ = write_into(&mut text, histogram, unit_ns);
    text
}

fn write_into(text: &mut String, latency: &Histogram, unit_ns: f64) -> fmt::Result {
    writeln!(
        text,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    let hdr = latency.to_hdr().map_err(|_| fmt::Error)?;
    let (mean, max) = (latency.mean().unwrap_or(0.0), latency.max().unwrap_or(0));
    let mut below = 0;
    for row in hdr.iter_quantiles(TICKS_PER_HALF_DISTANCE) {
        below += row.count_since_last_iteration();
        let quantile = row.quantile_iterated_to();
        // The top of a bucket may lie above the largest value, which is known exactly.
        let value = row.value_iterated_to().min(max) as f64 * unit_ns;
        write!(text, "{value:12.3} {quantile:2.12} {below:10}")?;
        if quantile < 1.0 {
            write!(text, " {:14.2}", 1.0 / (1.0 - quantile))?;
        }
        text.push('\n');
    }
    let doublings = (u64::BITS - (max / u64::from(SUB_BUCKETS)).leading_zeros()) + 1;
    let (mean, deviation) = (mean * unit_ns, hdr.stdev() * unit_ns);
    let (max, count) = (max as f64 * unit_ns, latency.count());
    writeln!(
        text,
        "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]"
    )?;
    writeln!(text, "#[Max     = {max:12.3}, Total count    = {count:12}]")?;
    writeln!(
        text,
        "#[Buckets = {doublings:12}, SubBuckets     = {SUB_BUCKETS:12}]"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<(f64, f64, u64)> {
        let numbers = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        text.lines()
            .skip(2)
            .filter(|line| !line.starts_with('#'))
            .map(numbers)
            .map(|row| {
                (
                    row[0].parse().unwrap(),
                    row[1].parse().unwrap(),
                    row[2].parse().unwrap(),
                )
            })
            .collect()
    }

    #[test]
    fn every_packet_is_in_and_the_ends_are_exact() {
        let mut latency = Histogram::new(11);
        (1..=100_000).for_each(|ns| latency.record(ns, 1));
        latency.record(5_000_123, 1);
        let text = render(&latency);
        let rows = rows(&text);
        assert_eq!(rows.first().unwrap(), &(1.0, 0.0, 1));
        assert_eq!(rows.last().unwrap(), &(5_000_123.0, 1.0, 100_001));
        assert!(
            rows.windows(2)
                .all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1 && pair[0].2 <= pair[1].2)
        );
        for (value, quantile, count) in &rows[1..rows.len() - 1] {
            let rank = (quantile * 100_001.0).ceil();
            let truth = if rank > 100_000.0 { 5_000_123.0 } else { rank };
            assert!(
                (value - truth).abs() <= truth * 0.002 + 1.0,
                "{value} at {quantile}"
            );
            assert!(*count as f64 >= rank - 1.0);
        }
        assert!(
            text.contains("#[Max     =  5000123.000, Total count    =       100001]"),
            "{text}"
        );
    }

    #[test]
    fn an_empty_histogram_is_a_file_too() {
        let text = render(&Histogram::new(11));
        assert!(
            text.starts_with("       Value     Percentile TotalCount 1/(1-Percentile)\n\n"),
            "{text}"
        );
        assert!(text.contains("Total count    =            0]"), "{text}");
    }
}
