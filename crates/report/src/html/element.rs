//! Pieces of HTML: escaped text, tables, and what can be folded away.

/// `text` as it may stand between tags and in quoted attributes.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Names come from elsewhere: none may carry control characters into the page.
            c if c.is_control() => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// What stands in one place of a table.
pub enum Cell {
    /// Words.
    Text(String),
    /// A number, set to the right.
    Number(String),
    /// A number that ought to be 0, or otherwise wants a look.
    Bad(String),
    /// The name of its row.
    Name(String),
    /// A part of a whole (0 to 1) as a bar, with its words.
    Bar(f64, String),
}

impl Cell {
    fn html(&self) -> String {
        match self {
            Self::Text(text) => format!("<td>{}</td>", escape(text)),
            Self::Number(text) => format!("<td class=n>{}</td>", escape(text)),
            Self::Bad(text) => format!("<td class=\"n bad\">{}</td>", escape(text)),
            Self::Name(text) => format!("<th scope=row>{}</th>", escape(text)),
            Self::Bar(part, text) => {
                let percent = 100.0 * part.clamp(0.0, 1.0);
                format!(
                    "<td class=n><span class=bar><span style=\"width:{percent:.2}%\"></span></span> {}</td>",
                    escape(text)
                )
            }
        }
    }
}

/// A table with a caption; `head` names its columns.
pub fn table(caption: &str, head: &[&str], rows: &[Vec<Cell>]) -> String {
    let head: String = head
        .iter()
        .map(|title| format!("<th scope=col>{}</th>", escape(title)))
        .collect();
    let body: String = rows
        .iter()
        .map(|row| format!("<tr>{}</tr>\n", row.iter().map(Cell::html).collect::<String>()))
        .collect();
    let head = if head.is_empty() {
        head
    } else {
        format!("<thead><tr>{head}</tr></thead>\n")
    };
    format!(
        "<div class=scroll tabindex=0 role=region aria-label=\"{0}\"><table><caption>{0}</caption>{head}<tbody>\n{body}</tbody></table></div>\n",
        escape(caption)
    )
}

/// `inner`, folded away under `title`.
pub fn details(title: &str, inner: &str) -> String {
    format!(
        "<details><summary>{}</summary>\n{inner}</details>\n",
        escape(title)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out() {
        let nasty = "<script>alert('x')</script>&\"\u{7}";
        assert_eq!(
            escape(nasty),
            "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;\u{fffd}"
        );
        assert!(!table(nasty, &[nasty], &[vec![Cell::Bar(2.0, nasty.to_owned())]]).contains("<script"));
    }
}
