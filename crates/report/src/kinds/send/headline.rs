//! What a `send` run came to in plain words, and its expectations.

use measure::ledger::NOT_AWAITED;
use measure::{ExpectationResult, Summary, Validity};

use crate::kind::Standing;
use crate::number::{count, counted, pps, share, time};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::terminal::{invalid, painted};

/// The verdict, and below it each expectation.
pub fn render(summary: &Summary, style: &Style) -> String {
    let line = match summary.verdict {
        Validity::Valid => {
            let paint = Standing::of_exit(summary.exit_code()).paint();
            painted(&format!("VALID: {}", outcome(summary)), paint, style)
        }
        Validity::Invalid => invalid(&summary.reasons, style),
    };
    line + &expectations(&summary.expectations, style)
}

/// The one sentence about a measured run.
pub fn outcome(summary: &Summary) -> String {
    let sent = format!("{} sent", counted(summary.sent, "packet"));
    if summary.ledger.lost_at.contains_key(NOT_AWAITED) {
        return format!("{sent}, none expected back");
    }
    let mut troubles = Vec::new();
    if summary.lost > 0 {
        let late = match summary.late {
            0 => String::new(),
            late => format!(", {} of them late", count(late)),
        };
        troubles.push(format!(
            "{} lost ({}{late})",
            count(summary.lost),
            share(summary.lost, summary.sent)
        ));
    }
    if summary.duplicate > 0 {
        troubles.push(format!("{} came more than once", count(summary.duplicate)));
    }
    if summary.corrupt > 0 {
        troubles.push(format!("{} damaged", count(summary.corrupt)));
    }
    match troubles.as_slice() {
        [] => format!("{sent}, every one came back"),
        _ if summary.lost > 0 => format!("{sent}, {}", troubles.join(", ")),
        _ => format!("{sent}, every one came back, but {}", troubles.join(", ")),
    }
}

fn expectations(expectations: &[ExpectationResult], style: &Style) -> String {
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
