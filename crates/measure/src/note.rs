//! What the user should know of a run, beside its numbers.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A code for programs, and a sentence for people: nothing reads the sentence but they.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Note {
    /// A short fixed name; empty in results of before there were codes.
    pub code: Cow<'static, str>,
    /// The sentence.
    pub text: String,
}

/// What a peer had been given and had not taken is gone with it, and counts as sent.
pub const LOST_WITH_PEER: &str = "lost_with_peer";

/// As it stands in a file: an object, or, of before there were codes, the sentence alone.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Sentence(String),
    Coded { code: Cow<'static, str>, text: String },
}

impl Note {
    /// Of a code and its sentence.
    pub fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self {
            code: Cow::Borrowed(code),
            text: text.into(),
        }
    }

    /// Their sentences.
    pub fn texts(notes: &[Note]) -> Vec<String> {
        notes.iter().map(ToString::to_string).collect()
    }
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl From<Written> for Note {
    fn from(written: Written) -> Self {
        match written {
            Written::Sentence(text) => Self {
                code: Cow::Borrowed(""),
                text,
            },
            Written::Coded { code, text } => Self { code, text },
        }
    }
}

impl From<Note> for Written {
    fn from(Note { code, text }: Note) -> Self {
        if code.is_empty() {
            Self::Sentence(text)
        } else {
            Self::Coded { code, text }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_an_object_and_a_sentence_of_before_is_read_too() {
        let note = Note::new("interrupted", "this is the result up to then");
        let text = serde_json::to_string(&note).unwrap();
        assert_eq!(
            text,
            r#"{"code":"interrupted","text":"this is the result up to then"}"#
        );
        assert_eq!(serde_json::from_str::<Note>(&text).unwrap(), note);
        let old: Note = serde_json::from_str(r#""as it was written""#).unwrap();
        assert_eq!((&*old.code, &*old.text), ("", "as it was written"));
        assert_eq!(serde_json::to_string(&old).unwrap(), r#""as it was written""#);
    }
}
