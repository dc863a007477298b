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

/// `text` escaped, with what stands between two backticks as code.
pub fn prose(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // An odd number of backticks has one that begins nothing.
    if parts.len() % 2 == 0 {
        return escape(text);
    }
    let one = |(at, part): (usize, &&str)| match at % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    };
    parts.iter().enumerate().map(one).collect()
}

/// What stands in one place of a table.
pub enum Cell {
    /// Words.
    Text(String),
    /// A number, set to the right.
    Number(String),
    /// A number that ought to be 0, or otherwise wants a look.
    Bad(String),
    /// Words that want a look.
    Warning(String),
    /// The name of its row.
    Name(String),
    /// A part of a whole (0 to 1) as a bar, with its words.
    Bar(f64, String),
}

/// Names of more bytes may be broken into lines.
const SHORT: usize = 16;

impl Cell {
    /// Whether it is set to the right.
    fn is_number(&self) -> bool {
        matches!(self, Self::Number(_) | Self::Bad(_))
    }

    fn html(&self) -> String {
        match self {
            Self::Text(text) => format!("<td>{}</td>", escape(text)),
            Self::Warning(text) => format!("<td class=bad>{}</td>", escape(text)),
            Self::Number(text) => format!("<td class=n>{}</td>", escape(text)),
            Self::Bad(text) => format!("<td class=\"n bad\">{}</td>", escape(text)),
            Self::Name(text) => {
                let class = if text.len() > SHORT { " class=long" } else { "" };
                format!("<th scope=row{class}>{}</th>", escape(text))
            }
            Self::Bar(part, text) => {
                let percent = 100.0 * part.clamp(0.0, 1.0);
                format!(
                    "<td class=bars><span class=bar><span style=\"width:{percent:.2}%\"></span></span><span class=label>{}</span></td>",
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
        .enumerate()
        .map(|(at, title)| {
            let is_number = rows
                .first()
                .and_then(|row| row.get(at))
                .is_some_and(Cell::is_number);
            let class = if is_number { " class=n" } else { "" };
            format!("<th scope=col{class}>{}</th>", escape(title))
        })
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

/// A count that ought to be 0.
pub fn bad(number: u64) -> Cell {
    match number {
        0 => Cell::Number("0".to_owned()),
        some => Cell::Bad(crate::number::count(some)),
    }
}

/// `inner` under a heading; nothing where there is nothing.
pub fn section(title: &str, inner: &str) -> String {
    if inner.is_empty() {
        return String::new();
    }
    format!("<section><h2>{}</h2>\n{inner}</section>\n", escape(title))
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
    fn backticks_become_code() {
        assert_eq!(
            prose("see (`dropless noise` <who>)"),
            "see (<code>dropless noise</code> &lt;who&gt;)"
        );
        assert_eq!(prose("a ` alone"), "a ` alone");
        assert_eq!(prose("`<b>`"), "<code>&lt;b&gt;</code>");
    }

    /// Bars of one column begin and end in one place, however wide their words are.
    #[test]
    fn words_of_bars_have_a_column_of_their_own() {
        let cell = Cell::Bar(0.5, "68.86 kpps".to_owned()).html();
        assert!(cell.starts_with("<td class=bars>") && cell.contains("<span class=label>68.86 kpps</span>"));
    }

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
