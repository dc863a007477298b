//! Text with the few escapes of `report::style`, as lines that ratatui draws.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

pub fn lines(text: &str) -> Vec<Line<'static>> {
    text.lines().map(line).collect()
}

fn line(text: &str) -> Line<'static> {
    let mut pieces = text.split("\x1b[");
    let mut spans = vec![Span::raw(pieces.next().unwrap_or_default().to_owned())];
    for piece in pieces {
        let (code, text) = piece.split_once('m').unwrap_or(("0", piece));
        spans.push(Span::styled(text.to_owned(), style(code)));
    }
    Line::from(spans)
}

fn style(code: &str) -> Style {
    let plain = Style::default();
    match code {
        "1;32" => plain.fg(Color::Green).add_modifier(Modifier::BOLD),
        "1;31" => plain.fg(Color::Red).add_modifier(Modifier::BOLD),
        "33" => plain.fg(Color::Yellow),
        "1" => plain.add_modifier(Modifier::BOLD),
        "2" => plain.add_modifier(Modifier::DIM),
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_styles() {
        let lines = lines("a\x1b[1;31mlost\x1b[0m b\nnext");
        assert_eq!(lines.len(), 2);
        let texts: Vec<&str> = lines[0].spans.iter().map(|span| &*span.content).collect();
        assert_eq!(texts, ["a", "lost", " b"]);
        assert_eq!(lines[0].spans[1].style.fg, Some(Color::Red));
        assert_eq!(lines[0].spans[2].style, Style::default());
    }
}
