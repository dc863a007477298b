//! What `tune` says to people: the plan, what each change came to, the kernel's command line, what was taken back.

use std::fmt::Write as _;

use doctor::tune::boot::{Argument, DROP_IN};
use doctor::tune::{Action, Outcome, Plan, Step, Undone};
use report::Style;
use report::style::Paint;

use super::Change;
use report::wrap::{mends, paragraph, wrapped};

/// Columns that what belongs to a line is set in by.
const INDENT: usize = 6;

pub fn plan(plan: &Plan, is_proposed: bool, style: &Style) -> String {
    let mut text = heading(plan, style);
    if is_proposed {
        let line = format!(
            "These cores are proposed; name those that you want: --cores {}",
            plan.cores
        );
        text.push_str(&paragraph(&line, 0, style));
        text.push('\n');
    }
    if plan.steps.is_empty() {
        text.push_str(&paragraph("Nothing that works now is left to change.", 0, style));
    }
    let mut before = None;
    for step in &plan.steps {
        if before != Some(&step.why) {
            why(&mut text, step, style);
        }
        before = Some(&step.why);
        let _ = writeln!(
            text,
            "{:INDENT$}{} -> {}",
            "",
            step.action.target(),
            step.action.wanted()
        );
    }
    text.push_str(&rest(plan, style));
    let steps = plan.steps.len();
    let last = match steps {
        0 => "Nothing was changed.".to_owned(),
        1 => "Nothing was changed. With --apply, this 1 change is made, and --undo takes it back.".to_owned(),
        _ => format!(
            "Nothing was changed. With --apply, these {steps} changes are made, and --undo takes them back."
        ),
    };
    text.push_str(&paragraph(&last, 0, style));
    text
}

/// A change that was just made, below the reason for it where that is a new one.
pub fn done(step: &Step, outcome: &Outcome, head: bool, style: &Style) -> String {
    let mut text = String::new();
    if head {
        why(&mut text, step, style);
    }
    let (word, paint, more) = match outcome {
        Outcome::Already => ("is so already".into(), Paint::Dim, None),
        Outcome::Took { old, now } => (format!("{} -> {}", shown(old), shown(now)), Paint::Good, None),
        Outcome::NotYet { now, until } => (
            step.action.wanted(),
            Paint::Warn,
            Some(format!("still {now} until {until}")),
        ),
        Outcome::Refused { why } => ("refused".into(), Paint::Bad, Some(why.clone())),
    };
    let target = step.action.target();
    let _ = writeln!(text, "{:INDENT$}{target}: {}", "", style.paint(paint, &word));
    if let Some(more) = more {
        wrapped(&mut text, &more, INDENT + 2, Paint::Warn, style);
    }
    text
}

/// What stands below the changes that were made.
pub fn ending(plan: &Plan, outcomes: &[Outcome], style: &Style) -> String {
    let mut text = rest(plan, style);
    let count = |pick: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| pick(outcome)).count();
    let took = count(|outcome| matches!(outcome, Outcome::Took { .. }));
    let line = format!(
        "{took} changed and read back, {} so already, {} not yet in effect, {} refused.",
        count(|outcome| matches!(outcome, Outcome::Already)),
        count(|outcome| matches!(outcome, Outcome::NotYet { .. })),
        count(Outcome::is_refused),
    );
    text.push_str(&paragraph(&line, 0, style));
    if took > 0 {
        let line = "dropless tune --undo restores every value; so does a reboot, but for files in /etc.";
        text.push_str(&paragraph(line, 0, style));
    }
    text
}

/// The arguments, what each is for, and the line to copy.
pub fn command_line(arguments: &[Argument], written: Option<&Outcome>, style: &Style) -> String {
    let mut text = format!("{}\n", style.paint(Paint::Head, "Kernel command line"));
    for argument in arguments {
        let now = match &argument.now {
            _ if argument.is_there() => " (this kernel has it)".into(),
            Some(now) if argument.replaces => format!(" (in the place of {now}, which others wrote)"),
            Some(now) => format!(" (this kernel has {now})"),
            None => String::new(),
        };
        let _ = writeln!(text, "  {}{}", argument.text, style.paint(Paint::Dim, &now));
        wrapped(&mut text, &argument.why, INDENT, Paint::Dim, style);
    }
    let line: Vec<&str> = arguments.iter().map(|argument| argument.text.as_str()).collect();
    let _ = writeln!(text, "\n{}\n", line.join(" "));
    let last = match written {
        None => format!("Nothing was written. With --write, {DROP_IN} adds it to what is there."),
        Some(Outcome::Refused { why }) => format!("{DROP_IN} was not written: {why}"),
        Some(Outcome::Already) => format!("{DROP_IN} says so already; it works after: update-grub && reboot"),
        Some(_) => format!(
            "{DROP_IN} is written; it works after: update-grub && reboot. dropless tune --undo removes it, and update-grub then does the rest."
        ),
    };
    text.push_str(&paragraph(&last, 0, style));
    text
}

/// What became of every change in the journal.
pub fn undone(changes: &[Change], style: &Style) -> String {
    let mut text = String::new();
    let (mut restored, mut rebooted, mut left) = (0, 0, 0);
    for Change { path, undone } in changes {
        let (word, paint) = match undone {
            Undone::Restored { value } => {
                restored += 1;
                (format!("{} again", shown(value)), Paint::Good)
            }
            Undone::AsItWas => ("is as it was".into(), Paint::Dim),
            Undone::Rebooted => {
                rebooted += 1;
                continue;
            }
            Undone::Foreign { now } => {
                left += 1;
                (
                    format!("left alone: somebody else has made it {}", shown(now)),
                    Paint::Warn,
                )
            }
            Undone::Stays { why } => (format!("stays: {why}"), Paint::Warn),
            Undone::Refused { why } => {
                left += 1;
                (format!("not restored: {why}"), Paint::Bad)
            }
        };
        let _ = writeln!(text, "  {path}: {}", style.paint(paint, &word));
    }
    let line = match changes.len() {
        0 => "Nothing to undo: the journal is empty.".to_owned(),
        _ if rebooted > 0 => {
            format!("{restored} restored, {left} left; {rebooted} more were reset by the reboot since.")
        }
        _ => format!("{restored} restored, {left} left."),
    };
    text.push_str(&paragraph(&line, 0, style));
    let boots = |change: &Change| change.path == DROP_IN && matches!(change.undone, Undone::Restored { .. });
    if changes.iter().any(boots) {
        let line = "The kernel boots with its old command line again after: update-grub && reboot";
        text.push_str(&paragraph(line, 0, style));
    }
    text
}

pub fn heading(plan: &Plan, style: &Style) -> String {
    let mut text = String::new();
    let line = format!(
        "{} for polling, {} for everything else",
        plan.cores.in_words(),
        plan.housekeeping.in_words()
    );
    let _ = writeln!(text, "{}\n", style.paint(Paint::Head, &line));
    text
}

fn why(text: &mut String, step: &Step, style: &Style) {
    let files = match &step.action {
        Action::Text {
            service: Some(name), ..
        } => format!(" (starts {name} again)"),
        _ => String::new(),
    };
    text.push_str(&paragraph(
        &format!("{}: {}{files}", step.check, step.why),
        2,
        style,
    ));
}

/// What no change of now mends.
fn rest(plan: &Plan, style: &Style) -> String {
    let mut text = String::from("\n");
    for left in &plan.by_hand {
        text.push_str(&paragraph(&format!("{}: {}", left.check, left.says), 2, style));
        mends(&mut text, &left.fix.commands, left.fix.advice.as_deref(), style);
    }
    if !plan.by_hand.is_empty() {
        text.push('\n');
    }
    let missing = plan.boot.iter().filter(|argument| !argument.is_there());
    let missing: Vec<&str> = missing.map(|argument| argument.text.as_str()).collect();
    if !missing.is_empty() {
        let line = format!(
            "At the next boot (dropless tune --cores {} --boot explains it): {}",
            plan.cores,
            missing.join(" ")
        );
        text.push_str(&paragraph(&line, 0, style));
    }
    text.push_str(&paragraph(
        "While send or reflect runs as root, no core sleeps deeply.",
        0,
        style,
    ));
    text.push('\n');
    text
}

/// A value that is nothing is hard to see.
fn shown(value: &str) -> &str {
    if value.is_empty() { "''" } else { value }
}
