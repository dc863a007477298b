//! The verdict in plain words, the expectations, and the last lines.

use measure::ledger::NOT_AWAITED;
use measure::{ExpectationResult, ReflectSummary, Summary, Validity};

use crate::number::{count, counted, pps, share, time};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::wrap::{marked, wrapped};

/// What a `send` run came to.
pub fn send(summary: &Summary, style: &Style) -> String {
    let paint = match summary.exit_code() {
        0 => Paint::Good,
        1 => Paint::Warn,
        _ => Paint::Bad,
    };
    let line = match summary.verdict {
        Validity::Valid => painted(&format!("VALID: {}", outcome(summary)), paint, style),
        Validity::Invalid => invalid(&summary.reasons, style),
    };
    line + &expectations(&summary.expectations, style)
}

/// What a `reflect` run came to.
pub fn reflect(summary: &ReflectSummary, style: &Style) -> String {
    match summary.verdict {
        Validity::Invalid => invalid(&summary.reasons, style),
        Validity::Valid => {
            let paint = if missed(summary) == 0 {
                Paint::Good
            } else {
                Paint::Warn
            };
            painted(&format!("VALID: {}", reflected(summary)), paint, style)
        }
    }
}

fn missed(summary: &ReflectSummary) -> u64 {
    summary.ports.iter().map(|port| port.rx_missed).sum()
}

/// The one sentence about a reflector that ran.
pub(crate) fn reflected(summary: &ReflectSummary) -> String {
    let (received, returned) = (summary.received, summary.returned);
    let what = if received == returned && received > 0 {
        format!("{} received, every one returned", counted(received, "frame"))
    } else {
        format!(
            "{} received, {} returned",
            counted(received, "frame"),
            count(returned)
        )
    };
    match missed(summary) {
        0 => what,
        missed => format!("{what}, {} missed by its ports", count(missed)),
    }
}

/// The one sentence about a measured run.
pub(crate) fn outcome(summary: &Summary) -> String {
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

/// A sentence of one colour, on as many lines as it takes.
fn painted(words: &str, paint: Paint, style: &Style) -> String {
    let mut text = String::new();
    wrapped(&mut text, words, 0, paint, style);
    text
}

fn invalid(reasons: &[String], style: &Style) -> String {
    match reasons {
        [] => painted("INVALID: these numbers must not be believed", Paint::Bad, style),
        [only] => painted(&format!("INVALID: {only}"), Paint::Bad, style),
        several => {
            let head = style.paint(Paint::Bad, &format!("INVALID for {} reasons:", several.len()));
            several.iter().fold(head + "\n", |text, reason| {
                text + &marked("  -", Paint::None, reason, style)
            })
        }
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

/// Notes, and where the run is kept.
pub fn ending(notes: &[String], run: &str, style: &Style) -> String {
    let mut lines: Vec<String> = notes
        .iter()
        .map(|note| marked("note:", Paint::Warn, note, style))
        .collect();
    if !run.is_empty() {
        lines.push(style.paint(Paint::Dim, "run directory:") + " " + run + "\n");
    }
    lines.concat()
}
