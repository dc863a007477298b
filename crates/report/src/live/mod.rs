//! Shows a run while it goes: redrawn in place on a terminal, one line per second anywhere else.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::time::Duration;

use crate::input::clean;
use crate::published::State;
use crate::style::{Stream, Style, can_redraw, printable};
use writer::Writer;

mod draw;
mod writer;

#[cfg(test)]
mod tests;

/// On a terminal: at most ten drawings a second.
const REDRAW_EVERY: Duration = Duration::from_millis(100);
/// Elsewhere: one line per second.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// The display. Trouble with the terminal ends the display, never the run, and nobody waits for a terminal.
pub struct Live {
    writer: Writer,
    look: Look,
    /// The period of time in which was drawn last.
    period: Option<u128>,
}

/// How to draw.
enum Look {
    /// Nothing: quiet was asked for, or the reader has gone.
    Off,
    /// One line now and then.
    Lines,
    /// In place; the stream is asked for its width at each drawing, as windows are resized.
    InPlace { style: Style, ask: Option<Stream> },
}

/// Standard error, without the lock of [`io::stderr`]: a terminal that is stopped would keep everybody waiting who wants it.
fn stderr() -> Box<dyn Write + Send> {
    match io::stderr().as_fd().try_clone_to_owned() {
        Ok(own) => Box::new(File::from(own)),
        Err(_) => Box::new(io::stderr()),
    }
}

impl Live {
    /// On standard error, so that standard output holds the result and nothing else. The thread that writes does `first` what it
    /// is given to do, such as to give up its rights.
    pub fn stderr(quiet: bool, first: fn()) -> Self {
        let style = Style::detect(Stream::Stderr);
        // Without colours the terminal is dumb, or asked to be left alone only in colour: a dumb one cannot redraw.
        let can_redraw = Stream::Stderr.is_terminal() && can_redraw();
        let look = match (quiet, can_redraw) {
            (true, _) => Look::Off,
            (false, true) => Look::InPlace {
                style,
                ask: Some(Stream::Stderr),
            },
            (false, false) => Look::Lines,
        };
        Self::new(stderr(), look, first)
    }

    /// On anything that takes bytes: in place with a style, else one line per second.
    pub fn onto(sink: Box<dyn Write + Send>, in_place: Option<Style>) -> Self {
        let look = in_place.map_or(Look::Lines, |style| Look::InPlace { style, ask: None });
        Self::new(sink, look, || ())
    }

    fn new(sink: Box<dyn Write + Send>, look: Look, first: fn()) -> Self {
        Self {
            writer: Writer::onto(sink, first),
            look,
            period: None,
        }
    }

    /// Draws `state`, unless the last drawing was too short ago. Cheap to call often.
    pub fn update(&mut self, state: &State) {
        let elapsed = Duration::try_from_secs_f64(state.elapsed_s).unwrap_or_default();
        if !self.is_due(elapsed) {
            return;
        }
        self.period = self.period_at(elapsed);
        if self.writer.is_over() {
            self.look = Look::Off;
        }
        match &self.look {
            Look::Off => {}
            // What a log holds is of no locale.
            Look::Lines => self
                .writer
                .say(&printable(&Style::plain().fitted(draw::line(state)))),
            Look::InPlace { style, ask } => {
                let width = ask
                    .and_then(Stream::columns)
                    .map_or(style.width, |columns| columns.min(120));
                let (text, lines) = draw::drawing(state, &Style { width, ..*style });
                self.writer
                    .draw(printable(&style.fitted(text)).into_owned(), lines);
            }
        }
    }

    /// Whether an update after `elapsed` would be drawn.
    pub fn is_due(&self, elapsed: Duration) -> bool {
        // Nothing is drawn in the first period.
        self.period_at(elapsed)
            .is_some_and(|period| period != self.period.unwrap_or(0))
    }

    /// The number of the period that `elapsed` is in, where anything is drawn. A caller that comes once per period comes
    /// a little early or late: a twentieth is forgiven.
    fn period_at(&self, elapsed: Duration) -> Option<u128> {
        let every = match self.look {
            Look::Off => return None,
            Look::Lines => LINE_EVERY,
            Look::InPlace { .. } => REDRAW_EVERY,
        };
        Some((elapsed + every / 20).as_nanos() / every.as_nanos())
    }

    /// Removes the display, so that the report follows in its place.
    pub fn finish(self) {}

    /// A line on standard error, also when quiet, in the place of the display, which the next update draws again. What it
    /// quotes does not get at the terminal.
    pub fn say(&self, line: &str) {
        let line = Style::detect(Stream::Stderr).fitted(clean(line));
        self.writer.say(&format!("{line}\n"));
    }
}
