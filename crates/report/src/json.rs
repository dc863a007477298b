//! Turns a result into one JSON object.

use std::fmt::Write as _;

use serde::Serialize;

use crate::input::is_unsafe;

/// `value` as indented JSON that ends in a newline. People look at it in a terminal, too: in its strings everything that
/// could get at that is escaped, which means the same to a program.
pub fn pretty<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<String> {
    let text = serde_json::to_string_pretty(value)?;
    let mut safe = String::with_capacity(text.len() + 1);
    for character in text.chars() {
        if character != '\n' && is_unsafe(character) {
            // All of them are of one UTF-16 unit. A `String` takes everything.
            let _ = write!(safe, "\\u{:04x}", u32::from(character));
        } else {
            safe.push(character);
        }
    }
    safe.push('\n');
    Ok(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_get_at_a_terminal_is_escaped_and_means_the_same() {
        let hostile = "a\u{1b}[2J\u{9b}31m\u{202e}b\u{2028}\u{7f}, Größe\n";
        let text = pretty(&serde_json::json!({ hostile: [hostile] })).unwrap();
        assert!(text.lines().all(|line| !line.contains(is_unsafe)), "{text:?}");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value[hostile][0], hostile);
    }
}
