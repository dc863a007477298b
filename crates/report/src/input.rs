//! What is read back comes through here: no pipe is waited for, no control character of a file gets further.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use serde_json::Value;

use crate::read::ReadError;

/// Bytes of a JSON file at most: a result of 10,000 streams has some 10 MB.
const TEXT_MAX: u64 = 256 << 20;

/// Opens a file, or what a pipe of the shell's own leads to (`/dev/stdin`, `<(...)`). Of a named pipe nobody knows
/// whether it is ever written to.
pub fn open(path: &Path) -> Result<File, ReadError> {
    let kind = fs::metadata(path).map_err(ReadError::io(path))?.file_type();
    // What has a name somewhere was not made for us alone.
    let is_own_pipe = || kind.is_fifo() && path.canonicalize().is_err();
    if kind.is_file() || is_own_pipe() {
        return File::open(path).map_err(ReadError::io(path));
    }
    let kind = match kind {
        kind if kind.is_fifo() => "a named pipe",
        kind if kind.is_dir() => "a directory",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(ReadError::NoFile(path.to_owned(), kind))
}

/// Whether a file is there; that nobody may look is not the same as that it is not.
pub fn is_there(path: &Path) -> Result<bool, ReadError> {
    path.try_exists().map_err(ReadError::io(path))
}

/// The text in the file `path`, as it is.
pub fn text_file(path: &Path) -> Result<String, ReadError> {
    text(path, bytes(path)?)
}

/// The lines of the file `path` that were written to their ends: the last one may be cut anywhere, within a letter, too.
pub fn whole_lines(path: &Path) -> Result<String, ReadError> {
    let mut bytes = bytes(path)?;
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    bytes.truncate(end.map_or(0, |end| end + 1));
    text(path, bytes)
}

fn bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    let read = open(path)?.take(TEXT_MAX + 1).read_to_end(&mut bytes);
    read.map_err(ReadError::io(path))?;
    if bytes.len() as u64 > TEXT_MAX {
        return Err(ReadError::damaged(path, "it is too long for what it should be"));
    }
    Ok(bytes)
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, ReadError> {
    String::from_utf8(bytes).map_err(|_| ReadError::damaged(path, "not text"))
}

/// The JSON in the file `path`.
pub fn json_file(path: &Path) -> Result<Value, ReadError> {
    json(&text_file(path)?).map_err(|error| ReadError::damaged(path, error.to_string()))
}

/// `text` as JSON whose strings are clean.
pub fn json(text: &str) -> serde_json::Result<Value> {
    let mut value = serde_json::from_str(text)?;
    scrub(&mut value);
    Ok(value)
}

/// Cleans every string in `value`, names too.
pub fn scrub(value: &mut Value) {
    match value {
        Value::String(text) if text.contains(is_unsafe) => *text = clean(text),
        Value::Array(items) => items.iter_mut().for_each(scrub),
        Value::Object(map) => {
            map.values_mut().for_each(scrub);
            if map.keys().any(|key| key.contains(is_unsafe)) {
                let named = std::mem::take(map).into_iter();
                *map = named.map(|(key, value)| (clean(&key), value)).collect();
            }
        }
        _ => {}
    }
}

/// `text` on one line, and without what could move a terminal's cursor, change its colours, or show letters in another
/// order than they are in. Paths, devices and peers are named by others, too.
pub fn clean(text: &str) -> String {
    text.replace(is_unsafe, "?")
}

/// Control characters; separators of lines and paragraphs; marks of writing direction.
pub fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_json_reaches_the_terminal() {
        let hostile = r#"{"a\u001b[2J": ["x\u009b31m", {"b": "one\ntwo \u202egnp"}], "c": "plain, Größe"}"#;
        let value = json(hostile).unwrap();
        assert_eq!(
            value,
            serde_json::json!({"a?[2J": ["x?31m", {"b": "one?two ?gnp"}], "c": "plain, Größe"})
        );
    }
}
