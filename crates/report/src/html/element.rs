//! Pieces of HTML: escaped text, and what can be folded away.

use crate::input::is_unsafe;

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
            // Names come from elsewhere: none may carry control characters into the page, or turn its writing round.
            c if is_unsafe(c) => safe.push('\u{fffd}'),
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

/// `inner` under a heading; nothing where there is nothing.
pub fn section(title: &str, inner: &str) -> String {
    if inner.is_empty() {
        return String::new();
    }
    format!("<section><h2>{}</h2>\n{inner}</section>\n", escape(title))
}

/// `inner` under a title and sentences that say what is to be seen.
pub fn figure(title: &str, sentences: &[String], inner: &str) -> String {
    let words: String = sentences
        .iter()
        .map(|line| format!("<p>{}</p>", escape(line)))
        .collect();
    let title = escape(title);
    format!("<figure><figcaption><h3>{title}</h3>{words}</figcaption>\n{inner}</figure>\n")
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
    use crate::sheet::Sheet;
    use crate::table::Cell;

    #[test]
    fn backticks_become_code() {
        assert_eq!(
            prose("see (`dropless noise` <who>)"),
            "see (<code>dropless noise</code> &lt;who&gt;)"
        );
        assert_eq!(prose("a ` alone"), "a ` alone");
        assert_eq!(prose("`<b>`"), "<code>&lt;b&gt;</code>");
    }

    #[test]
    fn nothing_breaks_out() {
        let nasty = "<script>alert('x')</script>&\"\u{7}";
        assert_eq!(
            escape(nasty),
            "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;\u{fffd}"
        );
        let sheet = Sheet::of([nasty])
            .name(nasty, |nasty| (*nasty).to_owned())
            .cell(nasty, |nasty| Cell::bar(2.0, *nasty));
        assert!(!sheet.html(nasty).contains("<script"));
    }
}
