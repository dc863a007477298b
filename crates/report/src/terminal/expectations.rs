//! Each `--expect`, and what was found.

use measure::ExpectationResult;

use crate::number::{count, pps, time};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};

/// One line each.
pub(crate) fn render(expectations: &[ExpectationResult], style: &Style) -> String {
    let mut table = Table::indented(2);
    for expectation in expectations {
        let (word, paint) = if expectation.met {
            ("met", Paint::Good)
        } else {
            ("FAILED", Paint::Bad)
        };
        table.row([
            Cell::left(word).paint(paint),
            Cell::left(&expectation.text),
            Cell::left(format!("found {}", actual(expectation))),
        ]);
    }
    table.render(style)
}

/// The measured value as people write it, in the unit that `measure` names.
fn actual(expectation: &ExpectationResult) -> String {
    let Some(value) = expectation.actual else {
        return "nothing to measure it on".to_owned();
    };
    match expectation.unit.as_str() {
        // Ten digits: an expectation may be about one packet in a thousand million.
        "ratio" => format!("{} %", trimmed(value * 100.0)),
        "ns" => time(value),
        "pps" => pps(value),
        "packets" => count(value as u64),
        unit => format!("{} {unit}", trimmed(value)),
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.10}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
