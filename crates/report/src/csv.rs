//! Fields of comma-separated values (RFC 4180).

use std::fmt::Display;

/// `text` as one field: in quotes where it must be.
pub fn field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// The value, or nothing between two commas.
pub fn optional<T: Display>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// The fields of one line; a field does not go over the end of a line in our files.
pub fn split(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                push(&mut fields, '"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => push(&mut fields, other),
        }
    }
    fields
}

fn push(fields: &mut [String], character: char) {
    if let Some(last) = fields.last_mut() {
        last.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_fields_stay_plain() {
        assert_eq!(field("voice"), "voice");
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(split("1,,x"), ["1", "", "x"]);
    }

    proptest! {
        #[test]
        fn there_and_back(fields in prop::collection::vec("[^\n\r]{0,12}", 1..6)) {
            let line = fields.iter().map(|text| field(text)).collect::<Vec<_>>().join(",");
            prop_assert_eq!(split(&line), fields);
        }

        #[test]
        fn any_line_splits(line in ".*") {
            prop_assert!(!split(&line).is_empty());
        }
    }
}
