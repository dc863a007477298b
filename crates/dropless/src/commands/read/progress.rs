//! How far it is, on a terminal, where nothing else would say so for long.

use std::time::{Duration, Instant};

use report::number::counted;
use report::out::print_stderr;
use report::style::{ERASE, Paint, Stream, Style, can_redraw};

/// From one look to the next.
const EVERY: Duration = Duration::from_millis(500);

/// A line that is written again and again.
pub struct Progress {
    /// When it was written, or nothing had to be said yet; `None` where nobody looks.
    shown: Option<Instant>,
    style: Style,
    is_there: bool,
}

impl Progress {
    /// Only if it is `wanted`, and a terminal can show it.
    pub fn new(wanted: bool) -> Self {
        let style = Style::detect(Stream::Stderr);
        let is_able = Stream::Stderr.is_terminal() && can_redraw();
        Self {
            shown: (wanted && is_able).then(Instant::now),
            style,
            is_there: false,
        }
    }

    /// Says how many packets were read, every now and then.
    pub fn look(&mut self, packets: u64) {
        if self.shown.is_some_and(|shown| shown.elapsed() > EVERY) {
            self.shown = Some(Instant::now());
            self.is_there = true;
            let line = format!("{} read", counted(packets, "packet"));
            write(&self.style.paint(Paint::Dim, &line));
        }
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.is_there) {
            write("");
        }
    }
}

fn write(line: &str) {
    // Who cannot be told how far it is hears the result all the same.
    let _ = print_stderr(&format!("{ERASE}{line}"));
}
