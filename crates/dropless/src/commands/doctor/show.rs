//! The examination for people: one row a check, below it what it costs, what mends it, and how to take that back.

use std::fmt::Write as _;

use doctor::{Finding, Remedy, Verdict, When};
use report::Style;
use report::style::Paint;

use super::Examination;
use report::wrap::{filled, paragraph};

/// Columns of the verdict, of which `cannot tell` is the longest.
const VERDICT: usize = 13;
/// Columns that everything below a row is set in by.
const INDENT: usize = VERDICT;
/// Columns of the words before what is said there: `costs`, `undo`.
const LABEL: usize = 6;
/// Commands of one remedy that are shown; moving interrupts takes one for each.
const COMMANDS_MAX: usize = 6;

pub fn report(examination: &Examination, style: &Style) -> String {
    let Examination {
        workers,
        housekeeping,
        findings,
        ..
    } = examination;
    let rest = if housekeeping.is_empty() {
        "no core is left for everything else".to_owned()
    } else {
        format!("everything else on {}", housekeeping.in_words())
    };
    let planned = format!("Planned: workers on {}, {rest}.", workers.in_words());
    let mut text = paragraph(&planned, 0, style) + "\n";
    let widths = findings.iter().map(|finding| finding.check.len());
    let name_width = widths.max().unwrap_or(0);
    let of = |good: bool| {
        let is_one = move |finding: &&Finding| (finding.verdict <= Verdict::CannotTell) == good;
        findings.iter().filter(is_one)
    };
    // Stable: what is equally bad stays in the order of the checks.
    let mut troubles: Vec<&Finding> = of(false).collect();
    troubles.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
    for finding in troubles {
        row(&mut text, finding, name_width, style);
        details(&mut text, finding, style);
        text.push('\n');
    }
    for finding in of(true) {
        row(&mut text, finding, name_width, style);
    }
    if of(true).next().is_some() {
        text.push('\n');
    }
    text.push_str(&paragraph(&summary(findings), 0, style));
    text
}

/// The verdict, the check's name and its sentence, which goes on below itself where it is long.
fn row(text: &mut String, finding: &Finding, name_width: usize, style: &Style) {
    let (word, paint) = match finding.verdict {
        Verdict::Good => ("good", Paint::Good),
        Verdict::CannotTell => ("cannot tell", Paint::Dim),
        Verdict::Warning => ("warning", Paint::Warn),
        Verdict::Bad => ("bad", Paint::Bad),
    };
    let column = VERDICT + name_width + 2;
    let mut lines = filled(&finding.says, style.width.saturating_sub(column)).into_iter();
    let word = style.paint(paint, word) + &" ".repeat(VERDICT - word.len());
    let _ = writeln!(
        text,
        "{word}{:name_width$}  {}",
        finding.check,
        lines.next().unwrap_or_default()
    );
    for line in lines {
        let _ = writeln!(text, "{:column$}{line}", "");
    }
}

fn details(text: &mut String, finding: &Finding, style: &Style) {
    const READINGS_MAX: usize = 3;
    let room = style.width.saturating_sub(INDENT + LABEL);
    if let Some(costs) = &finding.costs {
        labelled(text, "costs", &filled(costs, room), style);
    }
    let mut readings: Vec<String> = finding
        .read
        .iter()
        .take(READINGS_MAX)
        .flat_map(|reading| {
            let value = if reading.value.is_empty() {
                "(empty)"
            } else {
                &reading.value
            };
            filled(&format!("{}: {value}", reading.from), room)
        })
        .collect();
    readings.extend(more(finding.read.len(), READINGS_MAX, "readings"));
    labelled(text, "read", &readings, style);
    for remedy in &finding.remedies {
        mends(text, remedy, room, style);
    }
}

/// A command has a line of its own, as a shell would take a break for its end; advice in words is broken.
fn mends(text: &mut String, remedy: &Remedy, room: usize, style: &Style) {
    let fix = &remedy.fix;
    let when = if remedy.when == When::Now && !fix.undo.is_empty() && !fix.persists {
        format!("{}, until a reboot", remedy.when)
    } else {
        remedy.when.to_string()
    };
    let when = filled(&format!("({when})"), room);
    let mut lines: Vec<String> = when.iter().map(|line| style.paint(Paint::Dim, line)).collect();
    lines.extend(fix.commands.iter().take(COMMANDS_MAX).cloned());
    lines.extend(more(fix.commands.len(), COMMANDS_MAX, "of this kind"));
    let or = if fix.commands.is_empty() { "" } else { "or " };
    lines.extend(
        fix.advice
            .iter()
            .flat_map(|advice| filled(&format!("{or}{advice}"), room)),
    );
    labelled(text, "fix", &lines, style);
    let mut undo: Vec<String> = fix.undo.iter().take(COMMANDS_MAX).cloned().collect();
    undo.extend(more(fix.undo.len(), COMMANDS_MAX, "of this kind"));
    if !remedy.boot.is_empty() {
        undo.extend(filled(
            "take the argument out of the command line again, and reboot",
            room,
        ));
    }
    labelled(text, "undo", &undo, style);
}

fn more(count: usize, shown: usize, what: &str) -> Option<String> {
    (count > shown).then(|| format!("... {} more {what} (--json has all)", count - shown))
}

/// Lines, the first of them behind a word.
fn labelled(text: &mut String, label: &str, lines: &[String], style: &Style) {
    for (index, line) in lines.iter().enumerate() {
        let label = if index == 0 { label } else { "" };
        let label = style.paint(Paint::Head, &format!("{label:LABEL$}"));
        let _ = writeln!(text, "{:INDENT$}{label}{line}", "");
    }
}

/// The last line: how many of each.
fn summary(findings: &[Finding]) -> String {
    let count = |verdict| {
        let of_it = findings.iter().filter(|finding| finding.verdict == verdict);
        of_it.count()
    };
    let (bad, warning) = (count(Verdict::Bad), count(Verdict::Warning));
    let end = if bad + warning > 0 {
        " Nothing was changed; dropless tune makes the changes and takes them back."
    } else {
        ""
    };
    format!(
        "{bad} bad, {warning} warnings, {} good, {} cannot tell.{end}",
        count(Verdict::Good),
        count(Verdict::CannotTell)
    )
}
