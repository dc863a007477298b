//! Decides how text for people looks here: colours or none, how wide, which characters.

use std::borrow::Cow;
use std::env;
use std::io::{self, IsTerminal};

use crate::input::is_unsafe;

/// Where text for people goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error: where everything for people goes when standard output carries JSON.
    Stderr,
}

impl Stream {
    /// Whether a terminal is behind it.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Stdout => io::stdout().is_terminal(),
            Self::Stderr => io::stderr().is_terminal(),
        }
    }

    /// Columns of the terminal behind it, if there is one and it says so.
    pub fn columns(self) -> Option<usize> {
        let size = match self {
            Self::Stdout => terminal_size::terminal_size_of(io::stdout()),
            Self::Stderr => terminal_size::terminal_size_of(io::stderr()),
        };
        size.map(|(width, _)| usize::from(width.0))
            .filter(|&columns| columns > 0)
    }
}

/// How text for people looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Colours and weights by ANSI escapes.
    pub color: bool,
    /// Columns that a line may fill.
    pub width: usize,
    /// Box-drawing characters may be used (a UTF-8 locale).
    pub unicode: bool,
}

/// Where there is no terminal to ask: wide enough for every table, as a file or a log has no edge.
const WIDTH_WITHOUT_TERMINAL: usize = 100;
/// Below this the tables cannot be told apart anyhow; the terminal wraps.
const WIDTH_MIN: usize = 40;
/// Beyond this a line is harder to read, not easier.
const WIDTH_MAX: usize = 120;

impl Style {
    /// No colour, 80 columns, ASCII: the same everywhere.
    pub fn plain() -> Self {
        Self {
            color: false,
            width: 80,
            unicode: false,
        }
    }

    /// What suits `stream`: colours only on a terminal, and never when `NO_COLOR` is set to anything
    /// (<https://no-color.org>) or `TERM` is `dumb`.
    pub fn detect(stream: Stream) -> Self {
        let given = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let dumb = given("TERM").is_none_or(|term| term == "dumb");
        // A terminal knows best; where there is none (a pipe, a CI log), COLUMNS may say.
        let width = stream
            .columns()
            .or_else(|| given("COLUMNS")?.parse().ok())
            .unwrap_or(WIDTH_WITHOUT_TERMINAL)
            .clamp(WIDTH_MIN, WIDTH_MAX);
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .find_map(given)
            .unwrap_or_default();
        Self {
            color: stream.is_terminal() && !dumb && given("NO_COLOR").is_none(),
            width,
            unicode: is_utf8(&locale),
        }
    }

    /// `text` as it may be printed here: outside UTF-8 nothing beyond ASCII, also where a name holds it.
    pub fn fitted(&self, text: String) -> String {
        if self.unicode || text.is_ascii() {
            text
        } else {
            text.chars().map(ascii).collect()
        }
    }

    /// `text` in `paint`, or as it is when colours are off.
    pub fn paint(&self, paint: Paint, text: &str) -> String {
        if self.color && paint != Paint::None && !text.is_empty() {
            format!("{}{text}{}", paint.sequence(), Paint::None.sequence())
        } else {
            text.to_owned()
        }
    }
}

/// Whether the terminal understands what moves its cursor: `TERM` is set, and not to `dumb`.
pub fn can_redraw() -> bool {
    env::var("TERM").is_ok_and(|term| term != "dumb")
}

/// The character that stands for `character` where there is nothing but ASCII.
pub fn ascii(character: char) -> char {
    match character {
        c if c.is_ascii() => c,
        '…' => '~',
        '─' | '░' | '▄' => '-',
        '━' | '█' | '▇' => '#',
        '▁' => '_',
        '▂' => '.',
        '▃' => ':',
        '▅' => '=',
        '▆' => '+',
        _ => '?',
    }
}

/// The few meanings that a colour has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paint {
    /// As it comes.
    #[default]
    None,
    /// Good: measured and clean.
    Good,
    /// Bad: loss, a failed expectation, an invalid run.
    Bad,
    /// Wants a look.
    Warn,
    /// A heading.
    Head,
    /// Of less weight than the text around it.
    Dim,
}

impl Paint {
    /// What switches it on.
    fn sequence(self) -> String {
        format!("\x1b[{}m", self.code())
    }

    fn code(self) -> &'static str {
        match self {
            Self::None => "0",
            Self::Good => "1;32",
            Self::Bad => "1;31",
            Self::Warn => "33",
            Self::Head => "1",
            Self::Dim => "2",
        }
    }
}

impl Paint {
    const ALL: [Self; 6] = [
        Self::None,
        Self::Good,
        Self::Bad,
        Self::Warn,
        Self::Head,
        Self::Dim,
    ];
}

/// Takes away the line that the cursor is in.
pub const ERASE: &str = "\r\x1b[K";

/// `text` as it may go to a terminal: of all that moves a cursor or changes colours nothing is left but the colours of
/// [`Style::paint`], and an [`ERASE`] that it begins with. What comes from outside is cleaned where it is put into text
/// ([`input::clean`](crate::input::clean)), since only there its place is known; this is the door behind that.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_bad = |character: char| !matches!(character, '\n' | '\t') && is_unsafe(character);
    if !text.contains(is_bad) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    if let Some(after) = text.strip_prefix(ERASE) {
        safe.push_str(ERASE);
        rest = after;
    }
    while let Some(at) = rest.find(is_bad) {
        let (before, found) = rest.split_at(at);
        safe.push_str(before);
        let colour = Paint::ALL.map(Paint::sequence);
        let known = colour.iter().find(|colour| found.starts_with(colour.as_str()));
        let length = known.map_or_else(|| found.chars().next().map_or(1, char::len_utf8), String::len);
        safe.push_str(known.map_or("?", String::as_str));
        rest = &found[length..];
    }
    safe.push_str(rest);
    Cow::Owned(safe)
}

fn is_utf8(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_colour_means_no_escape() {
        assert_eq!(Style::plain().paint(Paint::Bad, "lost"), "lost");
        let coloured = Style {
            color: true,
            ..Style::plain()
        };
        assert_eq!(coloured.paint(Paint::Bad, "lost"), "\x1b[1;31mlost\x1b[0m");
        assert_eq!(coloured.paint(Paint::None, "lost"), "lost");
    }

    #[test]
    fn nothing_but_our_own_colours_reaches_the_terminal() {
        let coloured = Style {
            color: true,
            ..Style::plain()
        };
        let ours = format!("{ERASE}{}\n\tb, Größe", coloured.paint(Paint::Bad, "lost"));
        assert_eq!(printable(&ours), ours);
        let hostile = format!("a{ERASE}\x1b[2J\x1b[8m\u{9b}1m\u{202e}\r\x07{ours}");
        assert_eq!(
            printable(&hostile),
            "a??[K?[2J?[8m?1m?????[K\x1b[1;31mlost\x1b[0m\n\tb, Größe"
        );
    }

    #[test]
    fn locales() {
        assert!(is_utf8("en_US.UTF-8") && is_utf8("C.utf8"));
        assert!(!is_utf8("C") && !is_utf8("POSIX") && !is_utf8("de_DE.ISO-8859-1"));
    }
}
