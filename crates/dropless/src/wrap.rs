//! Words in lines that fit the terminal.

use std::fmt::Write as _;

use report::Style;
use report::style::Paint;

/// `words` in lines that fit, each `indent` columns from the left.
pub fn wrapped(text: &mut String, words: &str, indent: usize, paint: Paint, style: &Style) {
    for line in filled(words, style.width.saturating_sub(indent)) {
        let _ = writeln!(text, "{:indent$}{}", "", style.paint(paint, &line));
    }
}

/// `words` in lines of at most `room` columns, where no single word is longer.
pub fn filled(words: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
