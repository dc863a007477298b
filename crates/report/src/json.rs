//! Turns a result into one JSON object.

use serde::Serialize;

/// `value` as indented JSON that ends in a newline.
pub fn pretty<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(text)
}
