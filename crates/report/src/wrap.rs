//! Words in lines that fit the terminal.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;

use crate::input::clean;
use crate::style::{Paint, Style};

/// `words` in lines that fit, each `indent` columns from the left.
pub fn wrapped(text: &mut String, words: &str, indent: usize, paint: Paint, style: &Style) {
    for line in filled(words, style.width.saturating_sub(indent)) {
        // Names are in it that come from elsewhere.
        let line = clean(&line);
        let _ = writeln!(text, "{:indent$}{}", "", style.paint(paint, &line));
    }
}

/// `words` in plain lines that fit, each `indent` columns from the left.
pub fn paragraph(words: &str, indent: usize, style: &Style) -> String {
    let mut text = String::new();
    wrapped(&mut text, words, indent, Paint::None, style);
    text
}

/// `words` after a `mark` such as `note:`, which alone is painted; further lines begin below the first word.
pub fn marked(mark: &str, paint: Paint, words: &str, style: &Style) -> String {
    let indent = mark.width() + 1;
    let mut text = String::new();
    wrapped(&mut text, words, indent, Paint::None, style);
    let mark = style.paint(paint, mark);
    match text.get(indent..).filter(|_| !text.trim().is_empty()) {
        Some(rest) => format!("{mark} {rest}"),
        None => format!("{mark}\n"),
    }
}

/// Columns that everything below a row is set in by.
const BELOW: usize = 6;

/// What mends something, below it: a line for each command. None is broken, as a shell would take the break for its
/// end; advice in words is.
pub fn mends(text: &mut String, commands: &[String], advice: Option<&str>, style: &Style) {
    let room = style.width.saturating_sub(BELOW + 5);
    let advice = advice.into_iter().flat_map(|advice| filled(advice, room));
    for (index, words) in commands.iter().cloned().chain(advice).enumerate() {
        let label = if index == 0 { "fix:" } else { "" };
        let label = style.paint(Paint::Head, &format!("{label:4}"));
        let _ = writeln!(text, "{:BELOW$}{label} {words}", "");
    }
}

/// `words` in lines of at most `room` columns, where no single word is longer. A command of ours after a colon is one
/// word: it is there to be copied.
pub fn filled(words: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let (before, command, after) = with_command(words);
    let command = (!command.is_empty()).then_some(command);
    for word in before
        .split_whitespace()
        .chain(command)
        .chain(after.split_whitespace())
    {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// What is before the command, the command, and what is after it.
fn with_command(words: &str) -> (&str, &str, &str) {
    const BEGIN: &str = ": dropless ";
    let Some(begin) = words.find(BEGIN).map(|at| at + 2) else {
        return (words, "", "");
    };
    let (before, rest) = words.split_at(begin);
    let (command, after) = rest.split_at(rest.find("; ").map_or(rest.len(), |at| at + 1));
    (before, command, after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words() {
        let narrow = Style {
            width: 20,
            ..Style::plain()
        };
        let text = marked(
            "note:",
            Paint::Warn,
            "one word after the other, a-word-without-any-end, end",
            &narrow,
        );
        assert_eq!(
            text,
            "note: one word after\n      the other,\n      a-word-without-any-end,\n      end\n"
        );
        assert_eq!(
            marked(
                "note:",
                Paint::Warn,
                "go on with: dropless search --resume runs/x",
                &narrow
            ),
            "note: go on with:\n      dropless search --resume runs/x\n"
        );
        assert_eq!(
            marked("note:", Paint::Warn, "see: dropless top --once; or wait", &narrow),
            "note: see:\n      dropless top --once;\n      or wait\n"
        );
        assert_eq!(marked("note:", Paint::Warn, "", &narrow), "note:\n");
        let coloured = Style {
            color: true,
            ..narrow
        };
        assert_eq!(
            marked("note:", Paint::Warn, "one word after it", &coloured),
            "\u{1b}[33mnote:\u{1b}[0m one word after\n      it\n"
        );
    }
}
