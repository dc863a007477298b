//! The report at the end of a run, for people: what it was made of first, and the answer last, where it is seen: the figures, and
//! below them the verdict in words.

use crate::compare::is_compared;
use crate::input::clean;
use crate::kind::Kind;
use crate::list;
use crate::load::Loaded;
use crate::machine;
use crate::style::{Paint, Style};
use crate::wrap::{marked, wrapped};
use measure::{Note, RunResult, Validity};

mod charts;
mod compare;
pub(crate) mod expectations;
pub(crate) mod explanation;

pub use crate::kinds::search::render as search;

/// The report of a run under what the user called it.
pub fn named(label: Option<&str>, report: &str, style: &Style) -> String {
    let name = |label| format!("{} {}\n", style.paint(Paint::Head, "Run"), clean(label));
    join(&[label.map(name).unwrap_or_default(), report.to_owned()])
}

/// The report of a run that has just ended.
pub fn render(result: &dyn Kind, style: &Style) -> String {
    result.terminal(style)
}

/// The report of runs that were loaded again: of one all there is, of a few of one kind the differences and
/// their charts, of others the list.
pub fn runs(runs: &[Loaded], style: &Style) -> String {
    match runs {
        [only] => {
            let report = join(&[
                charts::render(only, style),
                missing(only, style),
                only.result.terminal(style),
            ]);
            named(only.label.as_deref(), &report, style)
        }
        several if !is_compared(several) => list::render(several, style),
        several => {
            let charts = several.iter().map(|run| {
                let name = format!("{} {}", run.name, run.folder);
                join(&[
                    style.paint(Paint::Head, &name) + "\n" + &run.result.headline(style),
                    charts::render(run, style),
                    missing(run, style),
                ])
            });
            let sections: Vec<String> = std::iter::once(compare::render(several, style))
                .chain(charts)
                .collect();
            join(&sections)
        }
    }
}

/// What cannot be shown, and why.
fn missing(run: &Loaded, style: &Style) -> String {
    let lines = run.missing.iter();
    lines
        .map(|missing| marked("note:", Paint::Warn, missing, style))
        .collect()
}

/// The sections that have something to say, a blank line between two.
pub(crate) fn join(sections: &[String]) -> String {
    let sections: Vec<&str> = sections
        .iter()
        .map(String::as_str)
        .filter(|section| !section.is_empty())
        .collect();
    sections.join("\n")
}

/// A sentence of one colour, on as many lines as it takes.
pub(crate) fn painted(words: &str, paint: Paint, style: &Style) -> String {
    let mut text = String::new();
    wrapped(&mut text, words, 0, paint, style);
    text
}

/// The verdict on numbers that must not be believed.
pub(crate) fn invalid(reasons: &[Note], style: &Style) -> String {
    match reasons {
        [] => painted("INVALID: these numbers must not be believed", Paint::Bad, style),
        [only] => painted(&format!("INVALID: {only}"), Paint::Bad, style),
        several => {
            let head = style.paint(Paint::Bad, &format!("INVALID for {} reasons:", several.len()));
            several.iter().fold(head + "\n", |text, reason| {
                text + &marked("  -", Paint::None, &reason.text, style)
            })
        }
    }
}

/// The verdict on a run of packets in the colour `paint`, where it came to `outcome`, and below it each expectation.
pub(crate) fn headline<R: Kind + RunResult>(run: &R, outcome: &str, paint: Paint, style: &Style) -> String {
    let line = verdict(run.validity(), run.reasons(), outcome, paint, style);
    line + &expectations::render(run.expectations(), style)
}

/// The verdict alone.
pub(crate) fn verdict(
    validity: Validity,
    reasons: &[Note],
    outcome: &str,
    paint: Paint,
    style: &Style,
) -> String {
    match validity {
        Validity::Invalid => invalid(reasons, style),
        Validity::Valid => painted(&format!("VALID: {outcome}"), paint, style),
    }
}

/// What carried the packets of such a run, its notes, and where it is kept.
pub(crate) fn carried(run: &impl RunResult, style: &Style) -> String {
    join(&[
        machine::terminal(run, style),
        ending(run.notes(), run.run(), style),
    ])
}

/// Notes, and where the run is kept.
pub fn ending(notes: &[Note], run: &str, style: &Style) -> String {
    let mut lines: Vec<String> = notes
        .iter()
        .map(|note| marked("note:", Paint::Warn, &note.text, style))
        .collect();
    if !run.is_empty() {
        lines.push(style.paint(Paint::Dim, "run directory:") + " " + &clean(run) + "\n");
    }
    lines.concat()
}
