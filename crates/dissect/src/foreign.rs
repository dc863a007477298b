//! What files say in words, about packets and interfaces: anybody may have written it.

use crate::text::Text;

/// Bytes that are shown.
const SHOWN_MAX: usize = 1024;

/// Where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum As {
    /// Text for people.
    Line,
    /// A string of JSON, whose quotes stand around it.
    Json,
}

/// Writes it as plain ASCII on one line: nothing in it moves a cursor, ends a string or turns the direction of writing.
pub fn foreign(text: &mut Text, words: &[u8], form: As) {
    let shown = &words[..words.len().min(SHOWN_MAX)];
    for chunk in shown.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '"' | '\\' if form == As::Json => text.byte(b'\\').byte(letter as u8),
                ' '..='~' => text.byte(letter as u8),
                _ => text.byte(b'?'),
            };
        }
        if !chunk.invalid().is_empty() {
            text.byte(b'?');
        }
    }
    if shown.len() < words.len() {
        text.put("...");
    }
}
