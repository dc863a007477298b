//! Pieces of HTML that many parts of a page are made of.

use maud::{Markup, html};

/// Of every drawing, in its own units.
pub const WIDTH: f64 = 960.0;

/// `text` with what stands between two backticks as code.
pub fn prose(text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    // An odd number of backticks has one that begins nothing.
    if parts.len() % 2 == 0 {
        return html! { (text) };
    }
    html! {
        @for (at, part) in parts.iter().enumerate() {
            @if at % 2 == 0 { (part) } @else { code { (part) } }
        }
    }
}

/// `inner` under a heading; nothing where there is nothing.
pub fn section(title: &str, inner: &Markup) -> Markup {
    html! {
        @if !inner.0.is_empty() {
            section { h2 { (title) } (inner) }
        }
    }
}

/// `inner` under a title and sentences that say what is to be seen.
pub fn figure(title: &str, sentences: &[String], inner: &Markup) -> Markup {
    html! {
        figure {
            figcaption {
                h3 { (title) }
                @for line in sentences { p { (line) } }
            }
            (inner)
        }
    }
}

/// `inner`, folded away under `title`.
pub fn details(title: &str, inner: &Markup) -> Markup {
    html! { details { summary { (title) } (inner) } }
}

/// A drawing, `height` high, and its text alternative, a title and sentences.
pub fn drawing(id: &str, class: &str, height: f64, [title, words]: [&str; 2], shapes: &[Markup]) -> Markup {
    let (of_title, of_words) = (format!("{id}-t"), format!("{id}-d"));
    html! {
        svg class=(class) role="img" aria-labelledby={ (of_title) " " (of_words) } viewBox={ "0 0 " (WIDTH) " " (height.round()) } {
            title id=(of_title) { (title) }
            desc id=(of_words) { (words) }
            @for shape in shapes { (shape) }
        }
    }
}

/// A place in a drawing, to a tenth of its unit.
pub fn tenths(place: f64) -> String {
    format!("{place:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sheet::Sheet;
    use crate::table::Cell;

    #[test]
    fn backticks_become_code() {
        let shown = |text| prose(text).into_string();
        assert_eq!(
            shown("see (`dropless noise` <who>)"),
            "see (<code>dropless noise</code> &lt;who&gt;)"
        );
        assert_eq!(shown("a ` alone"), "a ` alone");
        assert_eq!(shown("`<b>`"), "<code>&lt;b&gt;</code>");
    }

    #[test]
    fn nothing_breaks_out() {
        let nasty = "<script>alert('x')</script>&\"";
        let sheet = Sheet::of([nasty])
            .name(nasty, |nasty| (*nasty).to_owned())
            .cell(nasty, |nasty| Cell::bar(2.0, *nasty));
        let page = details(nasty, &sheet.html(nasty)).into_string();
        assert!(!page.contains("<script") && !page.contains("&\""), "{page}");
    }
}
